#include "train/loop/language_model_task.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/ngram/ngram_model.h"
#include "train/loop/generate_text.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

void ensure_shape(Batch& batch, const Shape& shape) {
  if (batch.ids && batch.ids.shape() == shape) return;
  batch.ids = empty(shape, DType::int32);
  batch.targets = empty(shape, DType::int32);
}

// Characters of the validation text, without decoding it as a whole. What ends its documents is none of them.
std::int64_t characters_of_tokens(const Dataset& data) {
  constexpr std::size_t kBlockTokens = 1 << 16;  // per read: few calls, 256 KiB of memory
  const Tokenizer& tokenizer = *data.tokenizer;
  const TokenSpan val = data.val;
  const std::optional<std::int32_t> end = data.documents > 0 ? tokenizer.end_of_text() : std::optional<std::int32_t>();
  std::int64_t count = 0;
  for (std::size_t at = 0; at < val.size(); at += kBlockTokens) {
    for (const std::int32_t id : val.ids(at, kBlockTokens)) {
      if (id == end) continue;
      for (const char byte : tokenizer.bytes(id)) count += is_continuation(byte) ? 0 : 1;
    }
  }
  return count;
}

// The token beyond which no context continues, if documents are respected and the vocabulary has one that ends them.
std::optional<std::int32_t> restart_token(const Config& config, const Tokenizer& tokenizer) {
  return config.respect_documents ? tokenizer.end_of_text() : std::nullopt;
}

}  // namespace

LanguageModelTask::LanguageModelTask(const Config& config, const Dataset& dataset)
    : LanguageModelTask(config, std::shared_ptr<const Dataset>(std::shared_ptr<void>(), &dataset)) {}

LanguageModelTask::LanguageModelTask(const Config& config, std::shared_ptr<const Dataset> dataset, EvalText text)
    : config_(config), dataset_(std::move(dataset)), text_(std::move(text)) {
  order_windows(carries_state(config) ? RowOrder::continued : RowOrder::shuffled);
  if (config.ngram_prior > 0) count_ngrams();
  for (const std::string& counts : text_.other_counts)
    other_priors_.push_back(std::make_shared<const CountedPrior>(counts, dataset_->tokenizer->vocab_size()));
}

LanguageModelTask::LanguageModelTask(const Config& config, const LanguageModelTask& other)
    : config_(config),
      dataset_(other.dataset_),
      text_(other.text_),
      prior_(other.prior_),
      held_out_(other.held_out_),
      other_priors_(other.other_priors_),
      counted_share_(other.counted_share_) {
  order_windows(carries_state(config) ? RowOrder::continued : RowOrder::shuffled);
}

void LanguageModelTask::order_windows(RowOrder order) {
  const Config& c = config_;
  const auto documents = [&](TokenSpan tokens, std::int64_t stride) -> std::shared_ptr<const DocumentSequences> {
    if (!c.respect_documents) return nullptr;
    const std::optional<std::int32_t> end = dataset_->tokenizer->end_of_text();
    return std::make_shared<const DocumentSequences>(tokens, end, c.block_size, stride);
  };
  if (!dataset_->train.empty()) {
    documents_ = documents(dataset_->train, 0);
    train_.emplace(dataset_->train, c.batch_size, c.block_size, c.grad_accum, static_cast<std::uint64_t>(c.seed), order,
                   documents_);
    eval_train_.emplace(dataset_->train, c.batch_size, eval_width(Part::train), order, 0, documents_);
  }
  if (dataset_->val.empty()) return;
  const std::int64_t width = eval_width(Part::val);
  eval_val_.emplace(dataset_->val, c.batch_size, width, order, std::min(text_.stride, width),
                    documents(dataset_->val, text_.stride));
}

// The tokens of a row. A text that fits into one window, as that of `maki eval` may and that of a run never does, is
// not padded: attention takes a time that grows with the square of the context, which may be long in an imported model.
std::int64_t LanguageModelTask::eval_width(Part part) const {
  const auto targets = static_cast<std::int64_t>((part == Part::train ? dataset_->train : dataset_->val).size()) - 1;
  return config_.respect_documents ? config_.block_size : std::clamp<std::int64_t>(targets, 1, config_.block_size);
}

