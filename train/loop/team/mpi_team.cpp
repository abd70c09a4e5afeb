#include "train/loop/team/mpi_team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/ranges.h>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include "train/loop/team/mpi_calls.h"
#include "train/loop/team/stoppable_thread.h"

namespace maki {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFailureTag = kMpiTags, kPulseTag = kMpiTags + 1;
constexpr std::size_t kMostOfNote = 4096;  // bytes that tell of a failure

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::atoi(text);
}

// Every rank tells rank 0 that it is alive, and rank 0 tells all, from a thread of its own: however long a rank
// computes or writes, only one that has died or was stopped falls silent.
//
// Of a rank that is stopped in the middle of a call, others may wait for ever in calls of their own: Open MPI reads a
// queue in shared memory whose other end is being written. So no thread waits for another one's call for longer than
// the patience.
class MpiTeam final : public Team {
  using Lock = std::unique_lock<std::timed_mutex>;

 public:
  MpiTeam(const MpiCalls& calls, double patience, std::function<void(const std::string&)> stuck)
      : Team(calls.rank(), calls.size()),
        calls_(calls),
        patience_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience))),
        stuck_(std::move(stuck)),
        heard_(static_cast<std::size_t>(size()), Clock::now()) {
    pulse_.emplace([this](StoppableThread& self) { beat(self); });
    hosts_ = gather_all(*this, calls.host());
  }

  ~MpiTeam() override {
    pulse_.reset();
    if (!failed_) calls_.end();
  }

  std::string describe(int rank) const override {
    if (hosts_.empty()) return Team::describe(rank);  // while the team is being made
    return fmt::format("rank {} on {}", rank, hosts_[static_cast<std::size_t>(rank)]);
  }

  bool announce_failure(int exit_code, const std::string& sentence) noexcept override {
    if (leads()) {
      failed_ = true;
      return true;
    }
    const std::string note = fmt::format("{} {}", exit_code, sentence).substr(0, kMostOfNote);
    failed_ = true;
    if (Lock lock(mutex_, std::defer_lock); acquire(lock)) {
      calls_.send(0, kFailureTag, note.data(), static_cast<int>(note.size()));
    }
    // Rank 0 may compute for a long time before it waits for a message, and then ends this process. A message is sent
    // before it is received, so that only its pulse says whether rank 0 is there.
    while (leader_lives()) std::this_thread::sleep_for(kLook);
    // Others have noticed at the same time: the first one ends them before they tell it, too.
    std::this_thread::sleep_for(kLook * std::min(rank(), kMostInTurn));
    return false;
  }

  // The library wants one call at a time, but is not waited for where a call hangs.
  void end_all(int exit_code) noexcept override {
    const Lock lock(mutex_, std::chrono::seconds(1));
    calls_.abort(exit_code);
  }

 private:
  static constexpr std::chrono::milliseconds kLook{50};
  static constexpr int kMostInTurn = 20;

  bool leader_lives() {
    Lock lock(mutex_, std::defer_lock);
    return acquire(lock) && Clock::now() - heard_[0] <= patience_;
  }

  // False if the call of another thread does not return. A process that was stopped itself has missed one part of the
  // patience at most.
  bool acquire(Lock& lock) {
    constexpr int kParts = 20;
    for (int i = 0; i < kParts && !hangs_; ++i)
      if (lock.try_lock_for(patience_ / kParts)) return true;
    hangs_ = true;
    return false;
  }
  Lock locked() {
    Lock lock(mutex_, std::defer_lock);
    check<RankError>(acquire(lock), "{}", stuck());
    return lock;
  }
  std::string stuck() const {
    return fmt::format("{}: MPI did not return from a call for {:.3g} s; another rank has stopped, or its machine",
                       describe(rank()), std::chrono::duration<double>(patience_).count());
  }

  static int tag(std::uint64_t number) { return static_cast<int>(number % kMpiTags); }
  Ticket under_way(int rank, std::int64_t ticket) const {
    check<RankError>(ticket >= 0, "rank {}: MPI cannot exchange messages with it", rank);
    return static_cast<Ticket>(ticket);
  }

  Ticket start_send(int to, std::uint64_t number, Bytes bytes) override {
    const Lock lock = locked();
    return under_way(to, calls_.send(to, tag(number), bytes.data(), static_cast<int>(bytes.size())));
  }
  Ticket start_receive(int from, std::uint64_t number, std::span<std::byte> into) override {
    const Lock lock = locked();
    return under_way(from, calls_.receive(from, tag(number), into.data(), static_cast<int>(into.size())));
  }
  bool finished(Ticket ticket) override {
    const Lock lock = locked();
    const int state = calls_.finished(static_cast<std::int64_t>(ticket));
    check<RankError>(state >= 0, "a message between ranks was lost: MPI reports an error");
    return state == 1;
  }
  void abandon(Ticket ticket) noexcept override {
    if (Lock lock(mutex_, std::defer_lock); acquire(lock)) calls_.abandon(static_cast<std::int64_t>(ticket));
  }

  std::optional<RankError> failure() override {
    const Lock lock = locked();
    listen();
    std::array<char, kMostOfNote> note;
    int from = 0;
    const int length = calls_.poll(kFailureTag, &from, note.data(), std::ssize(note));
    if (length < 0) return std::nullopt;
    const std::string text(note.data(), static_cast<std::size_t>(length));
    const std::size_t space = text.find(' ');
    return RankError(fmt::format("{}: {}", describe(from), text.substr(space + 1)), std::atoi(text.c_str()));
  }

  // Rank 0 watches all, because the one that it waits for may itself wait for one that has stopped, and only rank 0
  // hears of that.
  void require_alive(int /*rank*/, Clock::duration waiting) override {
    const Lock lock = locked();
    for (int rank = leads() ? 1 : 0; rank < (leads() ? size() : 1); ++rank) {
      const Clock::duration silent = std::min(waiting, Clock::now() - heard_[static_cast<std::size_t>(rank)]);
      check<RankError>(silent <= patience_, "{}: nothing was heard of it for {:.3g} s", describe(rank),
                       std::chrono::duration<double>(patience_).count());
    }
  }

  // Requires: mutex_ is locked.
  void listen() {
    char byte = 0;
    for (int from = 0; calls_.poll(kPulseTag, &from, &byte, 1) >= 0;)
      heard_[static_cast<std::size_t>(from)] = Clock::now();
  }

  void beat(StoppableThread& self) {
    std::vector<int> to = {0};
    if (leads()) to.clear();
    for (int rank = 1; leads() && rank < size(); ++rank) to.push_back(rank);
    std::vector<std::int64_t> tickets(to.size(), -1);
    static constexpr char kByte = 0;
    Lock lock(mutex_, std::defer_lock);
    do {
      if (!acquire(lock)) return stuck_(stuck());
      listen();
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (tickets[i] >= 0 && calls_.finished(tickets[i]) == 0) continue;  // the last one has not been sent yet
        tickets[i] = calls_.send(to[i], kPulseTag, &kByte, 1);
      }
      lock.unlock();
    } while (!self.wait(patience_ / 5));
    if (!acquire(lock)) return;
    for (const std::int64_t ticket : tickets) {
      if (ticket >= 0 && calls_.finished(ticket) == 0) calls_.abandon(ticket);
    }
    listen();
  }

  const MpiCalls& calls_;
  const Clock::duration patience_;
  const std::function<void(const std::string&)> stuck_;
  std::timed_mutex mutex_;                // of all calls
  std::vector<Clock::time_point> heard_;  // of each rank
  std::vector<std::string> hosts_;
  std::atomic<bool> failed_ = false, hangs_ = false;
  std::optional<StoppableThread> pulse_;
};

