#include "data/dataset/batch.h"

#include <algorithm>

#include "data/text/error.h"

namespace maki {
namespace {

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

// The number of pairs of consecutive tokens of the same piece.
std::int64_t count_targets(const TokenSpan& tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const auto [first, last] = tokens.joins_between(1, n);
  return n - 1 - static_cast<std::int64_t>(last - first);
}

}  // namespace

TrainBatches::TrainBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size, std::int64_t grad_accum,
                           std::uint64_t seed)
    : tokens_(tokens),
      batch_size_(batch_size),
      block_size_(block_size),
      grad_accum_(grad_accum),
      windows_(static_cast<std::int64_t>(tokens.size()), block_size, seed) {
  check(batch_size >= 1 && grad_accum >= 1, "batches: batch_size and grad_accum must be at least 1; got {} and {}",
        batch_size, grad_accum);
  check<CorpusError>(count_targets(tokens) >= 1,
                     "text: at least one file must have two or more tokens; use longer files");
}

std::int64_t TrainBatches::targets(std::int64_t step) const {
  std::int64_t count = tokens_per_step();
  if (tokens_.joins().empty()) return count;
  const std::int64_t rows = grad_accum_ * batch_size_;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = windows_.start(step * rows + row);
    const auto [first, last] = tokens_.joins_between(start + 1, start + 1 + block_size_);
    count -= static_cast<std::int64_t>(last - first);
  }
  return count;
}

std::int64_t TrainBatches::fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                                std::span<std::int32_t> targets) const {
  check_room(batch_size_ * block_size_, ids, targets);
  const auto length = static_cast<std::size_t>(block_size_);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < batch_size_; ++row) {
    const auto to = static_cast<std::size_t>(row) * length;
    total += fill_window(tokens_, windows_.start((step * grad_accum_ + micro) * batch_size_ + row),
                         ids.subspan(to, length), targets.subspan(to, length));
  }
  return total;
}

EvalBatches::EvalBatches(TokenSpan tokens, std::int64_t batch_size, std::int64_t block_size)
    : tokens_(tokens), batch_size_(batch_size), block_size_(block_size), windows_(0), count_(0), targets_(0) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  check(batch_size >= 1 && block_size >= 1, "batches: batch_size and block_size must be at least 1; got {} and {}",
        batch_size, block_size);
  check<CorpusError>(n >= 2, "evaluation: at least 2 tokens are needed; got {}", n);
  targets_ = count_targets(tokens);
  check<CorpusError>(targets_ >= 1, "evaluation: at least one file must have two or more tokens; use longer files");
  windows_ = (n - 1 + block_size - 1) / block_size;
  count_ = (windows_ + batch_size - 1) / batch_size;
}

std::int64_t EvalBatches::rows(std::int64_t batch) const {
  return std::min(batch_size_, windows_ - batch * batch_size_);
}

std::int64_t EvalBatches::fill(std::int64_t batch, std::span<std::int32_t> ids, std::span<std::int32_t> targets) const {
  const auto n = static_cast<std::int64_t>(tokens_.size());
  check(batch >= 0 && batch < count_, "batches: the batch must be in [0, {}); got {}", count_, batch);
  check_room(rows(batch) * block_size_, ids, targets);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < rows(batch); ++row) {
    const std::int64_t start = (batch * batch_size_ + row) * block_size_, length = std::min(block_size_, n - 1 - start);
    const auto to = static_cast<std::ptrdiff_t>(row * block_size_);
    // A short sequence is padded at its end, which earlier positions of a causal model do not attend to.
    std::fill_n(ids.begin() + to, block_size_, 0);
    std::fill_n(targets.begin() + to, block_size_, kIgnoredTarget);
    const auto n_ids = static_cast<std::size_t>(length);
    total += fill_window(tokens_, start, ids.subspan(static_cast<std::size_t>(to), n_ids),
                         targets.subspan(static_cast<std::size_t>(to), n_ids));
  }
  return total;
}

}  // namespace maki
