#include "nn/transformer.h"

#include <cmath>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"

namespace maki {

double BlockOptions::init_std(std::int64_t in, std::int64_t out, double gpt2) const {
  return init == Init::gpt2 ? gpt2 : std::sqrt(2 / static_cast<double>(in + out));
}

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const BlockOptions& o)
    : options{.n_head = o.n_head, .causal = o.causal, .dropout = o.dropout},
      c_attn(scope / "c_attn", o.n_embd, 3 * o.n_embd, o.bias, o.init_std(o.n_embd, 3 * o.n_embd, kInitStd)),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.init_std(o.n_embd, o.n_embd, o.projection_std)) {
  check(o.n_head >= 1 && o.n_embd % o.n_head == 0, "attention: n_embd must be a multiple of n_head; got {} and {}",
        o.n_embd, o.n_head);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask,
                                      const Tensor& mask) const {
  const Tensor qkv = c_attn(x);
  Attention masked = options;
  if (key_mask) masked.key_mask = key_mask;
  if (mask) masked.mask = mask;
  return c_proj(cache != nullptr ? cache->attend(qkv, masked) : attention(qkv, masked));
}

FeedForward::FeedForward(const Scope& scope, const BlockOptions& o)
    : activation(o.activation),
      c_fc(scope / "c_fc", o.n_embd, 4 * o.n_embd, o.bias, o.init_std(o.n_embd, 4 * o.n_embd, kInitStd)),
      c_proj(scope / "c_proj", 4 * o.n_embd, o.n_embd, o.bias, o.init_std(4 * o.n_embd, o.n_embd, o.projection_std)) {}

Block::Block(const Scope& scope, const BlockOptions& o)
    : order(o.norm),
      ln_1(scope / "ln_1", o.n_embd, o.bias),
      attn(scope / "attn", o),
      ln_2(scope / "ln_2", o.n_embd, o.bias),
      mlp(scope / "mlp", o),
      drop{o.dropout} {}

Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype) {
  check(base > 1, "positions: the base of sinusoidal positions must be above 1; got {}", base);
  Tensor table = empty({length, n_embd}, dtype);
  dispatch(dtype, [&]<class T>() {
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t c = 0; c < n_embd; ++c) {
        const double frequency = std::pow(base, -static_cast<double>(c / 2 * 2) / static_cast<double>(n_embd));
        const double angle = static_cast<double>(t) * frequency;
        table.data<T>()[t * n_embd + c] = static_cast<T>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  return table;
}

}  // namespace maki
