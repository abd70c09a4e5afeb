// Runs a session inside the process of the test and captures what it reports on stderr.
#pragma once

#include <fmt/format.h>
#include <optional>
#include <string>
#include <unistd.h>

#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/app/console.h"
#include "train/loop/session.h"

namespace maki::tests {

struct CapturedRun {
  CapturedRun(const Config& with, const std::string& text) : config(with), data(dataset_of(text, with)) {
    directory.create();
  }

  /// Continues from the checkpoint of a step, as a resume does, or begins if `step` is 0, up to `max_steps`. Returns
  /// what was reported. Requires that it is not interrupted. If the session throws, stderr is restored.
  std::string go_on(std::int64_t step, std::int64_t max_steps, FileSystem& fs = posix_file_system()) {
    config.max_steps = max_steps;
    TextTrainer trainer(config, data);
    const RunDirectory run(directory.path(), fs);
    std::optional<VerifiedCheckpoint> from;
    if (step > 0) trainer.restore(from.emplace(run, run.checkpoint_file(step)));
    const std::string log = folder / "log";
    std::fflush(stderr);
    const int before = dup(STDERR_FILENO);
    REQUIRE(std::freopen(log.c_str(), "w", stderr) != nullptr);
    const auto restore = [&] {
      std::fflush(stderr);
      dup2(before, STDERR_FILENO);
      close(before);
    };
    auto end = SessionEnd::interrupted;
    try {
      Console console(max_steps, run.path(), data.best_possible_loss);
      end = Session(config, trainer, run, console, {.resumed = from ? &*from : nullptr}).train();
    } catch (...) {
      restore();
      throw;
    }
    restore();
    REQUIRE(end != SessionEnd::interrupted);
    return read_bytes(log);
  }

  TemporaryFolder folder;
  Config config;
  Dataset data;
  RunDirectory directory{folder / "run"};
};

}  // namespace maki::tests