const MpiCalls& load_module(const std::vector<std::string>& modules) {
  const auto found =
      std::ranges::find_if(modules, [](const std::string& path) { return access(path.c_str(), R_OK) == 0; });
  check(found != modules.end(),
        "ranks: this program was built without MPI; install libopenmpi-dev or libmpich-dev and build it again, or "
        "start it without mpirun");
  void* const module = dlopen(found->c_str(), RTLD_NOW | RTLD_GLOBAL);  // plugins of Open MPI look for its symbols
  check(module != nullptr, "ranks: {}; install the MPI library that maki was built with, or start it without mpirun",
        module == nullptr ? dlerror() : "");
  const void* const calls = dlsym(module, kMpiCalls);
  check(calls != nullptr, "ranks: {}: is no module of maki; remove it, or install maki again", *found);
  return *static_cast<const MpiCalls*>(calls);
}

}  // namespace

Launch launched() {
  constexpr const char* kVariables[][4] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK"},                                                       // Open MPI
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},                       // MPICH
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE", "SLURM_LOCALID"}};  // srun with PMIx
  for (const auto& [rank, size, here, place] : kVariables) {
    const auto of = number_in(rank), all = number_in(size);
    if (!of || !all || *all < 1) continue;
    return {.rank = *of,
            .size = *all,
            .here = std::clamp(number_in(here).value_or(1), 1, *all),
            .place = number_in(place).value_or(0)};
  }
  return {};
}

std::unique_ptr<Team> join_mpi_team(const Launch& launch, const std::vector<std::string>& modules, double patience,
                                    std::function<void(const std::string&)> stuck) {
  const MpiCalls& calls = load_module(modules);
  const char* const error = calls.begin();
  check(error == nullptr, "ranks: {}: {}", calls.library(), error == nullptr ? "" : error);
  check(calls.size() == launch.size && calls.rank() == launch.rank,
        "ranks: this is process {} of {} that were started, but {} of {} to {}; start them with the mpirun of that "
        "library",
        launch.rank, launch.size, calls.rank(), calls.size(), calls.library());
  return std::make_unique<MpiTeam>(calls, patience, std::move(stuck));
}

}  // namespace maki
