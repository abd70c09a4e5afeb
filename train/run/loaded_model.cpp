#include "train/run/loaded_model.h"

#include <algorithm>

#include "autograd/ops.h"
#include "data/tokenizer/special_text.h"
#include "nn/low_rank.h"
#include "train/run/config/models.h"
#include "train/run/config/trained_parameters.h"
#include "train/run/counted_prior.h"
#include "train/run/verified_checkpoint.h"

namespace maki {

LoadedModel::LoadedModel(const std::string& file, std::optional<DType> dtype, bool specials, WeightNumbers weights)
    : LoadedModel(ContainerReader(file), dtype) {
  if (weights == WeightNumbers::int8) round_weights();
  if (!specials) return;
  tokenizers = finding_specials(tokenizers);
  tokenizer = tokenizers.target;
}

LoadedModel::LoadedModel(const ContainerReader& file, std::optional<DType> dtype)
    : path(file.path()),
      state(read_checked_state(file)),
      tokenizers(load_tokenizers(state)),
      tokenizer(tokenizers.target),
      store(dtype.value_or(state.config.dtype)),
      model(make_model(state.config, vocab_sizes(state), Scope(store))) {
  if (!state.ngram_counts.empty())
    model->as_generator()->use_prior(std::make_shared<const CountedPrior>(state.ngram_counts, state.vocab_size));
  if (store.dtype() == state.config.dtype) {
    store.assign_offsets();
    seal_with_stored_values(file, store);
    return;
  }
  store.seal_uninitialized();
  // Another type: the values are loaded as they were written and then converted parameter by parameter, because the
  // padding differs.
  ParameterStore written(state.config.dtype);
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

void LoadedModel::round_weights() {
  check(store.dtype() == DType::float32,
        "{}: has numbers of type {}, and only those of a float32 model are rounded to 8 bits; omit `weights`", path,
        to_string(store.dtype()));
  store.keep_int8_values();
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