void LanguageModelTask::count_ngrams() {
  if (!text_.ngram_counts.empty()) {
    prior_ = std::make_shared<const CountedPrior>(text_.ngram_counts, dataset_->tokenizer->vocab_size());
  } else if (!dataset_->train.empty()) {
    NgramModel model(dataset_->tokenizer->vocab_size(), static_cast<int>(config_.ngram_prior), {},
                     restart_token(config_, *dataset_->tokenizer));
    counted_share_ = model.count(dataset_->train);
    prior_ = std::make_shared<const CountedPrior>(std::make_shared<const NgramTrie>(model));
    held_out_.emplace(prior_->counts(), dataset_->train, model.counted());
  }
}

std::unique_ptr<Model> LanguageModelTask::make_model(const Scope& scope) const {
  std::unique_ptr<Model> model = maki::make_model(config_, vocab_sizes(), scope);
  if (prior_) model->as_generator()->use_prior(prior_);
  return model;
}

// Padding gets the prior of whatever follows, and rows of padding that of the beginning of the text: their targets are
// ignored.
void LanguageModelTask::set_priors(Batch& batch, TokenSpan text, std::span<const std::int64_t> starts,
                                   bool held_out) const {
  std::vector<std::int64_t> inside;
  for (const std::int64_t start : starts) inside.push_back(start % static_cast<std::int64_t>(text.size()));
  const auto of_windows = [&](const CountedPrior& prior, const HeldOutCounts* counts) {
    return prior_of_windows(prior.counts(), text, inside, batch.ids.shape()[1], counts);
  };
  if (prior_) batch.prior = of_windows(*prior_, held_out && held_out_ ? &*held_out_ : nullptr);
  batch.other_priors.clear();
  for (const auto& other : other_priors_) batch.other_priors.push_back(of_windows(*other, nullptr));
}

void LanguageModelTask::fill(std::int64_t step, std::int64_t micro, Batch& batch) const {
  ensure_shape(batch, {config_.batch_size, config_.block_size});
  batch.target_count =
      train_.value().fill(step, micro, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
  if (prior_) set_priors(batch, dataset_->train, window_starts(step, micro), /*held_out=*/true);
}

std::vector<std::int64_t> LanguageModelTask::window_starts(std::int64_t step, std::int64_t micro) const {
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < config_.batch_size; ++row) starts.push_back(train_.value().start(step, micro, row));
  return starts;
}

std::int64_t LanguageModelTask::eval_batches(Part part) const {
  const std::optional<EvalBatches>& batches = part == Part::train ? eval_train_ : eval_val_;
  return batches ? batches->count() : 0;
}

void LanguageModelTask::fill_eval(Part part, std::int64_t i, Batch& batch) const {
  const EvalBatches& batches = (part == Part::train ? eval_train_ : eval_val_).value();
  ensure_shape(batch, {batches.rows(i), eval_width(part)});
  batch.target_count = batches.fill(i, batch.ids.values<std::int32_t>(), batch.targets.values<std::int32_t>());
  if (!prior_ && other_priors_.empty()) return;
  std::vector<std::int64_t> starts;
  for (std::int64_t row = 0; row < batches.rows(i); ++row) starts.push_back(batches.start(i, row));
  set_priors(batch, part == Part::train ? dataset_->train : dataset_->val, starts, part == Part::train);
}

CheckpointState LanguageModelTask::data_state() const {
  CheckpointState state;
  state.vocab_size = dataset_->tokenizer->vocab_size();
  state.characters = dataset_->characters;
  state.train_tokens = static_cast<std::int64_t>(dataset_->train.size());
  state.val_tokens = static_cast<std::int64_t>(dataset_->val.size());
  state.corpus_hash = dataset_->corpus_hash;
  state.best_possible_loss = dataset_->best_possible_loss.value_or(0);
  state.tokenizer = dataset_->tokenizer->save();
  if (prior_) state.ngram_counts = prior_->counts().save();
  return state;
}

std::string LanguageModelTask::describe_data() const {
  const std::string sequences =
      documents_ ? fmt::format("; {}; {} for training, of which {:.1f} % is filling",
                               pluralize(dataset_->documents, "document"), pluralize(documents_->count(), "sequence"),
                               100 * documents_->filling())
                 : "";
  return fmt::format("{}; vocabulary of {}; {} for training, {} for validation{}",
                     pluralize(dataset_->characters, "character"), with_separators(dataset_->tokenizer->vocab_size()),
                     pluralize(static_cast<std::int64_t>(dataset_->train.size()), "token"),
                     with_separators(static_cast<std::int64_t>(dataset_->val.size())), sequences);
}

