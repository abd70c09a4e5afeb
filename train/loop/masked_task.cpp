#include "train/loop/masked_task.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "autograd/tape.h"
#include "data/dataset/masking.h"
#include "data/io/number.h"
#include "nn/models/encoder.h"
#include "train/loop/evaluate.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

// Streams of training batches have 0 as the third number of their key.
constexpr std::uint64_t kEvaluationStream = 1;

// The part of row `row` of a [B, T] tensor that has `tokens` tokens.
std::span<std::int32_t> tokens_of(Tensor& tensor, std::int64_t row, std::int64_t tokens) {
  const auto length = static_cast<std::size_t>(tensor.shape()[1]);
  return tensor.values<std::int32_t>().subspan(static_cast<std::size_t>(row) * length,
                                               static_cast<std::size_t>(tokens));
}

// How many targets of the batch are the id with the largest logit.
std::int64_t correct_predictions(const Encoder& encoder, const Batch& batch) {
  std::vector<std::int32_t> rows, targets;
  for (std::int64_t i = 0; i < batch.targets.numel(); ++i) {
    const std::int32_t target = batch.targets.data<std::int32_t>()[i];
    if (target == kIgnoredTarget) continue;
    rows.push_back(static_cast<std::int32_t>(i));
    targets.push_back(target);
  }
  const Tensor logits = encoder.logits_at(tensor(rows, {std::ssize(rows)}), batch.ids, batch.source_mask);
  const std::int64_t width = logits.shape()[1];
  std::int64_t correct = 0;
  dispatch(logits.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const T* const row = logits.data<T>() + static_cast<std::int64_t>(i) * width;
      correct += std::max_element(row, row + width) - row == targets[i] ? 1 : 0;
    }
  });
  return correct;
}

}  // namespace

MaskedTask::MaskedTask(const Config& config, std::shared_ptr<const Dataset> dataset, EvalText text)
    : config_(config),
      dataset_(std::move(dataset)),
      text_(std::move(text)),
      windows_(config, dataset_),
      mask_token_(dataset_->tokenizer->vocab_size()) {}

std::unique_ptr<Model> MaskedTask::make_model(const Scope& scope) const {
  return maki::make_model(config_, vocab_sizes(), scope);
}

void MaskedTask::fill(std::int64_t step, std::int64_t micro, Batch& batch) const {
  windows_.fill(step, micro, batch);
  const RandomStream stream(static_cast<std::uint64_t>(config_.seed), RandomPurpose::mask,
                            static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(micro));
  const std::int64_t length = config_.block_size, count = masked_count(length, kTrainedPercent);
  for (std::int64_t row = 0; row < config_.batch_size; ++row) {
    mask_tokens(stream, row, mask_token_, count, tokens_of(batch.ids, row, length),
                tokens_of(batch.targets, row, length));
  }
  batch.target_count = config_.batch_size * count;
}

std::int64_t MaskedTask::targets(std::int64_t) const {
  return config_.grad_accum * config_.batch_size * masked_count(config_.block_size, kTrainedPercent);
}

void MaskedTask::fill_eval(Part part, std::int64_t i, Batch& batch) const {
  windows_.fill_eval(part, i, batch);
  // The windows cover every token but the last, and the last window may be shorter than the others.
  const std::int64_t rows = batch.ids.shape()[0], length = batch.ids.shape()[1], first = i * config_.batch_size;
  const auto covered = static_cast<std::int64_t>((part == Part::train ? dataset_->train : dataset_->val).size()) - 1;
  batch.source_mask = Tensor();
  batch.target_count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t tokens = std::min(length, covered - (first + row) * length);
    const RandomStream stream(0, RandomPurpose::mask, static_cast<std::uint64_t>(first + row), 0, kEvaluationStream);
    const std::int64_t count = masked_count(tokens, kEvaluatedPercent);
    mask_tokens(stream, 0, mask_token_, count, tokens_of(batch.ids, row, tokens),
                tokens_of(batch.targets, row, tokens));
    batch.target_count += count;
    if (tokens == length) continue;
    std::vector<std::int32_t> visible(static_cast<std::size_t>(rows * length), 1);
    std::fill(visible.begin() + row * length + tokens, visible.begin() + (row + 1) * length, 0);
    batch.source_mask = tensor(visible, {rows, length});
  }
}

CheckpointState MaskedTask::data_state() const {
  CheckpointState state = windows_.data_state();
  state.vocab_size = vocab_sizes().target;
  state.best_possible_loss = 0;  // that of the text is for predicting the next token
  return state;
}

std::vector<ReportLine> MaskedTask::measure(const Model& model, const SampledLoss& sampled, const MeasureOptions&,
                                            const StopRequest& stop) const {
  const Encoder& encoder = *model.as_encoder();
  const ProductPrecision precision(model.precision);
  const AsRecorded rounding;
  std::int64_t correct = 0, targets = 0;
  for (std::int64_t i = 0; i < sampled.taken && !stop.requested(); ++i) {
    Batch batch;
    fill_eval(Part::val, spread_index(i, sampled.taken, sampled.batches), batch);
    correct += correct_predictions(encoder, batch);
    targets += batch.target_count;
  }
  const double loss = sampled.loss.mean, share = static_cast<double>(correct) / static_cast<double>(targets);
  std::vector<ReportLine> list = {
      measure_extent(text_.own ? "validation part of the run's text" : "whole text", sampled),
      {"", "", {{"part", text_.own ? "validation" : "whole"}}}};
  if (text_.unknown > 0) list.push_back({"unknown", text_.unknown_note + "; the results below are for the rest"});
  list.push_back({"loss", fmt::format("{:.4f} nats per masked token", loss), {{"val_loss", loss}}});
  list.push_back({"perplexity", fmt::format("{:.3f}", std::exp(loss)), {{"perplexity", std::exp(loss)}}});
  list.push_back(
      {"accuracy",
       fmt::format("{:.2f} % ({} of {})", 100 * share, with_separators(correct), pluralize(targets, "masked token")),
       {{"accuracy", share}, {"correct", correct}}});
  list.push_back({"", "", {{"unknown", text_.unknown_policy}, {"unknown_characters", text_.unknown}}});
  return list;
}

}  // namespace maki
