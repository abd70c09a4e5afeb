#include "train/loop/team/team.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "data/io/error.h"

namespace maki {
namespace {

class NoTeam final : public Team {
 public:
  NoTeam() : Team(0, 1) {}

 private:
  Ticket start_send(int, std::uint64_t, Bytes) override { none(); }
  Ticket start_receive(int, std::uint64_t, std::span<std::byte>) override { none(); }
  bool finished(Ticket) override { none(); }
  void abandon(Ticket) noexcept override {}
  std::optional<RankError> failure() override { none(); }
  void require_alive(int, Clock::duration) override { none(); }

  [[noreturn]] static void none() { fail("team: a process alone has nobody to send a message to"); }
};

// Messages are cut into pieces of this size, because MPI counts bytes in an int.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

Team& no_team() {
  static NoTeam alone;
  return alone;
}

Team::Team(int rank, int size)
    : rank_(rank), size_(size), sent_(static_cast<std::size_t>(size)), received_(static_cast<std::size_t>(size)) {
  check(0 <= rank && rank < size, "team: a rank must be in [0, size); got {} of {}", rank, size);
}

std::string Team::describe(int rank) const { return fmt::format("rank {}", rank); }

Messages::~Messages() {
  for (const Pending& message : pending_) team_.abandon(message.ticket);
}

void Messages::send(int to, Bytes bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kMostBytes) {
    const Bytes piece = bytes.subspan(at, std::min(kMostBytes, bytes.size() - at));
    const std::uint64_t number = team_.sent_[static_cast<std::size_t>(to)]++;
    pending_.push_back({team_.start_send(to, number, piece), to});
  }
}

void Messages::receive(int from, std::span<std::byte> into) {
  for (std::size_t at = 0; at < into.size(); at += kMostBytes) {
    const std::span<std::byte> piece = into.subspan(at, std::min(kMostBytes, into.size() - at));
    const std::uint64_t number = team_.received_[static_cast<std::size_t>(from)]++;
    pending_.push_back({team_.start_receive(from, number, piece), from});
  }
}

bool Messages::arrived() {
  std::erase_if(pending_, [&](const Pending& message) { return team_.finished(message.ticket); });
  return pending_.empty();
}

// Most messages arrive within microseconds, and a core that is shared with another rank must not be kept from it.
void Messages::wait() {
  using namespace std::chrono_literals;
  constexpr std::chrono::microseconds kSpin = 50us, kYield = 20ms, kSleep = 100us;
  constexpr auto kLongestPause = 1s;  // between two looks: if more has passed, this process itself was stopped
  auto last = Team::Clock::now();
  Team::Clock::duration waited{};
  while (!arrived()) {
    if (waited > kYield) {
      std::this_thread::sleep_for(kSleep);
    } else if (waited > kSpin) {
      std::this_thread::yield();
    }
    const auto now = Team::Clock::now();
    waited += std::min<Team::Clock::duration>(now - last, kLongestPause);
    last = now;
    if (waited <= kSpin) continue;
    if (const auto failed = team_.failure()) throw *failed;
    team_.require_alive(pending_.front().rank, waited);
  }
}

Bounds even_bounds(std::int64_t n, int parts) {
  Bounds bounds;
  for (std::int64_t part = 0; part <= parts; ++part) bounds.push_back(n / parts * part + n % parts * part / parts);
  return bounds;
}

// Rank r begins with its successor, so that no rank is sent everything at once.
void gather_all(Team& team, std::span<std::byte> all, const Bounds& bounds) {
  const auto part = [&](int rank) {
    const std::int64_t begin = bounds[static_cast<std::size_t>(rank)], end = bounds[static_cast<std::size_t>(rank) + 1];
    return all.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  };
  Messages messages(team);
  for (int step = 1; step < team.size(); ++step) {
    const int from = (team.rank() + team.size() - step) % team.size();
    messages.receive(from, part(from));
  }
  for (int step = 1; step < team.size(); ++step) messages.send((team.rank() + step) % team.size(), part(team.rank()));
  messages.wait();
}

std::vector<std::string> gather_all(Team& team, const std::string& own) {
  const auto size = static_cast<std::size_t>(team.size()), rank = static_cast<std::size_t>(team.rank());
  std::vector<std::int64_t> lengths(size);
  lengths[rank] = std::ssize(own);
  Bounds bounds;
  for (std::size_t i = 0; i <= size; ++i) bounds.push_back(static_cast<std::int64_t>(i * sizeof(std::int64_t)));
  gather_all(team, raw_bytes(lengths), bounds);
  bounds.assign(1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(bounds));
  std::string all(static_cast<std::size_t>(bounds.back()), '\0');
  all.replace(static_cast<std::size_t>(bounds[rank]), own.size(), own);
  gather_all(team, raw_bytes(all), bounds);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < size; ++i)
    texts.push_back(all.substr(static_cast<std::size_t>(bounds[i]), static_cast<std::size_t>(lengths[i])));
  return texts;
}

// Rank 0 sends each rank a part, and the ranks send each other the rest: twice the bytes per rank, however many there
// are.
void broadcast(Team& team, std::span<std::byte> bytes) {
  constexpr std::size_t kSmall = 4096;  // bytes that are sent to each rank as they are
  const Bounds bounds = even_bounds(std::ssize(bytes), team.size());
  Messages messages(team);
  const bool whole = bytes.size() <= kSmall;
  const auto part = [&](int rank) {
    const auto begin = static_cast<std::size_t>(bounds[static_cast<std::size_t>(rank)]);
    return whole ? bytes
                 : bytes.subspan(begin, static_cast<std::size_t>(bounds[static_cast<std::size_t>(rank) + 1]) - begin);
  };
  if (team.leads()) {
    for (int rank = 1; rank < team.size(); ++rank) messages.send(rank, part(rank));
  } else {
    messages.receive(0, part(team.rank()));
  }
  messages.wait();
  if (!whole) gather_all(team, bytes, bounds);
}

void broadcast(Team& team, std::string& text) {
  std::int64_t length = std::ssize(text);
  broadcast(team, raw_bytes(length));
  text.resize(static_cast<std::size_t>(length));
  broadcast(team, raw_bytes(text));
}

bool all_go_on(Team& team, bool stops, const std::optional<std::string>& failed) {
  if (team.size() == 1) {
    if (failed) throw CorpusError(*failed);
    return !stops;
  }
  std::vector<char> states(static_cast<std::size_t>(team.size()), ' ');
  states[static_cast<std::size_t>(team.rank())] = failed ? 'f' : stops ? 's' : ' ';
  gather_all(team, raw_bytes(states), even_bounds(team.size(), team.size()));
  const auto first = std::ranges::find(states, 'f');
  if (first != states.end()) {
    const auto rank = static_cast<std::size_t>(first - states.begin());
    const std::string sentence = gather_all(team, failed.value_or(""))[rank];
    fail<CorpusError>("{}",
                      rank == 0 ? sentence : fmt::format("{}: {}", team.describe(static_cast<int>(rank)), sentence));
  }
  return std::ranges::find(states, 's') == states.end();
}

}  // namespace maki
