#include "train/run/loaded_model.h"

#include <algorithm>

#include "autograd/core/storage.h"
#include "autograd/ops.h"
#include "data/io/error.h"
#include "data/tokenizer/special_text.h"
#include "nn/low_rank.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/config/models.h"
#include "train/run/config/trained_parameters.h"
#include "train/run/counted_prior.h"
#include "train/run/memory_section.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

// The layout of what a checkpoint of this state contains. No memory is allocated for a model.
struct Layout {
  explicit Layout(const CheckpointState& state)
      : store(dtype_named(state.config.dtype)), model(make_model(state.config, vocab_sizes(state), Scope(store))) {
    store.assign_offsets();
    optimizer = make_optimizer(state.config, store);
    carried = CarriedLayout(*model, state.config.grad_accum, state.config.batch_size);
  }

  void check_against(const ContainerReader& file, const CheckpointState& state) const {
    check_sections(file, state.config, *optimizer, carried);
    check_tensors(file, store);
  }

  ParameterStore store;
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Optimizer> optimizer;
  CarriedLayout carried;
};

// The layout of a checkpoint. A configuration that describes no model, such as a pattern of `freeze` that matches
// nothing, means that the file is damaged.
std::unique_ptr<const Layout> layout_of(const ContainerReader& file, const CheckpointState& state) {
  try {
    return std::make_unique<const Layout>(state);
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    fail<CorruptFile>("{}: {}", file.path(), error.what());
  }
}

// The state in the file, after check_model().
CheckpointState read_checked_state(const ContainerReader& file) {
  CheckpointState state = read_state(file);
  check_model(file, state);
  return state;
}

}  // namespace

void check_model(const ContainerReader& file, const CheckpointState& state) {
  layout_of(file, state)->check_against(file, state);
}

CheckpointState check_resumable(const std::string& path, FileSystem& fs) {
  const ContainerReader file(path, fs);
  file.verify();
  CheckpointState state = read_state(file);
  const auto held = layout_of(file, state);
  const Layout& layout = *held;
  layout.check_against(file, state);
  check_moments(file, *layout.optimizer);
  check_memory_length(file, layout.carried, tokens_per_row(state));
  check_numbers(file, *layout.optimizer);
  check_memory_numbers(file, layout.carried);
  return state;
}

std::int64_t verify_checkpoint(const RunDirectory& run, const std::string& path) {
  const std::int64_t step = check_resumable(path, run.file_system()).step;
  check<CorruptFile>(run.checkpoint_file(step) == path,
                     "{}: contains the state of step {}, not of the step in its name", path, step);
  return step;
}

LoadedModel::LoadedModel(const std::string& file, const std::string& dtype, bool specials)
    : LoadedModel(ContainerReader(file), dtype) {
  if (!specials) return;
  tokenizers = finding_specials(tokenizers);
  tokenizer = tokenizers.target;
}

LoadedModel::LoadedModel(const ContainerReader& file, const std::string& dtype)
    : path(file.path()),
      state(read_checked_state(file)),
      tokenizers(load_tokenizers(state)),
      tokenizer(tokenizers.target),
      store(dtype_named(dtype.empty() ? state.config.dtype : dtype)),
      model(make_model(state.config, vocab_sizes(state), Scope(store))) {
  if (!state.ngram_counts.empty())
    model->as_generator()->use_prior(std::make_shared<const CountedPrior>(state.ngram_counts, state.vocab_size));
  if (dtype.empty() || dtype == state.config.dtype) {
    store.assign_offsets();
    seal_with_stored_values(file, store);
    return;
  }
  store.seal_uninitialized();
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

namespace {

// Its patterns may name adapters.
CheckpointState without_adapters(CheckpointState state) {
  state.config = without_adapters(state.config);
  state.config.freeze.clear();
  return state;
}

}  // namespace

LoadedModel::LoadedModel(const LoadedModel& adapted, MergeAdapters)
    : path(adapted.path),
      state(without_adapters(adapted.state)),
      tokenizers(adapted.tokenizers),
      tokenizer(adapted.tokenizer),
      store(adapted.store.dtype()),
      model(make_model(state.config, vocab_sizes(state), Scope(store))) {
  if (!state.ngram_counts.empty()) model->as_generator()->use_prior(adapted.generator().prior());
  store.seal_uninitialized();
  merge_adapters(adapted.store, adapter_scale(adapted.state.config), store);
}

PairTokenizers finding_specials(const PairTokenizers& tokenizers) {
  const auto& [source, target] = tokenizers;
  if (source == target) {
    const std::shared_ptr<const Tokenizer> both = finding_specials(*target);
    return {both, both};
  }
  const bool only_one = has_specials(*source) != has_specials(*target);
  return {only_one && !has_specials(*source) ? source : finding_specials(*source),
          only_one && !has_specials(*target) ? target : finding_specials(*target)};
}

const Generator& LoadedModel::generator() const {
  const Generator* const generator = model->as_generator();
  check(generator != nullptr, "{}: is a model of kind {}, which does not generate; use a run of another `model`", path,
        model->kind());
  return *generator;
}

}  // namespace maki
