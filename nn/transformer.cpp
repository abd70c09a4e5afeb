#include "nn/transformer.h"

#include <cmath>

#include "autograd/core/check.h"

namespace maki {

MultiHeadAttention::MultiHeadAttention(const Scope& scope, std::int64_t width, std::int64_t n_head, bool causal,
                                       bool bias, double dropout, double projection_std)
    : n_embd(width),
      options{.n_head = n_head, .causal = causal, .dropout = dropout},
      c_attn(scope / "c_attn", width, 3 * width, bias, kInitStd),
      c_proj(scope / "c_proj", width, width, bias, projection_std) {
  check(n_head >= 1 && width % n_head == 0, "attention: n_embd must be a multiple of n_head; got {} and {}", n_embd,
        n_head);
}

Tensor MultiHeadAttention::operator()(const Tensor& x) const { return c_proj(attention(c_attn(x), options)); }

FeedForward::FeedForward(const Scope& scope, std::int64_t n_embd, Activation kind, bool bias, double projection_std)
    : activation(kind),
      c_fc(scope / "c_fc", n_embd, 4 * n_embd, bias, kInitStd),
      c_proj(scope / "c_proj", 4 * n_embd, n_embd, bias, projection_std) {}

Block::Block(const Scope& scope, const BlockOptions& o)
    : order(o.norm),
      ln_1(scope / "ln_1", o.n_embd, o.bias),
      attn(scope / "attn", o.n_embd, o.n_head, o.causal, o.bias, o.dropout, o.projection_std),
      ln_2(scope / "ln_2", o.n_embd, o.bias),
      mlp(scope / "mlp", o.n_embd, o.activation, o.bias, o.projection_std),
      drop{o.dropout} {}

Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype) {
  check(base > 1, "positions: the base must be above 1; got {}", base);
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
