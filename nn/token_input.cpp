#include "nn/token_input.h"

#include "autograd/core/check.h"
#include "nn/transformer.h"

namespace maki {

TokenInput::TokenInput(const Scope& scope, const TokenInputOptions& o) : options(o) {
  if (o.positions == TokenPositions::learned) wpe.emplace(scope / "wpe", o.block_size, o.n_embd, o.std);
  if (o.positions == TokenPositions::sinusoidal) {
    sinusoids = sinusoidal_positions(o.block_size, o.n_embd, o.base, scope.dtype());
  }
}

Tensor TokenInput::operator()(const char* model, const Tensor& table, const Tensor& ids, std::int64_t start) const {
  check(ids && ids.dtype() == DType::int32 && ids.shape().rank() == 2, "{}: ids must be int32 [B, T]; got {} {}", model,
        ids ? to_string(ids.dtype()) : "none", ids ? ids.shape() : Shape{});
  const std::int64_t end = start + ids.shape()[1];
  check(!wpe || end <= options.block_size,
        "{}: learned positions end at block_size = {} tokens; got {} (sinusoidal positions have no end)", model,
        options.block_size, end);
  Tensor x = embedding(table, ids);
  if (options.factor != 1) x = scale(x, options.factor);
  if (wpe) return add(x, slice(wpe->weight, 0, start, end));
  if (!sinusoids) return x;
  if (end <= options.block_size) return add(x, slice(sinusoids, 0, start, end));
  return add(x, slice(sinusoidal_positions(end, options.n_embd, options.base, x.dtype()), 0, start, end));
}

}  // namespace maki
