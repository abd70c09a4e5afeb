#include "train/loop/language_model_task.h"

#include "train/config/models.h"
#include "train/loop/generate_text.h"

namespace maki {
namespace {

void ensure_shape(Batch& batch, const Shape& shape) {
  if (batch.ids && batch.ids.shape() == shape) return;
  batch.ids = empty(shape, DType::int32);
  batch.targets = empty(shape, DType::int32);
}

}  // namespace

LanguageModelTask::LanguageModelTask(const Config& config, const Dataset& dataset)
    : config_(config), dataset_(dataset) {
  if (!dataset.train.empty()) {
    train_.emplace(dataset.train, config.batch_size, config.block_size, config.grad_accum,
                   static_cast<std::uint64_t>(config.seed));
    eval_train_.emplace(dataset.train, config.batch_size, config.block_size);
  }
  if (!dataset.val.empty()) eval_val_.emplace(dataset.val, config.batch_size, config.block_size);
}

std::unique_ptr<Model> LanguageModelTask::make_model(const Scope& scope) const {
  return maki::make_model(config_, dataset_.tokenizer->vocab_size(), scope);
}

void LanguageModelTask::fill(std::int64_t step, std::int64_t micro, Batch& batch) const {
  ensure_shape(batch, {config_.batch_size, config_.block_size});
  batch.target_count =
      train_.value().fill(step, micro, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
}

std::int64_t LanguageModelTask::eval_batches(Part part) const {
  const std::optional<EvalBatches>& batches = part == Part::train ? eval_train_ : eval_val_;
  return batches ? batches->count() : 0;
}

void LanguageModelTask::fill_eval(Part part, std::int64_t i, Batch& batch) const {
  const EvalBatches& batches = (part == Part::train ? eval_train_ : eval_val_).value();
  ensure_shape(batch, {batches.rows(i), config_.block_size});
  batch.target_count = batches.fill(i, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
}

CheckpointState LanguageModelTask::data_state() const {
  CheckpointState state;
  state.vocab_size = dataset_.tokenizer->vocab_size();
  state.characters = dataset_.characters;
  state.train_tokens = static_cast<std::int64_t>(dataset_.train.size());
  state.val_tokens = static_cast<std::int64_t>(dataset_.val.size());
  state.corpus_hash = dataset_.corpus_hash;
  state.best_possible_loss = dataset_.best_possible_loss.value_or(0);
  state.tokenizer = dataset_.tokenizer->save();
  return state;
}

std::optional<std::string> LanguageModelTask::sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                                     const std::function<bool()>& stop) const {
  constexpr std::int64_t kTokens = 100;
  const auto* const generator = dynamic_cast<const Generator*>(&model);
  if (generator == nullptr) return std::nullopt;
  TextOptions options;
  options.generate.max_tokens = kTokens;
  options.generate.sampling.seed = seed;
  std::string text;
  const GeneratedText written = generate_text(
      *generator, *dataset_.tokenizer, default_prompt(*dataset_.tokenizer), options, static_cast<std::uint64_t>(step),
      [&](std::string_view piece) { text += piece; }, stop);
  if (written.end == TextEnd::interrupt) return std::nullopt;
  return text;
}

}  // namespace maki
