#include "train/loop/team/local_team.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <mutex>

#include "train/loop/team/stoppable_thread.h"

namespace maki {
namespace {

using Clock = std::chrono::steady_clock;

// What has been sent to one rank and not been received yet, by sender and number.
struct Mailbox {
  struct Letter {
    std::string bytes;
    Clock::time_point arrives;
  };
  std::mutex mutex;
  std::multimap<std::pair<int, std::uint64_t>, Letter> letters;
};

struct Network {
  explicit Network(int size, const LocalTeamOptions& how) : options(how), boxes(static_cast<std::size_t>(size)) {}
  const LocalTeamOptions& options;
  std::vector<Mailbox> boxes;
  std::mutex mutex;  // of what follows
  std::optional<RankError> failed;
  std::exception_ptr first;
};

class LocalTeam final : public Team {
 public:
  LocalTeam(Network& network, int rank, int size) : Team(rank, size), network_(network) {}

  bool announce_failure(int exit_code, const std::string& sentence) noexcept override {
    const std::lock_guard lock(network_.mutex);
    if (!network_.failed) network_.failed.emplace(fmt::format("{}: {}", describe(rank()), sentence), exit_code);
    return true;
  }

 private:
  struct Receive {
    int from;
    std::uint64_t number;
    std::span<std::byte> into;
  };

  // A message is copied at once, so it counts as sent.
  Ticket start_send(int to, std::uint64_t number, Bytes bytes) override {
    const Delivery how = network_.options.deliver ? network_.options.deliver(rank(), count_) : Delivery::usual;
    ++count_;
    if (network_.options.sent) network_.options.sent(rank(), bytes.size());
    if (how == Delivery::lost) return kSent;
    Mailbox::Letter letter{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), departure(bytes)};
    if (how == Delivery::late) letter.arrives += network_.options.delay;
    Mailbox& box = network_.boxes[static_cast<std::size_t>(to)];
    const std::lock_guard lock(box.mutex);
    // The second of two equal messages has the number of the first, so it is nobody's.
    for (int copy = 0; copy < (how == Delivery::twice ? 2 : 1); ++copy) box.letters.insert({{rank(), number}, letter});
    return kSent;
  }

  // When the last byte has left.
  Clock::time_point departure(Bytes bytes) {
    const NetworkSpeed& speed = network_.options.speed;
    const std::chrono::duration<double> takes(speed.seconds_per_message +
                                              speed.seconds_per_byte * static_cast<double>(bytes.size()));
    link_free_ = std::max(link_free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
    return link_free_;
  }

  Ticket start_receive(int from, std::uint64_t number, std::span<std::byte> into) override {
    receives_.emplace(++last_, Receive{from, number, into});
    return last_;
  }

  bool finished(Ticket ticket) override {
    if (ticket == kSent) return true;
    const Receive& receive = receives_.at(ticket);
    Mailbox& box = network_.boxes[static_cast<std::size_t>(rank())];
    const std::lock_guard lock(box.mutex);
    const auto letter = box.letters.find({receive.from, receive.number});
    if (letter == box.letters.end() || letter->second.arrives > Clock::now()) return false;
    const std::string& bytes = letter->second.bytes;
    check<RankError>(bytes.size() == receive.into.size(), "{}: sent {} bytes where {} were expected",
                     describe(receive.from), bytes.size(), receive.into.size());
    std::ranges::copy(std::as_bytes(std::span(bytes)), receive.into.begin());
    box.letters.erase(letter);
    receives_.erase(ticket);
    return true;
  }

  void abandon(Ticket ticket) noexcept override { receives_.erase(ticket); }

  std::optional<RankError> failure() override {
    const std::lock_guard lock(network_.mutex);
    return network_.failed;
  }

  void require_alive(int from, Clock::duration waiting) override {
    const LocalTeamOptions& options = network_.options;
    const auto patience = leads() ? options.patience_of_leader.value_or(options.patience) : options.patience;
    check<RankError>(waiting <= patience, "{}: nothing was heard of it for {:.3g} s", describe(from),
                     std::chrono::duration<double>(patience).count());
  }

  static constexpr Ticket kSent = 0;
  Network& network_;
  std::map<Ticket, Receive> receives_;
  Ticket last_ = kSent;
  std::uint64_t count_ = 0;  // of messages sent
  Clock::time_point link_free_{};
};

void run_rank(Network& network, int rank, int size, const std::function<void(Team&)>& work) {
  LocalTeam team(network, rank, size);
  try {
    work(team);
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(network.mutex);
      if (network.first == nullptr) network.first = std::current_exception();
    }
    team.announce_failure(RankError::kExitCode, error.what());
  }
}

}  // namespace

void run_local_team(int size, const std::function<void(Team& team)>& work, const LocalTeamOptions& options) {
  Network network(size, options);
  {
    std::list<StoppableThread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank](StoppableThread&) { run_rank(network, rank, size, work); });
  }
  if (network.first != nullptr) std::rethrow_exception(network.first);
}

}  // namespace maki
