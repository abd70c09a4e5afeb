#include "train/loop/verify_run.h"

#include "data/io/error.h"
#include "train/run/verified_checkpoint.h"

namespace maki {

Verdict verdict_on(const std::string& path, const std::function<void()>& verify) {
  try {
    verify();
    return {path, ""};
  } catch (const CheckpointError& error) {
    return {path, error.what()};
  }
}

std::vector<Verdict> verify_run(const RunDirectory& run) {
  std::vector<Verdict> list;
  std::vector<std::int64_t> steps;
  do {
    steps = run.checkpoints();
    for (const std::int64_t step : steps) {
      const std::string path = run.checkpoint_file(step);
      const Verdict verdict = verdict_on(path, [&] { VerifiedCheckpoint(run, path); });
      if (verdict.fault.empty() || file_exists(path)) list.push_back(verdict);
    }
  } while (list.empty() && !steps.empty());  // all of them were deleted: there are newer ones
  return list;
}

}  // namespace maki
