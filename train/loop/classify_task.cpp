#include "train/loop/classify_task.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "data/io/utf8.h"
#include "nn/models/encoder.h"
#include "train/loop/evaluate.h"
#include "train/loop/random_dataset.h"
#include "train/loop/tasks.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

// counts[i][k]: how many texts of class i the model gives class k.
using Confusion = std::vector<std::vector<std::int64_t>>;

void fill_batch(const TokenPairs& texts, std::span<const std::int32_t> rows, Batch& batch) {
  std::int64_t length = 0;
  for (const std::int32_t i : rows) length = std::max(length, texts.source_length(i));
  const std::int64_t count = std::ssize(rows);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count * length)), visible(ids.size()), classes;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int32_t i = rows[static_cast<std::size_t>(r)];
    std::ranges::copy(texts.source(i), ids.begin() + r * length);
    std::fill_n(visible.begin() + r * length, texts.source_length(i), 1);
    classes.push_back(texts.target(i)[0]);
  }
  const bool padded = std::ranges::find(visible, 0) != visible.end();
  batch.ids = tensor(ids, {count, length});
  batch.source_mask = padded ? tensor(visible, {count, length}) : Tensor();
  batch.targets = tensor(classes, {count});
  batch.target_count = count;
}

void count_predictions(const Encoder& encoder, const Batch& batch, Confusion& counts) {
  const Tensor logits = encoder.class_logits(batch.ids, batch.source_mask);
  const std::int64_t classes = logits.shape()[1];
  dispatch(logits.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < logits.shape()[0]; ++i) {
      const T* const row = logits.data<T>() + i * classes;
      const auto label = static_cast<std::size_t>(batch.targets.data<std::int32_t>()[i]);
      ++counts[label][static_cast<std::size_t>(std::max_element(row, row + classes) - row)];
    }
  });
}

// The text, right-aligned in a column of the terminal.
std::string in_column(const std::string& text, std::int64_t width) {
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width - display_width(text))), ' ') + text;
}

// A line for each label, below a line of their names. More labels would not fit into a terminal.
void add_confusion(const Confusion& counts, const std::vector<std::string>& labels, std::vector<ReportLine>& list) {
  constexpr std::size_t kMaxPrintedLabels = 10;  // in columns of 6 or more
  list.push_back({"", "", {{"labels", labels}, {"confusion", counts}}});
  if (labels.size() > kMaxPrintedLabels) {
    list.push_back({"confusion", fmt::format("{} labels, whose matrix the JSON report has", labels.size())});
    return;
  }
  std::vector<std::string> names;
  std::int64_t width = 6;
  for (const std::string& label : labels) {
    names.push_back(escape_unprintable(label));
    width = std::max(width, display_width(names.back()));
  }
  std::string header = in_column("", width);
  for (const std::string& name : names) header += in_column(name, width + 1);
  list.push_back({"confusion", "one row for each label, one column for each answer of the model"});
  list.push_back({"", header});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::string row = in_column(names[i], width);
    for (const std::int64_t count : counts[i]) row += in_column(with_separators(count), width + 1);
    list.push_back({"", row});
  }
}

// The numbers of texts that were answered rightly, and of all.
Answers answers_of(const Confusion& counts) {
  Answers answers;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    answers.right += counts[i][i];
    for (const std::int64_t count : counts[i]) answers.all += count;
  }
  return answers;
}

}  // namespace

ClassifyTask::ClassifyTask(const Config& config, std::shared_ptr<const LabelledDataset> data, std::string what)
    : config_(config), data_(std::move(data)), what_(std::move(what)) {
  if (data_->train.size() > 0) {
    train_.emplace(data_->train, config.batch_size, static_cast<std::uint64_t>(config.seed));
    eval_train_.emplace(data_->train, config.batch_size);
  }
  if (data_->val.size() > 0) eval_val_.emplace(data_->val, config.batch_size);
}

std::unique_ptr<Model> ClassifyTask::make_model(const Scope& scope) const {
  return maki::make_model(config_, vocab_sizes(), scope);
}

void ClassifyTask::fill(std::int64_t step, std::int64_t micro, Batch& batch) const {
  fill_batch(data_->train, train_.value().rows(step * config_.grad_accum + micro), batch);
}

std::int64_t ClassifyTask::targets(std::int64_t step) const {
  return train_.value().sum(step * config_.grad_accum, (step + 1) * config_.grad_accum, [](std::int64_t) { return 1; });
}

std::int64_t ClassifyTask::tokens(std::int64_t begin_step, std::int64_t end_step) const {
  return train_.value().sum(begin_step * config_.grad_accum, end_step * config_.grad_accum,
                            [&](std::int64_t row) { return data_->train.source_length(row); });
}

double ClassifyTask::epochs(std::int64_t steps) const {
  return static_cast<double>(steps * config_.grad_accum) / static_cast<double>(train_.value().per_epoch());
}

std::int64_t ClassifyTask::eval_batches(Part part) const {
  const std::optional<PairEvalBatches>& batches = part == Part::train ? eval_train_ : eval_val_;
  return batches ? batches->count() : 0;
}

