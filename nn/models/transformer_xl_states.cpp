// The two states of Transformer-XL: hidden states from segment to segment in training, and keys and values from token
// to token in generation.
#include <algorithm>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"
#include "nn/models/transformer_xl.h"

namespace maki {

SegmentMemory::SegmentMemory(std::int64_t n_layer, std::int64_t batch, std::int64_t capacity, std::int64_t n_embd,
                             DType dtype)
    : capacity_(capacity) {
  check(n_layer >= 1 && batch >= 1 && capacity >= 1 && n_embd >= 1,
        "transformer-xl: layers, batch, memory and width must be at least 1; got {}, {}, {}, {}", n_layer, batch,
        capacity, n_embd);
  for (std::int64_t i = 0; i < n_layer; ++i) layers_.push_back(zeros({batch, 0, n_embd}, dtype));
}

void SegmentMemory::clear() {
  for (Tensor& layer : layers_) layer = zeros(layer.shape().with(1, 0), layer.dtype());
}

void SegmentMemory::reorder(std::span<const std::int32_t> rows) {
  check_rows("transformer-xl", rows, batch());
  for (Tensor& layer : layers_) layer = rows_of(layer, rows);
}

std::vector<std::pair<std::string, Tensor*>> SegmentMemory::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (std::size_t i = 0; i < layers_.size(); ++i) list.emplace_back("memory." + std::to_string(i), &layers_[i]);
  return list;
}

void SegmentMemory::append(const std::vector<Tensor>& entering) {
  check(entering.size() == layers_.size(), "transformer-xl: the memory has {} layers; got {}", layers_.size(),
        entering.size());
  std::vector<Tensor> next;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Tensor x = entering[i].detach();
    const std::int64_t tokens = x.shape()[1], kept = std::min(length(), std::max<std::int64_t>(capacity_ - tokens, 0));
    if (tokens > capacity_) {
      next.push_back(slice(x, 1, tokens - capacity_, tokens));
    } else {
      next.push_back(kept == 0 ? x : concat({slice(layers_[i], 1, length() - kept, length()), x}, 1));
    }
  }
  std::ranges::move(next, layers_.begin());  // pointers of tensors() stay valid
}

DistanceCache::DistanceCache(const TransformerXlConfig& c, std::int64_t batch, std::vector<Tensor> r, DType dtype)
    : batch_(batch),
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
}

void DistanceCache::reorder(std::span<const std::int32_t> rows) {
  check_rows("transformer-xl", rows, batch_);
  for (Tensor& kv : kv_) kv = rows_of(kv, rows);
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
