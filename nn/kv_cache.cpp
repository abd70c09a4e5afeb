#include "nn/kv_cache.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "nn/gpt.h"

namespace maki {

KvCache::KvCache(const GptConfig& config, std::int64_t batch, DType dtype)
    : capacity_(config.block_size), batch_(batch), n_embd_(config.n_embd) {
  for (std::int64_t i = 0; i < config.n_layer; ++i) layers_.push_back(empty({batch, capacity_, 2 * n_embd_}, dtype));
}

Tensor KvCache::attend(std::int64_t layer, const Tensor& qkv, const Attention& options) {
  const std::int64_t tokens = qkv.shape()[1], total = length_ + tokens, c = n_embd_;
  check(Tape::current() == nullptr, "kv cache: generation is not recorded; end the Recording first");
  check(qkv.shape() == Shape{batch_, tokens, 3 * c}, "kv cache: q, k and v must be [{}, t, {}]; got {}", batch_, 3 * c,
        qkv.shape());
  check(total <= capacity_, "kv cache: at most {} tokens fit; got {}", capacity_, total);
  Tensor& cache = layers_[static_cast<std::size_t>(layer)];
  Tensor y = empty({batch_, tokens, c}, qkv.dtype());
  // A sequence at a time: the filled rows of one sequence are contiguous, those of several are not.
  dispatch(qkv.dtype(), [&]<class T>() {
    for (std::int64_t b = 0; b < batch_; ++b) {
      const T* const rows = qkv.data<T>() + b * tokens * 3 * c;
      T* const stored = cache.data<T>() + (b * capacity_ + length_) * 2 * c;
      for (std::int64_t t = 0; t < tokens; ++t) std::copy_n(rows + t * 3 * c + c, 2 * c, stored + t * 2 * c);
      Tensor q = empty({1, tokens, c}, qkv.dtype());
      for (std::int64_t t = 0; t < tokens; ++t) std::copy_n(rows + t * 3 * c, c, q.data<T>() + t * c);
      const Tensor kv = cache.slice_flat(b * capacity_ * 2 * c, {1, total, 2 * c});
      const Tensor out = attention(q, kv, options);
      std::copy_n(out.data<T>(), tokens * c, y.data<T>() + b * tokens * c);
    }
  });
  return y;
}

}  // namespace maki