void ClassifyTask::fill_eval(Part part, std::int64_t i, Batch& batch) const {
  const bool train = part == Part::train;
  fill_batch(train ? data_->train : data_->val, (train ? eval_train_ : eval_val_).value().rows(i), batch);
}

CheckpointState ClassifyTask::data_state() const {
  CheckpointState state;
  state.vocab_size = vocab_sizes().target;
  state.characters = data_->characters;
  state.train_tokens = data_->train.token_count() - data_->train.size();  // without the classes
  state.val_tokens = data_->val.token_count() - data_->val.size();
  state.corpus_hash = data_->corpus_hash;
  state.tokenizer = data_->tokenizer->save();
  state.labels = save_labels(data_->labels);
  return state;
}

std::string ClassifyTask::describe_data() const {
  constexpr std::int64_t kMinTextsToJudge = 10;  // labels of fewer may all differ by chance
  const std::int64_t texts = data_->train.size() + data_->val.size(), labels = std::ssize(data_->labels);
  const bool one_each = texts >= kMinTextsToJudge && 4 * labels >= 3 * texts;
  return fmt::format(
      "{} for training, {} for validation; {}{}; vocabulary of {}", pluralize(data_->train.size(), "text"),
      with_separators(data_->val.size()), pluralize(labels, "label"),
      one_each ? fmt::format(" for {}, so what follows the tabs may be no labels", pluralize(texts, "text")) : "",
      with_separators(vocab_sizes().target));
}

std::string ClassifyTask::describe_step() const { return pluralize(config_.batch_size * config_.grad_accum, "text"); }

void ClassifyTask::add_answers(const Model& model, std::int64_t i, Confusion& counts) const {
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  Batch batch;
  fill_eval(Part::val, i, batch);
  count_predictions(*model.as_encoder(), batch, counts);
}

ClassifyTask::Confusion ClassifyTask::no_answers() const {
  return Confusion(data_->labels.size(), std::vector<std::int64_t>(data_->labels.size()));
}

Answers ClassifyTask::answers(const Model& model, std::int64_t i) const {
  Confusion counts = no_answers();
  add_answers(model, i, counts);
  return answers_of(counts);
}

std::vector<ReportLine> ClassifyTask::measure(const Model& model, const SampledLoss& sampled, const MeasureOptions&,
                                              const StopRequest& stop) const {
  Confusion counts = no_answers();
  for (std::int64_t i = 0; i < sampled.taken && !stop.requested(); ++i)
    add_answers(model, spread_index(i, sampled.taken, eval_batches(Part::val)), counts);
  const auto [correct, texts] = answers_of(counts);
  const double loss = sampled.loss.mean, share = static_cast<double>(correct) / static_cast<double>(texts);
  std::vector<ReportLine> list = {
      measure_extent(what_, sampled),
      {"loss", fmt::format("{:.4f} nats per text", loss), {{"val_loss", loss}}},
      {"accuracy",
       fmt::format("{:.2f} % ({} of {})", 100 * share, with_separators(correct), pluralize(texts, "text")),
       {{"accuracy", share}, {"correct", correct}}}};
  add_confusion(counts, data_->labels, list);
  return list;
}

namespace {

LabelledOptions labelled_options(const Config& c, double val_fraction, const PairTokenizers& tokenizers) {
  return {.val_fraction = val_fraction,
          .max_tokens = c.block_size,
          .tokenizer_kind = c.tokenizer,
          .tokenizer_options = tokenizer_options(c),
          .tokenizer = tokenizers.target};
}

std::unique_ptr<Task> classify_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers) {
  return std::make_unique<ClassifyTask>(c, std::make_shared<const LabelledDataset>(make_labelled_dataset(
                                               corpus, labelled_options(c, c.val_fraction, tokenizers))));
}

std::unique_ptr<Task> classify_eval_task(const Config& c, const Corpus& corpus, const PairTokenizers& tokenizers,
                                         const EvalRequest& request) {
  check(request.unknown == "error", "unknown: applies to plain text; the task of this model is classify");
  LabelledOptions options = labelled_options(c, request.own ? c.val_fraction : 0, tokenizers);
  options.labels = load_labels(request.labels);
  LabelledDataset data = make_labelled_dataset(corpus, options);
  if (!request.own) data.val = std::exchange(data.train, {});
  return std::make_unique<ClassifyTask>(c, std::make_shared<const LabelledDataset>(std::move(data)),
                                        request.own ? "validation part of the run's text" : "whole text");
}

std::unique_ptr<Task> classify_random_task(const Config& c, const VocabSizes& vocab, std::int64_t batches) {
  return std::make_unique<ClassifyTask>(
      c, std::make_shared<const LabelledDataset>(random_labelled(vocab.target, vocab.classes, batches * c.batch_size,
                                                                 c.block_size, static_cast<std::uint64_t>(c.seed))));
}

}  // namespace

extern constinit const TaskKind kClassify = {"classify", classify_task, classify_eval_task, classify_random_task};

}  // namespace maki
