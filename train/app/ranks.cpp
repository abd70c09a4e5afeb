#include "train/app/ranks.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>
#include <unistd.h>

#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/target.h"
#include "train/app/interrupt.h"
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

// Two processes with the same text compute the same bits (simd/target.h).
std::string arithmetic() {
  const bool pairs = kernels::bf16_unit() == kernels::Bf16Unit::pairs;
  return kernels::target() + (pairs ? " with AVX512_BF16" : "");
}

void require_same(const std::vector<std::string>& of_ranks, const char* what, const char* advice) {
  const auto other = std::ranges::find_if(of_ranks, [&](const std::string& text) { return text != of_ranks.front(); });
  if (other == of_ranks.end()) return;
  fail("ranks: all must {}; {} has {}, and {} has {}; {}", what, ranks().describe(0), of_ranks.front(),
       ranks().describe(static_cast<int>(other - of_ranks.begin())), *other, advice);
}

}  // namespace

Team& ranks() { return joined ? *joined : no_team(); }

bool is_follower() { return launched().rank > 0; }

void join_ranks(double patience_seconds) {
  const Launch launch = launched();
  if (launch.size == 1) return;
  joined = join_mpi_team(launch, modules(), patience_seconds);
  require_same(gather_all(*joined, version_text()), "run the same version of maki", "install it on all machines");
  require_same(gather_all(*joined, arithmetic()), "compute with the same instructions",
               "set the environment variable MAKI_TARGET to one that all have");
}

int run_ranks(const std::function<int()>& lead, const std::function<void()>& follow) {
  try {
    if (ranks().leads()) return lead();
    follow();
    return interrupted() != 0 ? interrupt_exit_code() : exit_code::kDone;
  } catch (...) {
    const Failure failure = current_failure();
    failed = failure.exit_code;
    const bool told = ranks().announce_failure(failure.exit_code, failure.sentence);
    if (ranks().leads()) throw;
    keep_quiet(false);
    if (!told) to_stderr("maki: {}: {}\n", ranks().describe(ranks().rank()), failure.sentence);
    return failure.exit_code;
  }
}

// Rank 0 ends the others when it has read what they have told it; each of them waits for that.
void leave_ranks() {
  constexpr std::chrono::seconds kGrace{10};
  if (joined && failed) {
    if (!joined->leads()) std::this_thread::sleep_for(kGrace);
    joined->end_all(*failed);
  }
  joined.reset();
}

}  // namespace maki
