#include "train/app/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <unistd.h>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/target.h"
#include "train/app/progress.h"
#include "train/app/version.h"
#include "train/loop/team/mpi_team.h"

namespace maki {
namespace {

std::unique_ptr<Team> joined;
std::optional<int> failed;  // with this exit code

std::vector<std::string> modules() {
  constexpr const char* kName = "maki-mpi.so";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {program / kName, program / MAKI_MODULES / kName};
}

// How long one that fails alone, before it has joined the others, waits for the launcher to end it: where all of them
// fail, as with a wrong option, rank 0 has told why by then.
constexpr std::chrono::seconds kOthersTell{5};  // Open MPI takes one

// Two processes with the same text compute the same bits (simd/target.h).
std::string arithmetic() {
  const bool pairs = kernels::bf16_unit() == kernels::Bf16Unit::pairs;
  return kernels::target() + (pairs ? " with AVX512_BF16" : "");
}

void require_same(const std::vector<std::string>& of_ranks, const char* what, const char* advice) {
  const auto other = std::ranges::find_if(of_ranks, [&](const std::string& text) { return text != of_ranks.front(); });
  if (other == of_ranks.end()) return;
  failed = exit_code::kUsage;  // of all ranks
  fail("ranks: all must {}; {} has {}, and {} has {}; {}", what, ranks().describe(0), of_ranks.front(),
       ranks().describe(static_cast<int>(other - of_ranks.begin())), *other, advice);
}

// Where the launcher binds no processors to ranks, those of a machine share its cores.
void share_cores(int ranks_here) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (std::getenv("OMP_NUM_THREADS") == nullptr && threads() * ranks_here > cores)
    set_threads(std::max(1, cores / ranks_here));
}

}  // namespace

Team& ranks() { return joined ? *joined : no_team(); }

bool is_follower() { return launched().rank > 0; }

void join_ranks(double patience_seconds) {
  const Launch launch = launched();
  if (launch.size == 1) return;
  joined = join_mpi_team(launch, modules(), patience_seconds);
  share_cores(launch.here);
  require_same(gather_all(*joined, version_text()), "run the same version of maki", "install it on all machines");
  require_same(gather_all(*joined, arithmetic()), "compute with the same instructions",
               "set the environment variable MAKI_TARGET to one that all have");
}

int run_ranks(const std::function<int()>& lead, const std::function<int()>& follow) {
  try {
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
  if (!is_follower()) {
    keep_quiet(false);
    return to_stderr("maki: {}\n", sentence);
  }
  std::this_thread::sleep_for(kOthersTell);
  keep_quiet(false);
  to_stderr("maki: rank {}: {}\n", launched().rank, sentence);
}

void leave_ranks() {
  if (joined && failed) joined->end_all(*failed);
  joined.reset();
}

}  // namespace maki
