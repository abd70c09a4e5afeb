#include "data/dataset/window_batches.h"

#include <algorithm>

#include "data/io/error.h"

namespace maki {
namespace {

// Every stretch of an evaluation begins with an empty state. With this many windows or more per stretch, at most a
// sixteenth of a text that is short for the size of a batch consists of beginnings.
constexpr std::int64_t kMinStretchWindows = 16;

void check_room(std::int64_t tokens, std::span<std::int32_t> ids, std::span<std::int32_t> targets) {
  check(ids.size() == targets.size() && static_cast<std::int64_t>(ids.size()) == tokens,
        "batches: ids and targets must have {} elements each; got {} and {}", tokens, ids.size(), targets.size());
}

// Fills one row with the sequence that begins at token `start`. Returns the number of its targets.
std::int64_t fill_window(const TokenSpan& tokens, std::int64_t start, std::span<std::int32_t> ids,
                         std::span<std::int32_t> targets) {
  const auto length = static_cast<std::int64_t>(ids.size());
  tokens.copy(start, ids);
  tokens.copy(start + 1, targets);
  const auto [first, last] = tokens.joins_between(start + 1, start + 1 + length);
  for (const std::int64_t join : tokens.joins().subspan(first, last - first))
    targets[static_cast<std::size_t>(join - start - 1)] = kIgnoredTarget;
  return length - static_cast<std::int64_t>(last - first);
}

// Fills one row with the sequence that begins at token `start` of a text whose first token follows its last. A position
// at which the text begins again has no target, like the last one of a piece.
std::int64_t fill_window_on_ring(const TokenSpan& tokens, std::int64_t start, std::span<std::int32_t> ids,
                                 std::span<std::int32_t> targets) {
  const auto followed = static_cast<std::size_t>(static_cast<std::int64_t>(tokens.size()) - 1 - start);
  if (ids.size() <= followed) return fill_window(tokens, start, ids, targets);
  const std::int64_t before = fill_window(tokens, start, ids.first(followed), targets.first(followed));
  ids[followed] = tokens[tokens.size() - 1];
  targets[followed] = kIgnoredTarget;
  return before + fill_window(tokens, 0, ids.subspan(followed + 1), targets.subspan(followed + 1));
}

// The number of positions without a target in such a window of `length` tokens.
std::int64_t positions_without_target(const TokenSpan& tokens, std::int64_t start, std::int64_t length) {
  const auto joins = [&](std::int64_t begin, std::int64_t end) {
    const auto [first, last] = tokens.joins_between(begin, end);
    return static_cast<std::int64_t>(last - first);
  };
  const std::int64_t n = static_cast<std::int64_t>(tokens.size()), end = start + 1 + length;
  return end <= n ? joins(start + 1, end) : joins(start + 1, n) + 1 + joins(1, end - n);
}

// The number of pairs of consecutive tokens of the same piece.
std::int64_t count_targets(const TokenSpan& tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const auto [first, last] = tokens.joins_between(1, n);
  return n - 1 - static_cast<std::int64_t>(last - first);
}

// Fills one row with a sequence, of which `known` targets are ignored, and padding at its end: earlier positions of a
// causal model do not attend to it. Returns the number of targets. A length below 0 is one of 0.
std::int64_t fill_row(const TokenSpan& tokens, const DocumentSequences::Sequence& sequence, std::span<std::int32_t> ids,
                      std::span<std::int32_t> targets) {
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(0, sequence.length));
  std::ranges::fill(ids.subspan(length), 0);
  std::ranges::fill(targets.subspan(length), kIgnoredTarget);
  if (length == 0) return 0;
  const std::int64_t total = fill_window(tokens, sequence.start, ids.first(length), targets.first(length));
  const std::span known = targets.first(static_cast<std::size_t>(sequence.known));
  const std::int64_t predicted = std::ssize(known) - std::ranges::count(known, kIgnoredTarget);
  std::ranges::fill(known, kIgnoredTarget);
  return total - predicted;
}

}  // namespace

TrainBatches::TrainBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, std::int64_t grad_accum,
                           std::uint64_t seed, RowOrder order, std::shared_ptr<const DocumentSequences> documents)
    : tokens_(tokens),
      batch_size_(batch_size),
      block_size_(block_size),
      grad_accum_(grad_accum),
      seed_(seed),
      documents_(std::move(documents)) {
  if (!documents_) windows_.emplace(static_cast<std::int64_t>(tokens.size()), block_size, seed);
  check(batch_size >= 1 && grad_accum >= 1, "batches: batch_size and grad_accum must be at least 1; got {} and {}",
        batch_size, grad_accum);
  check(!documents_ || (order == RowOrder::shuffled && documents_->block_size() == block_size),
        "batches: the sequences of documents are shuffled and have at most block_size = {} tokens; got {}", block_size,
        documents_ ? documents_->block_size() : 0);
  check<CorpusError>(documents_ || count_targets(tokens) >= 1,
                     "text: at least one file must have two or more tokens; use longer files");
  if (order == RowOrder::continued)
    continued_.emplace(static_cast<std::int64_t>(tokens.size()), block_size, grad_accum * batch_size, seed);
}

DocumentSequences::Sequence TrainBatches::document_sequence(std::int64_t sample) const {
  const std::int64_t count = documents_->count();
  return (*documents_)[feistel(sample % count, count, seed_, sample / count)];
}

