#include "train/loop/loaded_model.h"

#include <algorithm>

#include "autograd/ops.h"
#include "train/run/error.h"
#include "train/loop/progress.h"
#include "train/run/run_directory.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

DType dtype_named(const std::string& name) { return name == "float64" ? DType::float64 : DType::float32; }

// Lays out the parameters of the model that a checkpoint's configuration describes (names, shapes, offsets), without
// allocating memory for them.
void plan(ParameterStore& store, const CheckpointState& state) {
  const Gpt model(Scope(store), gpt_config(state.config, state.vocab_size));
  store.lay_out();
}

// The state in the file, after check_model().
CheckpointState read_checked_state(const ContainerReader& file) {
  CheckpointState state = read_state(file);
  check_model(file, state);
  return state;
}

}  // namespace

void check_model(const ContainerReader& file, const CheckpointState& state) {
  check_sections(file, optimizer_options(state.config));
  ParameterStore planned(dtype_named(state.config.dtype));
  plan(planned, state);
  check_tensors(file, planned);
}

CheckpointState check_resumable(const std::string& path, FileSystem& fs) {
  const ContainerReader file(path, fs);
  file.verify();
  CheckpointState state = read_state(file);
  const OptimizerOptions optimizer = optimizer_options(state.config);
  check_sections(file, optimizer);
  ParameterStore planned(dtype_named(state.config.dtype));
  plan(planned, state);
  check_tensors(file, planned);
  check_moments(file, planned, optimizer);
  check_numbers(file, planned.dtype(), optimizer);
  return state;
}

void verify_checkpoint(const RunDirectory& run, const std::string& path) {
  const std::int64_t step = check_resumable(path, run.file_system()).step;
  check<LostFile>(run.checkpoint_file(step) == path, "{}: contains the state of step {}, not of the step in its name",
                  path, step);
}

std::string chosen_checkpoint(const std::string& run_or_file, const std::string& choice) {
  std::vector<std::string> notes;
  std::string path = choose_checkpoint(run_or_file, choice, notes);
  for (const std::string& note : notes) to_stderr("{}\n", note);
  return path;
}

LoadedModel::LoadedModel(const std::string& file, const std::string& dtype)
    : LoadedModel(ContainerReader(file), dtype) {}

LoadedModel::LoadedModel(const ContainerReader& file, const std::string& dtype)
    : path(file.path()),
      state(read_checked_state(file)),
      tokenizer(load_tokenizer(state.tokenizer)),
      store(dtype_named(dtype.empty() ? state.config.dtype : dtype)),
      model(Scope(store), gpt_config(state.config, state.vocab_size)) {
  store.seal_undrawn();
  if (dtype.empty() || dtype == state.config.dtype) {
    load_values(file, store);
    return;
  }
  // Another type: loaded as it was written, then converted parameter by parameter, because the padding differs.
  ParameterStore written(dtype_named(state.config.dtype));
  const Gpt same(Scope(written), gpt_config(state.config, state.vocab_size));
  written.seal_undrawn();
  load_values(file, written);
  for (std::size_t i = 0; i < written.parameters().size(); ++i) {
    const Tensor converted = convert(written.parameters()[i]->value(), store.dtype());
    dispatch(store.dtype(), [&]<class T>() {
      std::ranges::copy(converted.values<T>(), store.values().data<T>() + store.parameters()[i]->offset());
    });
  }
  store.touch();
}

}  // namespace maki
