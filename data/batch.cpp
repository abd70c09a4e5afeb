#include "data/batch.h"

#include <algorithm>

#include "data/error.h"

namespace maki {
namespace {

void check_room(std::int64_t tokens, std::span<std::int32_t> ids, std::span<std::int32_t> targets) {
  check(ids.size() == targets.size() && static_cast<std::int64_t>(ids.size()) == tokens,
        "batches: ids and targets must have {} elements each; got {} and {}", tokens, ids.size(), targets.size());
}

}  // namespace

TrainBatches::TrainBatches(std::span<const std::int32_t> tokens, std::int64_t batch_size, std::int64_t block_size,
                           std::int64_t grad_accum, std::uint64_t seed)
    : tokens_(tokens),
      batch_size_(batch_size),
      block_size_(block_size),
      grad_accum_(grad_accum),
      windows_(static_cast<std::int64_t>(tokens.size()), block_size, seed) {
  check(batch_size >= 1 && grad_accum >= 1, "batches: batch_size and grad_accum must be at least 1; got {} and {}",
        batch_size, grad_accum);
}

std::int64_t TrainBatches::fill(std::int64_t step, std::int64_t micro, std::span<std::int32_t> ids,
                                std::span<std::int32_t> targets) const {
  check_room(batch_size_ * block_size_, ids, targets);
  const auto length = static_cast<std::size_t>(block_size_);
  for (std::int64_t row = 0; row < batch_size_; ++row) {
    const auto at = static_cast<std::size_t>(windows_.start((step * grad_accum_ + micro) * batch_size_ + row));
    const auto to = static_cast<std::ptrdiff_t>(row * block_size_);
    std::ranges::copy(tokens_.subspan(at, length), ids.begin() + to);
    std::ranges::copy(tokens_.subspan(at + 1, length), targets.begin() + to);
  }
  return batch_size_ * block_size_;
}

EvalBatches::EvalBatches(std::span<const std::int32_t> tokens, std::int64_t batch_size, std::int64_t block_size)
    : tokens_(tokens), batch_size_(batch_size), block_size_(block_size), windows_(0), count_(0) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  check(batch_size >= 1 && block_size >= 1, "batches: batch_size and block_size must be at least 1; got {} and {}",
        batch_size, block_size);
  check<CorpusError>(n >= 2, "evaluation: at least 2 tokens are needed; got {}", n);
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
    // A short window is padded behind its end, where a causal model's earlier positions cannot see it.
    std::fill_n(ids.begin() + to, block_size_, 0);
    std::fill_n(targets.begin() + to, block_size_, kIgnoredTarget);
    std::copy_n(tokens_.begin() + start, length, ids.begin() + to);
    std::copy_n(tokens_.begin() + start + 1, length, targets.begin() + to);
    total += length;
  }
  return total;
}

}  // namespace maki
