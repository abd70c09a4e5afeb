// The two states of Transformer-XL: hidden states from segment to segment in training, and keys and values from token
// to token in generation.
#include <algorithm>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"
#include "nn/models/transformer_xl.h"

namespace maki {

SegmentMemory::SegmentMemory(const TransformerXlConfig& c, std::int64_t batch, DType dtype)
    : capacity_(c.memory), recent_tokens_(c.recent_tokens()) {
  check(batch >= 1 && c.memory >= 1, "transformer-xl: the batch and the memory must be at least 1; got {} and {}",
        batch, c.memory);
  for (std::int64_t i = 0; i < c.n_layer; ++i) layers_.push_back(zeros({batch, 0, c.n_embd}, dtype));
  if (recent_tokens_ > 0) tokens_ = zeros({batch, 0}, dtype);
}

void SegmentMemory::clear() {
  for (const auto& [name, tensor] : tensors()) *tensor = zeros(tensor->shape().with(1, 0), tensor->dtype());
}

void SegmentMemory::reorder(std::span<const std::int32_t> rows) {
  check_rows("transformer-xl", rows, batch());
  for (const auto& [name, tensor] : tensors()) *tensor = rows_of(*tensor, rows);
}

std::vector<std::pair<std::string, Tensor*>> SegmentMemory::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (std::size_t i = 0; i < layers_.size(); ++i) list.emplace_back("memory." + std::to_string(i), &layers_[i]);
  if (tokens_) list.emplace_back("tokens", &tokens_);
  return list;
}

Tensor SegmentMemory::recent() const {
  if (!tokens_ || length() == 0) return {};
  const std::int64_t taken = std::min(length(), recent_tokens_);
  Tensor ids = empty({batch(), taken}, DType::int32);
  dispatch(tokens_.dtype(), [&]<class T>() {
    for (std::int64_t b = 0; b < batch(); ++b) {
      const T* const end = tokens_.data<T>() + (b + 1) * length();
      std::transform(end - taken, end, ids.data<std::int32_t>() + b * taken,
                     [](T id) { return static_cast<std::int32_t>(id); });
    }
  });
  return ids;
}

namespace {

// The last `capacity` tokens of `held` [B, n, …] followed by `added` [B, T, …].
Tensor last_tokens(const Tensor& held, const Tensor& added, std::int64_t capacity) {
  const std::int64_t length = held.shape()[1], tokens = added.shape()[1];
  if (tokens > capacity) return slice(added, 1, tokens - capacity, tokens);
  const std::int64_t kept = std::min(length, capacity - tokens);
  return kept == 0 ? added : concat({slice(held, 1, length - kept, length), added}, 1);
}

Tensor as_numbers(const Tensor& ids, DType dtype) {
  Tensor numbers = empty(ids.shape(), dtype);
  dispatch(dtype, [&]<class T>() {
    std::ranges::transform(ids.values<std::int32_t>(), numbers.data<T>(),
                           [](std::int32_t id) { return static_cast<T>(id); });
  });
  return numbers;
}

}  // namespace

void SegmentMemory::append(const Tensor& ids, const std::vector<Tensor>& entering) {
  check(entering.size() == layers_.size(), "transformer-xl: the memory has {} layers; got {}", layers_.size(),
        entering.size());
  std::vector<Tensor> next;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    next.push_back(last_tokens(layers_[i], entering[i].detach(), capacity_));
  }
  if (tokens_) next.push_back(last_tokens(tokens_, as_numbers(ids, tokens_.dtype()), capacity_));
  const auto list = tensors();
  for (std::size_t i = 0; i < list.size(); ++i) *list[i].second = next[i];  // pointers of tensors() stay valid
}

DistanceCache::DistanceCache(const TransformerXlConfig& c, std::int64_t batch, std::vector<Tensor> r, DType dtype)
    : recent(c.recent_tokens()),
      batch_(batch),
      kept_(std::max(c.memory, c.block_size / 2)),
      segment_(c.memory + c.block_size - kept_),
      first_end_(c.memory >= c.block_size / 2 ? c.block_size : c.memory + c.block_size),
      end_(first_end_),
      r_(std::move(r)) {
  check(batch >= 1, "transformer-xl: the batch must be at least 1; got {}", batch);
  for (std::int64_t i = 0; i < c.n_layer; ++i) {
    kv_.push_back(empty({batch, c.memory + c.block_size, 2 * c.n_embd}, dtype));
  }
}

void DistanceCache::clear() {
  held_ = length_ = 0;
  end_ = first_end_;
  recent.clear();
}

void DistanceCache::reorder(std::span<const std::int32_t> rows) {
  check_rows("transformer-xl", rows, batch_);
  for (Tensor& kv : kv_) kv = rows_of(kv, rows);
  recent.reorder(rows);
  batch_ = static_cast<std::int64_t>(rows.size());
}

std::vector<std::pair<std::string, Tensor*>> DistanceCache::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (std::size_t i = 0; i < kv_.size(); ++i) list.emplace_back("kv." + std::to_string(i), &kv_[i]);
  return list;
}

std::int64_t DistanceCache::room() {
  if (length_ < end_) return end_ - length_;
  if (held_ > kept_) {
    for (Tensor& kv : kv_) {
      const std::int64_t width = kv.shape()[2], stride = kv.shape()[1] * width;
      dispatch(kv.dtype(), [&]<class T>() {
        for (std::int64_t b = 0; b < batch_; ++b) {
          T* const rows = kv.data<T>() + b * stride;
          std::copy(rows + (held_ - kept_) * width, rows + held_ * width, rows);
        }
      });
    }
    held_ = kept_;
  }
  end_ += segment_;
  return segment_;
}

const Tensor& DistanceCache::append(std::size_t layer, const Tensor& kv) {
  Tensor& to = kv_[layer];
  const std::int64_t width = to.shape()[2], tokens = kv.shape()[1];
  check(kv.shape() == Shape{batch_, tokens, width},
        "transformer-xl: keys and values of the state must be [{}, t, {}]; got {}", batch_, width, kv.shape());
  dispatch(to.dtype(), [&]<class T>() {
    for (std::int64_t b = 0; b < batch_; ++b) {
      std::copy_n(kv.data<T>() + b * tokens * width, tokens * width,
                  to.data<T>() + (b * to.shape()[1] + held_) * width);
    }
  });
  return to;
}

void DistanceCache::advance(std::int64_t tokens) {
  held_ += tokens;
  length_ += tokens;
}

}  // namespace maki
