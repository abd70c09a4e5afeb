#include "train/loaded_model.h"

#include <algorithm>

#include "data/error.h"
#include "train/error.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace maki {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_of(const ContainerReader& file, const CheckpointState& state) {
  try {
    std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(state.tokenizer);
    check<CheckpointError>(tokenizer->vocab_size() == state.vocab_size,
                           "{}: its tokenizer has {} ids where its model has {}", file.path(), tokenizer->vocab_size(),
                           state.vocab_size);
    return tokenizer;
  } catch (const CorpusError& error) {
    fail<CheckpointError>("{}: {}", file.path(), error.what());
  }
}

// Weights and the vocabulary must fit the file before a model of that size is made.
void check_size(const ContainerReader& file, const CheckpointState& state) {
  const GptConfig config = gpt_config(state.config, state.vocab_size);
  const double least = static_cast<double>(config.vocab_size + config.block_size) * static_cast<double>(config.n_embd) +
                       12.0 * static_cast<double>(config.n_layer) * static_cast<double>(config.n_embd) *
                           static_cast<double>(config.n_embd);
  check<CheckpointError>(least * 4 <= static_cast<double>(file.length("values")),
                         "{}: its weights are fewer than its configuration needs", file.path());
}

DType dtype_named(const std::string& name) { return name == "float64" ? DType::float64 : DType::float32; }

}  // namespace

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
      state(read_state(file)),
      tokenizer(tokenizer_of(file, state)),
      store(dtype_named(dtype.empty() ? state.config.dtype : dtype)),
      model((check_size(file, state), Scope(store)), gpt_config(state.config, state.vocab_size)) {
  store.seal(0);
  if (dtype.empty() || dtype == state.config.dtype) {
    load_values(file, store);
    return;
  }
  // The other type: read as it was written, then converted parameter by parameter (padding differs).
  ParameterStore written(dtype_named(state.config.dtype));
  const Gpt same(Scope(written), gpt_config(state.config, state.vocab_size));
  written.seal(0);
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