std::string LanguageModelTask::describe_step() const {
  return documents_ ? pluralize(train_->sequences_per_step(), "sequence")
                    : pluralize(train_.value().tokens_per_step(), "token");
}

std::optional<CountingReport> LanguageModelTask::counting(const StopRequest& stop) const {
  const Tokens &train = dataset_->train, &val = dataset_->val;
  if (train.empty() || val.empty()) return std::nullopt;
  const bool known = held_out_ && prior_->counts().order() == kMaxCountedNgram;
  NgramModel model(dataset_->tokenizer->vocab_size(), kMaxCountedNgram, {},
                   restart_token(config_, *dataset_->tokenizer));
  const double counted = known ? counted_share_ : model.count(train, stop);
  const NgramLoss loss = known ? prior_->counts().evaluate(val, stop) : model.evaluate(val, stop);
  if (loss.targets == 0 || stop.requested()) return std::nullopt;
  const std::int64_t characters = text_.characters > 0 ? text_.characters : characters_of_tokens(*dataset_);
  const double tokens_per_character = static_cast<double>(val.size()) / static_cast<double>(characters);
  return CountingReport{.order = model.order(),
                        .val_loss = loss.loss,
                        .nats_per_character = loss.loss * tokens_per_character,
                        .train_share = counted,
                        .val_share = loss.share};
}

std::vector<ReportLine> LanguageModelTask::measure(const Model&, const SampledLoss& sampled, const MeasureOptions&,
                                                   const StopRequest&) const {
  const double loss = sampled.loss.mean, nats = loss * static_cast<double>(dataset_->val.size());
  const double per_character = nats / static_cast<double>(text_.characters);
  const double bits_per_byte = nats / static_cast<double>(text_.bytes) / std::numbers::ln2;
  std::vector<ReportLine> list = {
      measure_extent(text_.own ? "validation part of the run's text" : "whole text", sampled),
      {"", "", {{"part", text_.own ? "validation" : "whole"}}}};
  if (text_.unknown > 0) list.push_back({"unknown", text_.unknown_note + "; the results below are for the rest"});
  list.push_back({"loss",
                  fmt::format("{:.4f} nats per token, {:.4f} per character", loss, per_character),
                  {{"val_loss", loss}, {"nats_per_character", per_character}}});
  if (text_.entropy_per_character && text_.unknown == 0) {
    list.push_back({"best",
                    fmt::format("{:.4f} nats per character is the lowest possible loss", *text_.entropy_per_character),
                    {{"best_possible_nats_per_character", *text_.entropy_per_character}}});
  }
  list.push_back({"perplexity", fmt::format("{:.3f}", std::exp(loss)), {{"perplexity", std::exp(loss)}}});
  list.push_back({"bits/byte", fmt::format("{:.4f}", bits_per_byte), {{"bits_per_byte", bits_per_byte}}});
  list.push_back({"bits/char",
                  fmt::format("{:.4f}", per_character / std::numbers::ln2),
                  {{"bits_per_character", per_character / std::numbers::ln2}}});
  if (text_.stride > 0) list.push_back({"", "", {{"stride", text_.stride}}});
  list.push_back({"", "", {{"unknown", text_.unknown_policy}, {"unknown_characters", text_.unknown}}});
  return list;
}

std::optional<std::string> LanguageModelTask::sample(const Model& model, std::uint64_t seed, std::int64_t step,
                                                     const StopRequest& stop) const {
  constexpr std::int64_t kSampleTokens = 100;  // of a sample in the log: a few lines of characters
  const Generator* const generator = model.as_generator();
  if (generator == nullptr) return std::nullopt;
  TextOptions options;
  options.generate.max_tokens = kSampleTokens;
  options.generate.sampling.seed = seed;
  std::string text;
  const GeneratedText written = generate_text(
      *generator, *dataset_->tokenizer, default_prompt(*dataset_->tokenizer), options, static_cast<std::uint64_t>(step),
      [&](std::string_view piece) { text += piece; }, stop);
  if (written.end == TextEnd::interrupt) return std::nullopt;
  return text;
}

}  // namespace maki
