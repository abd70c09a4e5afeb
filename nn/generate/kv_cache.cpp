#include "nn/generate/kv_cache.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// Copies columns [begin, end) of x [rows, width] to `to` [rows, end − begin].
template <class T>
void copy_columns(const T* x, std::int64_t rows, std::int64_t width, std::int64_t begin, std::int64_t end, T* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy(x + row * width + begin, x + row * width + end, to + row * (end - begin));
  }
}

}  // namespace

void check_rows(const char* state, std::span<const std::int32_t> rows, std::int64_t batch) {
  check(!rows.empty() && std::ranges::all_of(rows, [&](std::int32_t row) { return row >= 0 && row < batch; }),
        "{}: reorder needs at least one row, and each row in [0, {}); got {} rows", state, batch, rows.size());
}

Tensor rows_of(const Tensor& x, std::span<const std::int32_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor y = empty(x.shape().with(0, count), x.dtype());
  const std::int64_t size = x.shape()[0] == 0 ? 0 : x.numel() / x.shape()[0];
  const auto copy = [&]<class T>(const T* from, T* to) {
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(from + rows[static_cast<std::size_t>(i)] * size, size, to + i * size);
  };
  if (x.dtype() == DType::int32) {
    copy(x.data<std::int32_t>(), y.data<std::int32_t>());
  } else {
    dispatch(x.dtype(), [&]<class T>() { copy(x.data<T>(), y.data<T>()); });
  }
  return y;
}

KvLayer::KvLayer(std::int64_t batch, std::int64_t capacity, std::int64_t kv_width, DType dtype)
    : capacity_(capacity), kv_(empty({batch, capacity, 2 * kv_width}, dtype)) {}

Tensor KvLayer::attend(const Tensor& qkv, const Attention& options) {
  const std::int64_t batch = kv_.shape()[0], pair = kv_.shape()[2];  // columns of k‖v
  check(options.n_head >= 1 && options.kv_heads() >= 1,
        "kv cache: n_head and n_kv_head must be at least 1 and 0; got {} and {}", options.n_head, options.n_kv_head);
  const std::int64_t width = pair / 2 * options.n_head / options.kv_heads(), all = width + pair;
  check(Tape::current() == nullptr,
        "kv cache: attention with a cache has no gradient; end the Recording before generating");
  check(qkv.shape().rank() == 3 && qkv.shape()[0] == batch && qkv.shape()[2] == all,
        "kv cache: packed q, k and v must be [{}, t, {}]; got {}", batch, all, qkv.shape());
  const std::int64_t tokens = qkv.shape()[1], total = length_ + tokens;
  check(total <= capacity_, "kv cache: holds at most {} tokens per sequence; got {}", capacity_, total);
  const Tensor& mask = options.key_mask;
  check(!mask || mask.shape() == Shape{batch, total},
        "kv cache: key_mask must be [{}, {}], one entry per sequence and token held; got {}", batch, total,
        mask ? mask.shape() : Shape{});
  dispatch(qkv.dtype(), [&]<class T>() {
    for (std::int64_t b = 0; b < batch; ++b) {
      const T* const rows = qkv.data<T>() + b * tokens * all;
      copy_columns(rows, tokens, all, width, all, kv_.data<T>() + (b * capacity_ + length_) * pair);
    }
  });
  Attention held = options;
  held.keys = total;
  Tensor y = attention(slice(qkv, 2, 0, width), kv_, held);
  length_ = total;
  return y;
}

KvCache::KvCache(std::int64_t n_layer, std::int64_t batch, std::int64_t capacity, std::int64_t kv_width, DType dtype,
                 std::int64_t recent_tokens)
    : recent(recent_tokens), batch_(batch), capacity_(capacity) {
  check(n_layer >= 1 && batch >= 1 && capacity >= 1,
        "kv cache: layers, batch and capacity must be at least 1; got {}, {}, {}", n_layer, batch, capacity);
  for (std::int64_t i = 0; i < n_layer; ++i) layers_.emplace_back(batch, capacity, kv_width, dtype);
}

void KvLayer::reorder(std::span<const std::int32_t> rows) {
  Tensor reordered = empty(kv_.shape().with(0, static_cast<std::int64_t>(rows.size())), kv_.dtype());
  const std::int64_t sequence = kv_.numel() / kv_.shape()[0], held = length_ * kv_.shape()[2];
  dispatch(kv_.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(kv_.data<T>() + rows[i] * sequence, held,
                  reordered.data<T>() + static_cast<std::int64_t>(i) * sequence);
    }
  });
  kv_ = reordered;
  recent.reorder(rows);
}

void KvCache::reorder(std::span<const std::int32_t> rows) {
  check_rows("kv cache", rows, batch_);
  for (KvLayer& layer : layers_) layer.reorder(rows);
  recent.reorder(rows);
  batch_ = static_cast<std::int64_t>(rows.size());
}

std::vector<std::pair<std::string, Tensor*>> KvCache::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (std::size_t i = 0; i < layers_.size(); ++i) list.emplace_back("kv." + std::to_string(i), &layers_[i].kv_);
  return list;
}

void KvCache::clear() {
  for (KvLayer& layer : layers_) {
    layer.length_ = 0;
    layer.recent.clear();
  }
  recent.clear();
}

}  // namespace maki
