#include "nn/gpt.h"

#include <cmath>

#include "autograd/core/check.h"
#include "nn/kv_cache.h"

namespace maki {
namespace {

GptConfig checked(const GptConfig& c) {
  check(c.n_layer >= 1 && c.n_head >= 1 && c.n_embd >= 1 && c.block_size >= 1 && c.vocab_size >= 1,
        "gpt: n_layer, n_head, n_embd, block_size and vocab_size must be at least 1; got {}, {}, {}, {}, {}", c.n_layer,
        c.n_head, c.n_embd, c.block_size, c.vocab_size);
  check(c.n_embd % c.n_head == 0, "gpt: n_embd must be a multiple of n_head; got {} and {}", c.n_embd, c.n_head);
  return c;
}

}  // namespace

Gpt::Gpt(const Scope& scope, const GptConfig& c)
    : config(checked(c)),
      wte(scope / "wte", c.vocab_size, c.n_embd),
      wpe([&] {
        std::vector<Embedding> positions;
        if (c.sinusoidal_base == 0) positions.emplace_back(scope / "wpe", c.block_size, c.n_embd);
        return positions;
      }()),
      sinusoids(c.sinusoidal_base == 0
                    ? Tensor()
                    : sinusoidal_positions(c.block_size, c.n_embd, c.sinusoidal_base, scope.dtype())),
      h([&] {
        const BlockOptions options{.n_embd = c.n_embd,
                                   .n_head = c.n_head,
                                   .causal = true,
                                   .bias = c.bias,
                                   .dropout = c.dropout,
                                   .activation = c.activation,
                                   .norm = c.norm,
                                   .projection_std = kInitStd / std::sqrt(2.0 * static_cast<double>(c.n_layer))};
        std::vector<Block> blocks;
        for (std::int64_t i = 0; i < c.n_layer; ++i) blocks.emplace_back(scope / "h" / i, options);
        return blocks;
      }()),
      ln_f(scope / "ln_f", c.n_embd, c.bias),
      lm_head([&] {
        std::vector<Linear> head;
        if (!c.tie_weights) head.emplace_back(scope / "lm_head", c.n_embd, c.vocab_size, false, kInitStd);
        return head;
      }()),
      drop{c.dropout} {}

// Tokens at positions start … start + T − 1: [B, T] → [B, T, C].
Tensor Gpt::embed(const Tensor& ids, std::int64_t start) const {
  check(ids.shape().rank() == 2 && ids.dtype() == DType::int32, "gpt: ids must be [B, T] int32; got {} {}",
        to_string(ids.dtype()), ids.shape());
  const std::int64_t end = start + ids.shape()[1];
  check(end <= config.block_size, "gpt: at most block_size = {} tokens fit; got {}", config.block_size, end);
  const Tensor positions = slice(wpe.empty() ? sinusoids : wpe[0].weight.value(), 0, start, end);
  return drop(add(wte(ids), positions));
}

Tensor Gpt::hidden(const Tensor& ids) const {
  Tensor x = embed(ids, 0);
  for (const Block& block : h) x = block(x);
  return ln_f(x);
}

Tensor Gpt::head(const Tensor& x) const { return lm_head.empty() ? linear(x, wte.weight) : lm_head[0](x); }

Tensor Gpt::next_logits(const Tensor& ids, KvCache& cache) const {
  const std::int64_t length = ids.shape()[1];
  Tensor x = embed(ids, cache.length());
  for (std::size_t layer = 0; layer < h.size(); ++layer) {
    const Block& block = h[layer];
    const auto cached_attention = [&](const Tensor& in) {
      return block.attn.c_proj(
          cache.attend(static_cast<std::int64_t>(layer), block.attn.c_attn(in), block.attn.options));
    };
    x = block.residual(block.residual(x, block.ln_1, cached_attention), block.ln_2, block.mlp);
  }
  cache.advance(length);
  const Tensor last = slice(x, 1, length - 1, length);
  return reshape(head(ln_f(last)), {ids.shape()[0], config.vocab_size});
}

std::int64_t Gpt::parameter_count() const {
  const std::int64_t c = config.n_embd, biases = config.bias ? 1 : 0;
  const std::int64_t block = 12 * c * c + biases * 9 * c + (1 + biases) * 2 * c;
  return config.vocab_size * c * (config.tie_weights ? 1 : 2) + config.n_layer * block + (1 + biases) * c;
}

double Gpt::flop_per_token(std::int64_t length) const {
  return 6.0 * static_cast<double>(parameter_count()) +
         12.0 * static_cast<double>(config.n_layer) * static_cast<double>(config.n_embd) * static_cast<double>(length);
}

}  // namespace maki
