#include "train/loop/translation_task.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "data/io/number.h"
#include "train/loop/bleu.h"
#include "train/loop/evaluate.h"
#include "train/loop/random_dataset.h"
#include "train/loop/tasks.h"
#include "train/loop/translate.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

void fill_batch(const TokenPairs& pairs, std::span<const std::int32_t> rows, const PairEnds& ends, Batch& batch) {
  const PairBatch made = make_pair_batch(pairs, rows, ends);
  const Shape source{made.rows, made.source_length}, target{made.rows, made.target_length};
  batch.source = tensor(made.source, source);
  batch.source_mask = made.padded_source ? tensor(made.source_mask, source) : Tensor();
  batch.ids = tensor(made.ids, target);
  batch.targets = tensor(made.targets, target);
  batch.target_count = made.target_count;
}

std::string describe_search(const MeasureOptions& options) {
  if (options.beam_size == 1) return "greedy";
  return fmt::format("beam of {}, length penalty {}", options.beam_size, options.length_penalty);
}

}  // namespace

TranslationTask::TranslationTask(const Config& config, std::shared_ptr<const PairDataset> data, std::string what)
    : config_(config), data_(std::move(data)), what_(std::move(what)), ends_(ends_of(data_->tokenizers)) {
  if (data_->train.size() > 0) {
    train_.emplace(data_->train, config.batch_size, static_cast<std::uint64_t>(config.seed));
    eval_train_.emplace(data_->train, config.batch_size);
  }
  if (data_->val.size() > 0) eval_val_.emplace(data_->val, config.batch_size);
}

std::unique_ptr<Model> TranslationTask::make_model(const Scope& scope) const {
  return maki::make_model(config_, vocab_sizes(), scope);
}

void TranslationTask::fill(std::int64_t step, std::int64_t micro, Batch& batch) const {
  fill_batch(data_->train, train_.value().rows(first_batch(step) + micro), ends_, batch);
}

std::int64_t TranslationTask::targets(std::int64_t begin, std::int64_t end) const {
  return train_.value().sum(begin, end, [&](std::int64_t row) { return data_->train.target_length(row) + 1; });
}

double TranslationTask::epochs(std::int64_t steps) const {
  return static_cast<double>(first_batch(steps)) / static_cast<double>(train_.value().per_epoch());
}

std::int64_t TranslationTask::eval_batches(Part part) const {
  const std::optional<PairEvalBatches>& batches = part == Part::train ? eval_train_ : eval_val_;
  return batches ? batches->count() : 0;
}

void TranslationTask::fill_eval(Part part, std::int64_t i, Batch& batch) const {
  const bool train = part == Part::train;
  fill_batch(train ? data_->train : data_->val, (train ? eval_train_ : eval_val_).value().rows(i), ends_, batch);
}

CheckpointState TranslationTask::data_state() const {
  const PairTokenizers& tokenizers = data_->tokenizers;
  CheckpointState state;
  state.vocab_size = vocab_sizes().target;
  state.characters = data_->characters;
  state.train_tokens = data_->train.token_count();
  state.val_tokens = data_->val.token_count();
  state.corpus_hash = data_->corpus_hash;
  state.tokenizer = tokenizers.target->save();
  if (!config_.share_vocabulary) state.source_tokenizer = tokenizers.source->save();
  return state;
}

std::string TranslationTask::describe_data() const {
  return fmt::format("{} for training, {} for validation; vocabulary of {} for sources, {} for targets",
                     pluralize(data_->train.size(), "pair"), with_separators(data_->val.size()),
                     with_separators(ends_.source + 1), with_separators(ends_.target + 1));
}

std::string TranslationTask::describe_step() const {
  return pluralize(config_.batch_size * config_.grad_accum, "pair");
}

