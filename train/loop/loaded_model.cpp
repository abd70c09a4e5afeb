#include "train/loop/loaded_model.h"

#include <algorithm>

#include "autograd/ops.h"
#include "train/config/error.h"
#include "train/config/models.h"
#include "train/config/optimization.h"
#include "train/loop/trainer.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

// Does what check_model() promises, leaves the layout of the model's parameters (names, shapes, offsets) in `planned`,
// and returns the optimizer of the run. No memory is allocated for either.
std::unique_ptr<const Optimizer> check_layout(const ContainerReader& file, const CheckpointState& state,
                                              ParameterStore& planned) {
  const auto model = make_model(state.config, vocab_sizes(state), Scope(planned));
  planned.assign_offsets();
  std::unique_ptr<const Optimizer> optimizer = make_optimizer(state.config, planned);
  check_sections(file, state.config, *optimizer);
  check_tensors(file, planned);
  return optimizer;
}

// The state in the file, after check_model().
CheckpointState read_checked_state(const ContainerReader& file) {
  CheckpointState state = read_state(file);
  check_model(file, state);
  return state;
}

}  // namespace

void check_model(const ContainerReader& file, const CheckpointState& state) {
  ParameterStore planned(dtype_named(state.config.dtype));
  check_layout(file, state, planned);
}

CheckpointState check_resumable(const std::string& path, FileSystem& fs) {
  const ContainerReader file(path, fs);
  file.verify();
  CheckpointState state = read_state(file);
  ParameterStore planned(dtype_named(state.config.dtype));
  const std::unique_ptr<const Optimizer> optimizer = check_layout(file, state, planned);
  check_moments(file, *optimizer);
  check_numbers(file, *optimizer);
  return state;
}

std::int64_t verify_checkpoint(const RunDirectory& run, const std::string& path) {
  const std::int64_t step = check_resumable(path, run.file_system()).step;
  check<CorruptFile>(run.checkpoint_file(step) == path,
                     "{}: contains the state of step {}, not of the step in its name", path, step);
  return step;
}

LoadedModel::LoadedModel(const std::string& file, const std::string& dtype)
    : LoadedModel(ContainerReader(file), dtype) {}

LoadedModel::LoadedModel(const ContainerReader& file, const std::string& dtype)
    : path(file.path()),
      state(read_checked_state(file)),
      tokenizers(load_tokenizers(state)),
      tokenizer(tokenizers.target),
      store(dtype_named(dtype.empty() ? state.config.dtype : dtype)),
      model(make_model(state.config, vocab_sizes(state), Scope(store))) {
  store.seal_uninitialized();
  if (dtype.empty() || dtype == state.config.dtype) {
    load_values(file, store);
    return;
  }
  // Another type: the values are loaded as they were written and then converted parameter by parameter, because the
  // padding differs.
  ParameterStore written(dtype_named(state.config.dtype));
  const auto same = make_model(state.config, vocab_sizes(state), Scope(written));
  written.seal_uninitialized();
  load_values(file, written);
  for (std::size_t i = 0; i < written.parameters().size(); ++i) {
    const Tensor converted = convert(written.parameters()[i]->value(), store.dtype());
    dispatch(store.dtype(), [&]<class T>() {
      std::ranges::copy(converted.values<T>(), store.values().data<T>() + store.parameters()[i]->offset());
    });
  }
  store.mark_changed();
}

const Generator& LoadedModel::generator() const {
  const auto* const generator = dynamic_cast<const Generator*>(model.get());
  check(generator != nullptr, "{}: is a model of kind {}, which does not generate; use a run of another --model", path,
        model->kind());
  return *generator;
}

}  // namespace maki
