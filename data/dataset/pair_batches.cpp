#include "data/dataset/pair_batches.h"

#include <algorithm>
#include <tuple>

#include "autograd/core/philox.h"
#include "data/dataset/sequence_order.h"
#include "data/dataset/window_batches.h"
#include "data/io/error.h"

namespace maki {
namespace {

// Indices of all pairs, by the length of the target, then of the source, then by `tie(index)`.
template <class Tie>
std::vector<std::int32_t> sorted_by_length(const TokenPairs& pairs, const Tie& tie) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::int32_t>;
  std::vector<Key> keys;
  keys.reserve(static_cast<std::size_t>(pairs.size()));
  for (std::int32_t i = 0; i < pairs.size(); ++i)
    keys.emplace_back(pairs.target_length(i), pairs.source_length(i), tie(i), i);
  std::ranges::sort(keys);
  std::vector<std::int32_t> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(std::get<3>(key));
  return order;
}

std::vector<std::int32_t> cut(const std::vector<std::int32_t>& order, std::int64_t batch, std::int64_t batch_size) {
  const auto size = static_cast<std::int64_t>(order.size()), begin = batch * batch_size;
  return {order.begin() + begin, order.begin() + std::min(begin + batch_size, size)};
}

}  // namespace

PairBatch make_pair_batch(const TokenPairs& pairs, std::span<const std::int32_t> rows, const PairEnds& ends) {
  PairBatch batch;
  batch.rows = static_cast<std::int64_t>(rows.size());
  for (const std::int32_t i : rows) {
    batch.source_length = std::max(batch.source_length, pairs.source_length(i) + 1);
    batch.target_length = std::max(batch.target_length, pairs.target_length(i) + 1);
  }
  const auto sources = static_cast<std::size_t>(batch.rows * batch.source_length);
  const auto targets = static_cast<std::size_t>(batch.rows * batch.target_length);
  batch.source.assign(sources, ends.source);
  batch.source_mask.assign(sources, 0);
  batch.ids.assign(targets, ends.target);
  batch.targets.assign(targets, kIgnoredTarget);
  for (std::int64_t r = 0; r < batch.rows; ++r) {
    const std::int32_t i = rows[static_cast<std::size_t>(r)];
    const std::vector<std::int32_t> source = pairs.source(i), target = pairs.target(i);
    const std::int64_t source_at = r * batch.source_length, target_at = r * batch.target_length;
    std::ranges::copy(source, batch.source.begin() + source_at);
    std::fill_n(batch.source_mask.begin() + source_at, source.size() + 1, 1);
    std::ranges::copy(target, batch.ids.begin() + target_at + 1);
    std::ranges::copy(target, batch.targets.begin() + target_at);
    batch.targets[static_cast<std::size_t>(target_at) + target.size()] = ends.target;
    batch.target_count += static_cast<std::int64_t>(target.size()) + 1;
    batch.padded_source |= static_cast<std::int64_t>(source.size()) + 1 < batch.source_length;
  }
  return batch;
}

PairTrainBatches::PairTrainBatches(const TokenPairs& pairs, std::int64_t batch_size, std::uint64_t seed)
    : pairs_(pairs), batch_size_(batch_size), per_epoch_(0), seed_(seed) {
  check(batch_size >= 1, "batches: batch_size must be at least 1; got {}", batch_size);
  check<CorpusError>(pairs.size() >= 1, "corpus: at least one pair is needed for training; got none");
  per_epoch_ = (pairs.size() + batch_size - 1) / batch_size;
}

std::shared_ptr<const std::vector<std::int32_t>> PairTrainBatches::order(std::int64_t epoch) const {
  const std::scoped_lock lock(mutex_);
  if (epoch != ordered_epoch_) {
    const RandomStream stream(seed_, RandomPurpose::shuffle, static_cast<std::uint64_t>(epoch), 2);
    const auto tie = [&](std::int32_t i) { return stream.bits64(static_cast<std::uint64_t>(i)); };
    order_ = std::make_shared<const std::vector<std::int32_t>>(sorted_by_length(pairs_, tie));
    ordered_epoch_ = epoch;
  }
  return order_;
}

std::vector<std::int32_t> PairTrainBatches::rows(std::int64_t i) const {
  const std::int64_t epoch = i / per_epoch_;
  return cut(*order(epoch), feistel(i % per_epoch_, per_epoch_, seed_, epoch), batch_size_);
}

std::int64_t PairTrainBatches::sum(std::int64_t begin, std::int64_t end,
                                   const std::function<std::int64_t(std::int64_t)>& of) const {
  std::int64_t sum = 0;
  if (begin == 0 && end >= per_epoch_) {
    for (std::int64_t row = 0; row < pairs_.size(); ++row) sum += of(row);
    begin = end / per_epoch_ * per_epoch_;
    sum *= end / per_epoch_;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    for (const std::int32_t row : rows(i)) sum += of(row);
  }
  return sum;
}

PairEvalBatches::PairEvalBatches(const TokenPairs& pairs, std::int64_t batch_size)
    : batch_size_(batch_size), order_(sorted_by_length(pairs, [](std::int32_t) { return std::uint64_t{0}; })) {
  check(batch_size >= 1, "batches: batch_size must be at least 1; got {}", batch_size);
}

std::vector<std::int32_t> PairEvalBatches::rows(std::int64_t i) const { return cut(order_, i, batch_size_); }

}  // namespace maki
