// Runs a session inside the process of the test and captures what it reports on stderr.
#pragma once

#include <fmt/format.h>
#include <string>
#include <unistd.h>

#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/loop/session.h"

namespace maki::tests {

struct CapturedRun {
  CapturedRun(const Config& with, const std::string& text) : config(with), data(dataset_of(text, with)) {
    directory.create();
  }

  /// Continues from a step, as a resume does, and returns what was reported. Requires exit code 0.
  std::string go_on(std::int64_t step, std::int64_t max_steps, FileSystem& fs = posix()) {
    config.max_steps = max_steps;
    Trainer trainer(config, data);
    if (step > 0) {
      const ContainerReader file(directory.checkpoint_file(step));
      load_values(file, trainer.store());
      load_optimizer(file, step, trainer.optimizer());
      trainer.set_steps(step);
    }
    const std::string log = folder / "log";
    std::fflush(stderr);
    const int before = dup(STDERR_FILENO);
    REQUIRE(std::freopen(log.c_str(), "w", stderr) != nullptr);
    const auto restore = [&] {
      std::fflush(stderr);
      dup2(before, STDERR_FILENO);
      close(before);
    };
    int code = 0;
    try {
      code = Session(config, data, trainer, RunDirectory(directory.path(), fs)).train();
    } catch (...) {
      restore();
      throw;
    }
    restore();
    REQUIRE(code == 0);
    return get(log);
  }

  Folder folder;
  Config config;
  Dataset data;
  RunDirectory directory{folder / "run"};
};

}  // namespace maki::tests
