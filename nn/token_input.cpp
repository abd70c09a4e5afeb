#include "nn/token_input.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"

namespace maki {

TokenInput::TokenInput(const Scope& scope, const TransformerConfig& c)
    : TokenInput(scope, c, c.positions == Positions::sinusoidal ? std::sqrt(static_cast<double>(c.n_embd)) : 1,
                 kInitStd) {}

TokenInput::TokenInput(const Scope& scope, const TransformerConfig& c, double factor_of_tokens, double std)
    : block_size(c.block_size), factor(factor_of_tokens) {
  if (c.positions == Positions::learned) wpe.emplace(scope / "wpe", c.block_size, c.n_embd, std);
  if (c.positions == Positions::sinusoidal) {
    sinusoids = std::make_shared<PositionTable>(sinusoidal_positions, c.n_embd, c.position_base, scope.dtype());
  }
  if (!c.ngram_orders.empty()) ngram.emplace(scope / "ngram", c.vocab_size, c.n_embd, c.ngram());
}

Tensor TokenInput::operator()(const char* model, const Tensor& table, const Tensor& ids, std::int64_t start,
                              const Tensor& before) const {
  check(ids && ids.dtype() == DType::int32 && ids.shape().rank() == 2, "{}: ids must be int32 [B, T]; got {} {}", model,
        ids ? to_string(ids.dtype()) : "none", ids ? ids.shape() : Shape{});
  const std::int64_t end = start + ids.shape()[1];
  check(!wpe || end <= block_size,
        "{}: learned positions end at block_size = {} tokens; got {} (sinusoidal positions have no end)", model,
        block_size, end);
  Tensor x = tokens(table, ids);
  if (const Tensor p = positions(start, end)) x = add(x, p);
  return ngram ? add(x, (*ngram)(ids, before)) : x;
}

Tensor TokenInput::tokens(const Tensor& table, const Tensor& ids) const {
  const Tensor x = embedding(table, ids);
  return factor != 1 ? scale(x, factor) : x;
}

Tensor TokenInput::positions(std::int64_t begin, std::int64_t end) const {
  if (wpe) return slice(wpe->weight, 0, begin, end);
  return sinusoids ? sinusoids->rows(begin, end) : Tensor();
}

Tensor checked_padding_mask(const char* model, const Tensor& ids, const Tensor& mask) {
  check(ids && ids.dtype() == DType::int32 && ids.shape().rank() == 2 && ids.shape()[1] >= 1,
        "{}: what an encoder reads must be int32 [B, S] with at least one token; got {} {}", model,
        ids ? to_string(ids.dtype()) : "none", ids ? ids.shape() : Shape{});
  if (!mask) return mask;
  check(mask.dtype() == DType::int32 && mask.shape() == ids.shape(),
        "{}: source_mask must be int32 {}, one entry per token; got {} {}", model, ids.shape(), to_string(mask.dtype()),
        mask.shape());
  const std::int64_t batch = ids.shape()[0], tokens = ids.shape()[1];
  bool hides = false;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int32_t* const row = mask.data<std::int32_t>() + b * tokens;
    const auto hidden = std::count(row, row + tokens, 0);
    check(hidden < tokens,
          "{}: source_mask must leave a token of every sequence visible; it hides all {} of sequence {}", model, tokens,
          b);
    hides = hides || hidden > 0;
  }
  return hides ? mask : Tensor();
}

}  // namespace maki
