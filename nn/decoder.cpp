#include "nn/decoder.h"

#include "autograd/core/check.h"

namespace maki {
namespace {

BlockOptions causal(BlockOptions options) {
  options.causal = true;
  return options;
}

}  // namespace

CrossAttention::CrossAttention(const Scope& scope, const BlockOptions& o)
    : options{.n_head = o.n_head, .dropout = o.dropout},
      c_q(scope / "c_q", o.n_embd, o.n_embd, o.bias, o.initial_weights(o.n_embd, 3 * o.n_embd)),
      c_kv(scope / "c_kv", o.n_embd, 2 * o.n_embd, o.bias, o.initial_weights(o.n_embd, 3 * o.n_embd), 2),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.initial_residual_weights(o.n_embd, o.n_embd)) {
  check(o.n_head >= 1 && o.n_embd % o.n_head == 0,
        "cross-attention: n_embd must be a multiple of n_head; got {} and {}", o.n_embd, o.n_head);
}

Tensor CrossAttention::operator()(const Tensor& x, const CrossKeys& source) const {
  Attention masked = options;
  if (source.key_mask) masked.key_mask = source.key_mask;
  return c_proj(attention(c_q(x), source.kv, masked));
}

DecoderBlock::DecoderBlock(const Scope& scope, const BlockOptions& o)
    : residual(o),
      ln_1(scope / "ln_1", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      attn(scope / "attn", causal(o)),
      ln_2(scope / "ln_2", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      cross(scope / "cross", o),
      ln_3(scope / "ln_3", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      mlp(scope / "mlp", o) {}

}  // namespace maki
