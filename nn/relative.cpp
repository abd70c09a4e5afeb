#include "nn/relative.h"

#include "autograd/core/check.h"

namespace maki {

DistanceAttention::DistanceAttention(const Scope& scope, const BlockOptions& o,
                                     std::shared_ptr<const PositionTable> table)
    : options{.n_head = o.n_head, .dropout = o.dropout},
      encodings(std::move(table)),
      // c_q and c_kv are drawn like the parts of one matrix q‖k‖v [3C, C]; see Init::xavier.
      c_q(scope / "c_q", o.n_embd, o.n_embd, o.bias, o.initial_weights(o.n_embd, 3 * o.n_embd)),
      c_kv(scope / "c_kv", o.n_embd, 2 * o.n_embd, o.bias, o.initial_weights(o.n_embd, 3 * o.n_embd), 2),
      c_r(scope / "c_r", o.n_embd, o.n_embd, /*with_bias=*/false, o.initial_weights(o.n_embd, o.n_embd)),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.initial_residual_weights(o.n_embd, o.n_embd)),
      u(scope.parameter("u", {o.n_embd}, init::normal(kInitStd))),
      v(scope.parameter("v", {o.n_embd}, init::normal(kInitStd))) {
  check(o.n_head >= 1 && o.n_embd % o.n_head == 0, "attention: n_embd must be a multiple of n_head; got {} and {}",
        o.n_embd, o.n_head);
}

Tensor DistanceAttention::attend(const Tensor& x, const Tensor& kv, const Tensor& r, std::int64_t keys) const {
  RelativeAttention with = options;
  with.keys = keys;
  return c_proj(relative_attention(c_q(x), kv, r, u, v, with));
}

DistanceBlock::DistanceBlock(const Scope& scope, const BlockOptions& o,
                             const std::shared_ptr<const PositionTable>& encodings)
    : residual(o),
      ln_1(scope / "ln_1", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      attn(scope / "attn", o, encodings),
      ln_2(scope / "ln_2", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      mlp(scope / "mlp", o) {}

}  // namespace maki