std::int64_t TrainBatches::start(std::int64_t step, std::int64_t micro, std::int64_t row) const {
  if (continued_) return continued_->start(step, micro * batch_size_ + row);
  const std::int64_t i = sample(step, micro, row);
  return documents_ ? document_sequence(i).start : windows_->start(i);
}

std::int64_t TrainBatches::targets(std::int64_t step) const {
  if (documents_) return tokens_of(step * sequences_per_step(), (step + 1) * sequences_per_step());
  std::int64_t count = tokens_per_step();
  if (tokens_.joins().empty() && !continued_) return count;
  for (std::int64_t micro = 0; micro < grad_accum_; ++micro) {
    for (std::int64_t row = 0; row < batch_size_; ++row)
      count -= positions_without_target(tokens_, start(step, micro, row), block_size_);
  }
  return count;
}

// Every epoch reads all sequences once.
std::int64_t TrainBatches::tokens_before(std::int64_t step) const {
  if (!documents_) return step * tokens_per_step();
  const std::int64_t samples = step * sequences_per_step(), epochs = samples / documents_->count();
  return epochs * documents_->targets() + tokens_of(epochs * documents_->count(), samples);
}

std::int64_t TrainBatches::tokens_of(std::int64_t first, std::int64_t last) const {
  std::int64_t tokens = 0;
  for (std::int64_t i = first; i < last; ++i) tokens += document_sequence(i).length;
  return tokens;
}

std::int64_t TrainBatches::fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                                std::span<std::int32_t> targets) const {
  check(step >= 0 && micro >= 0 && micro < grad_accum_,
        "batches: the step must not be negative, and the micro-batch must be in [0, {}); got {} and {}", grad_accum_,
        step, micro);
  check_room(batch_size_ * block_size_, ids, targets);
  const auto length = static_cast<std::size_t>(block_size_);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < batch_size_; ++row) {
    const auto to = static_cast<std::size_t>(row) * length;
    const std::span row_ids = ids.subspan(to, length), row_targets = targets.subspan(to, length);
    total += documents_ ? fill_row(tokens_, document_sequence(sample(step, micro, row)), row_ids, row_targets)
                        : fill_window_on_ring(tokens_, start(step, micro, row), row_ids, row_targets);
  }
  return total;
}

EvalBatches::EvalBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, RowOrder order,
                         std::int64_t stride, std::shared_ptr<const DocumentSequences> documents)
    : tokens_(tokens),
      batch_size_(batch_size),
      block_size_(block_size),
      stride_(stride > 0 ? stride : block_size),
      windows_(0),
      count_(0),
      targets_(0),
      order_(order),
      documents_(std::move(documents)) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  check(batch_size >= 1 && block_size >= 1, "batches: batch_size and block_size must be at least 1; got {} and {}",
        batch_size, block_size);
  check(stride >= 0 && stride <= block_size && (stride == 0 || order == RowOrder::shuffled),
        "batches: the stride must be in [0, {}], and 0 for continued rows; got {}", block_size, stride);
  check(!documents_ || (order == RowOrder::shuffled && documents_->block_size() == block_size),
        "batches: the sequences of documents are shuffled and have at most block_size = {} tokens; got {}", block_size,
        documents_ ? documents_->block_size() : 0);
  check<CorpusError>(n >= 2, "evaluation: at least 2 tokens are needed; got {}", n);
  targets_ = count_targets(tokens);
  check<CorpusError>(targets_ >= 1, "evaluation: at least one file must have two or more tokens; use longer files");
  // The first window predicts block_size tokens, each of the others at most `stride`.
  windows_ =
      documents_ ? documents_->count() : 1 + (std::max<std::int64_t>(0, n - 1 - block_size) + stride_ - 1) / stride_;
  const bool continued = order == RowOrder::continued;
  const std::int64_t most_rows =
      continued ? std::clamp<std::int64_t>(windows_ / kMinStretchWindows, 1, batch_size) : batch_size;
  count_ = (windows_ + most_rows - 1) / most_rows;
}

std::int64_t EvalBatches::rows(std::int64_t batch) const {
  if (order_ == RowOrder::continued) return (windows_ + count_ - 1) / count_;
  return std::min(batch_size_, windows_ - batch * batch_size_);
}

DocumentSequences::Sequence EvalBatches::sequence(std::int64_t batch, std::int64_t row) const {
  const std::int64_t i = order_ == RowOrder::continued ? row * count_ + batch : batch * batch_size_ + row;
  if (documents_) return (*documents_)[i];
  const std::int64_t start = i * stride_, left = static_cast<std::int64_t>(tokens_.size()) - 1 - start;
  // The window before has predicted what it has in common with this one.
  return {start, std::min(block_size_, left), start > 0 ? std::min(block_size_ - stride_, left) : 0};
}

std::int64_t EvalBatches::fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const {
  check(batch >= 0 && batch < count_, "batches: the batch must be in [0, {}); got {}", count_, batch);
  check_room(rows(batch) * block_size_, ids, targets);
  const auto length = static_cast<std::size_t>(block_size_);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < rows(batch); ++row) {
    const auto to = static_cast<std::size_t>(row) * length;
    total += fill_row(tokens_, sequence(batch, row), ids.subspan(to, length), targets.subspan(to, length));
  }
  return total;
}

}  // namespace maki