std::vector<ReportLine> TranslationTask::measure(const Model& model, const SampledLoss& sampled,
                                                 const MeasureOptions& options, const StopRequest& stop) const {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::string> references, outputs;
  for (std::int64_t i = 0; i < sampled.taken; ++i) {
    for (const std::int32_t row : eval_val_.value().rows(spread_index(i, sampled.taken, sampled.batches))) {
      sources.push_back(data_->val.source(row));
      references.push_back(data_->val_targets[static_cast<std::size_t>(row)]);
    }
  }
  const auto results = translate(
      *model.as_generator(), sources, ends_,
      {.beam_size = options.beam_size, .length_penalty = options.length_penalty, .max_tokens = config_.block_size},
      stop);
  const double loss = sampled.loss.mean;
  std::vector<ReportLine> list = {
      measure_extent(what_, sampled),
      {"loss", fmt::format("{:.4f} nats per target token", loss), {{"val_loss", loss}}},
      {"perplexity", fmt::format("{:.3f}", std::exp(loss)), {{"perplexity", std::exp(loss)}}}};
  if (stop.requested()) return list;  // some of the results are missing
  for (const Hypothesis& result : results) outputs.push_back(translated_line(*data_->tokenizers.target, result));
  std::int64_t exact = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) exact += outputs[i] == references[i] ? 1 : 0;
  const Bleu bleu = corpus_bleu({outputs.begin(), outputs.end()}, {references.begin(), references.end()});
  const bool scored = bleu.precisions[3] > 0;  // false if no output has four words
  const double share = static_cast<double>(exact) / static_cast<double>(outputs.size());
  list.push_back(
      {"search", describe_search(options), {{"beam", options.beam_size}, {"length_penalty", options.length_penalty}}});
  list.push_back(
      {"exact",
       fmt::format("{:.2f} % ({} of {})", 100 * share, with_separators(exact), pluralize(std::ssize(outputs), "pair")),
       {{"exact_match", share}, {"pairs", outputs.size()}}});
  if (data_->unknown > 0) {
    list.push_back({"unknown",
                    pluralize(data_->unknown, "character") + " that the vocabularies lack were left out or replaced",
                    {{"unknown_characters", data_->unknown}}});
  }
  if (scored) {
    list.push_back({"BLEU-4",
                    fmt::format("{:.2f} (brevity penalty {:.3f})", bleu.score, bleu.brevity_penalty),
                    {{"bleu", bleu.score}, {"bleu_brevity_penalty", bleu.brevity_penalty}}});
  }
  return list;
}

std::optional<std::string> TranslationTask::sample(const Model& model, std::uint64_t, std::int64_t step,
                                                   const StopRequest& stop) const {
  const TokenPairs& pairs = data_->val.size() > 0 ? data_->val : data_->train;
  const std::int64_t i = step % pairs.size();
  const std::vector<std::vector<std::int32_t>> source = {pairs.source(i)};
  if (stop.requested()) return std::nullopt;
  const auto results = translate(*model.as_generator(), source, ends_, {.max_tokens = config_.block_size});
  return fmt::format("{}\n→ {}\n(target: {})", data_->tokenizers.source->decode_line(source[0]),
                     translated_line(*data_->tokenizers.target, results[0]),
                     data_->tokenizers.target->decode_line(pairs.target(i)));
}

namespace {

// Sources and targets may have block_size tokens with their end tokens.
PairOptions pair_options(const Config& c, double val_fraction, const PairTokenizers& tokenizers) {
  return {.val_fraction = val_fraction,
          .max_tokens = c.block_size - 1,
          .tokenizer = c.tokenizer,
          .tokenizer_options = tokenizer_options(c),
          .shared_vocabulary = c.share_vocabulary,
          .tokenizers = tokenizers};
}

std::unique_ptr<Task> translation_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers) {
  return std::make_unique<TranslationTask>(
      c, std::make_shared<const PairDataset>(make_pair_dataset(corpus, pair_options(c, c.val_fraction, tokenizers))));
}

std::unique_ptr<Task> translation_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                            const EvalRequest& request) {
  PairOptions options = pair_options(c, request.own ? c.val_fraction : 0, tokenizers);
  options.unknown = parse_unknown_policy(request.unknown);
  options.validate_all = !request.own;
  PairDataset data = make_pair_dataset(corpus, options);
  return std::make_unique<TranslationTask>(c, std::make_shared<const PairDataset>(std::move(data)),
                                           request.own ? "validation part of the run's text" : "whole text");
}

std::unique_ptr<Task> translation_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  return std::make_unique<TranslationTask>(
      c, std::make_shared<const PairDataset>(random_pairs(vocab.source > 0 ? vocab.source : vocab.target, vocab.target,
                                                          batches * c.batch_size, c.block_size - 1,
                                                          static_cast<std::uint64_t>(c.seed))));
}

}  // namespace

extern constinit const TaskKind kTranslate = {"translate", translation_task, translation_eval_task,
                                              translation_random_task};

}  // namespace maki
