#include "train/run/verified_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>

#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "train/run/memory_section.h"

namespace maki {
namespace {

// The model of a checkpoint. A configuration that describes no model, such as a pattern of `freeze` that matches
// nothing, means that the file is damaged.
std::unique_ptr<const TrainableModel> described_model(const ContainerReader& file, const CheckpointState& state) {
  try {
    return std::make_unique<const TrainableModel>(state.config, vocab_sizes(state));
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    fail<CorruptFile>("{}: {}", file.path(), error.what());
  }
}

void check_layout(const ContainerReader& file, const CheckpointState& state, const TrainableModel& model) {
  check_sections(file, state.config, *model.optimizer, model.carried);
  check_tensors(file, model.store);
}

}  // namespace

CheckpointState read_checked_state(const ContainerReader& file) {
  CheckpointState state = read_state(file);
  check_layout(file, state, *described_model(file, state));
  return state;
}

VerifiedCheckpoint::VerifiedCheckpoint(const std::string& path, FileSystem& fs)
    : file_(path, fs), state_(read_state(file_)) {
  verify(*described_model(file_, state_));
}

VerifiedCheckpoint::VerifiedCheckpoint(const std::string& path, const TrainableModel& model, FileSystem& fs)
    : file_(path, fs), state_(read_state(file_)) {
  verify(model);
}

VerifiedCheckpoint::VerifiedCheckpoint(const RunDirectory& run, const std::string& path)
    : VerifiedCheckpoint(path, run.file_system()) {
  check<CorruptFile>(run.checkpoint_file(state_.step) == path,
                     "{}: contains the state of step {}, not of the step in its name", path, state_.step);
}

void VerifiedCheckpoint::verify(const TrainableModel& model) const {
  check_layout(file_, state_, model);
  check_moments(file_, *model.optimizer);
  check_memory_length(file_, model.carried, tokens_per_row(state_));
  check_numbers(file_, *model.optimizer, model.carried);
}

VerifiedCheckpoint newest_intact(const RunDirectory& run, std::vector<std::string>& notes) {
  std::vector<std::int64_t> steps = run.checkpoints();
  if (const auto named = run.last(); named && std::ranges::find(steps, *named) == steps.end()) {
    notes.push_back(fmt::format("{}/last: points to {}, which is missing; using the newest intact checkpoint",
                                run.checkpoints_directory(),
                                std::filesystem::path(run.checkpoint_file(*named)).filename().string()));
  }
  std::vector<std::string> damaged;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return VerifiedCheckpoint(run, run.checkpoint_file(*step));
    } catch (const CorruptFile& error) {
      damaged.emplace_back(error.what());
      notes.push_back(fmt::format("{}; falling back to the previous checkpoint", error.what()));
    } catch (const CheckpointError& error) {
      fail<CheckpointError>("{}; it may be intact, so no older checkpoint was used and nothing was changed",
                            error.what());
    }
  }
  fail<CheckpointError>("{}: contains no intact checkpoint{}", run.path(),
                        damaged.empty() ? "" : fmt::format(" ({})", fmt::join(damaged, "; ")));
}

Config recorded_config(const RunDirectory& run, const CheckpointState& state) {
  Config config = state.config;
  if (file_exists(run.config_file())) run.apply_config(config);
  for (const Field& field : fields()) {
    if (!field.is_training()) continue;
    const std::string trained = field_text(state.config, field), recorded = field_text(config, field);
    check(trained == recorded,
          "{}: {} is fixed for this run at {}; got {}; restore it, or start a new run to change it", run.config_file(),
          field.name, trained, recorded);
    copy_field(field, state.config, config);
  }
  config.init_from = state.config.init_from;
  config.taught_by = state.config.taught_by;
  config.arithmetic = state.config.arithmetic;
  return config;
}

Verdict verdict_on(const std::string& path, const std::function<void()>& verify) {
  try {
    verify();
    return {path, ""};
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
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
      const Verdict verdict = verdict_on(path, [&] { recorded_config(run, VerifiedCheckpoint(run, path).state()); });
      // No verdict on a checkpoint that a running training has deleted meanwhile.
      if (verdict.fault.empty() || file_exists(path)) list.push_back(verdict);
    }
  } while (list.empty() && !steps.empty());  // a running training deleted all of them, so there are newer ones
  return list;
}

}  // namespace maki
