#include "train/app/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <unistd.h>

#include "autograd/core/parallel.h"
#include "data/io/os.h"
#include "train/app/interrupt.h"
#include "train/app/progress.h"
#include "train/app/version.h"
#include "train/loop/team/mpi_team.h"
#include "train/loop/team/stoppable_thread.h"

namespace maki {
namespace {

bool stays_alone = false;
std::unique_ptr<Team> joined;
std::optional<int> failed;  // with this exit code

std::vector<std::string> modules() {
  constexpr const char* kName = "maki-mpi.so";
  const std::filesystem::path folder = std::filesystem::path(os::program()).parent_path();
  return {folder / kName, folder / MAKI_MODULES / kName};
}

// How long a rank other than 0 that fails waits for the launcher to end it: where rank 0 fails as well, as with a wrong
// option, it has told why by then.
constexpr std::chrono::seconds kRank0Tells{5};

void let_rank_0_tell() {
  if (is_follower()) std::this_thread::sleep_for(kRank0Tells);
}

// Ends this process unless it is stopped in time: a rank that has not joined the others. MPI waits for ever for one
// that ended before that, and not every launcher then ends all.
void limit_start(StoppableThread& self, double seconds) {
  const std::chrono::duration<double> most =
      std::chrono::duration<double>(seconds) + kRank0Tells * (is_follower() ? 1 : 0);
  if (self.wait(most)) return;
  keep_quiet(is_follower());
  to_stderr("maki: ranks: not all of {} have joined within {:.3g} s; one has failed, or raise --rank-timeout\n",
            launched().size, seconds);
  _exit(RankError::kExitCode);
}

// Where rank 0 still can, it tells what has happened.
void end_stuck(const std::string& sentence) {
  let_rank_0_tell();
  keep_quiet(false);
  to_stderr("maki: {}\n", sentence);
  _exit(RankError::kExitCode);
}

void require_same_program() {
  const std::vector<std::string> versions = gather_all(*joined, version_text());
  const auto other = std::ranges::find_if(versions, [&](const std::string& text) { return text != versions.front(); });
  if (other == versions.end()) return;
  fail("ranks: all must run the same version of maki; {} has {}, and {} has {}; install it on all machines",
       ranks().describe(0), versions.front(), ranks().describe(static_cast<int>(other - versions.begin())), *other);
}

// Where the launcher binds no processors to ranks, those of a machine share its cores.
void share_cores(int ranks_here) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (std::getenv("OMP_NUM_THREADS") == nullptr && threads() * ranks_here > cores)
    set_threads(std::max(1, cores / ranks_here));
}

}  // namespace

Team& ranks() { return joined ? *joined : no_team(); }

bool is_follower() { return !stays_alone && launched().rank > 0; }
void stay_alone() { stays_alone = true; }

std::optional<std::int64_t> memory_of_rank() {
  const std::optional<std::int64_t> available = os::available_memory();
  return available ? std::optional(*available / launched().here) : std::nullopt;
}

void join_ranks(double patience_seconds) {
  const Launch launch = launched();
  if (launch.size == 1) return;
  const StoppableThread limit([&](StoppableThread& self) { limit_start(self, patience_seconds); });
  joined = join_mpi_team(launch, modules(), patience_seconds, end_stuck);
  share_cores(launch.here);
}

int run_ranks(const std::function<int()>& lead, const std::function<int()>& follow) {
  try {
    if (joined) require_same_program();
    return ranks().leads() ? lead() : follow();
  } catch (...) {
    const Failure failure = current_failure();
    failed = failure.exit_code;
    const bool told = ranks().announce_failure(failure.exit_code, failure.sentence);
    if (ranks().leads()) throw;
    keep_quiet(told);
    // What one rank says of another names that one already.
    const bool of_another = failure.exit_code == RankError::kExitCode;
    const std::string who = of_another ? "" : ranks().describe(ranks().rank()) + ": ";
    to_stderr("maki: {}{}\n", who, failure.sentence);
    return failure.exit_code;
  }
}

void tell_failure(const std::string& sentence) {
  const Launch launch = launched();
  let_rank_0_tell();
  if (is_follower() && launch.place > 0) return;
  keep_quiet(false);
  const std::string who = is_follower() ? fmt::format("rank {}: ", launch.rank) : "";
  to_stderr("maki: {}{}\n", who, sentence);
}

void leave_ranks() {
  const DeferInterrupts deferred;  // a launcher that ends all needs no answer
  if (joined && failed) {
    // Rank 0 has been told or has failed itself: it prints why, and ends all.
    let_rank_0_tell();
    // MPI may be what has failed.
    std::thread([code = *failed] {
      std::this_thread::sleep_for(kRank0Tells);
      _exit(code);
    }).detach();
    joined->end_all(*failed);
  }
  joined.reset();
}

}  // namespace maki
