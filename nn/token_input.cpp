#include "nn/token_input.h"

#include "autograd/core/check.h"

namespace maki {

TokenInput::TokenInput(const Scope& scope, const TokenInputOptions& o) : options(o) {
  check(o.positions != Positions::rotary,
        "positions: must be learned, sinusoidal or none for a model that reads more than one sequence; got rotary");
  if (o.positions == Positions::learned) wpe.emplace(scope / "wpe", o.block_size, o.n_embd, o.std);
  if (o.positions == Positions::sinusoidal) {
    sinusoids = std::make_shared<PositionTable>(sinusoidal_positions, o.n_embd, o.base, scope.dtype());
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
  return sinusoids ? add(x, sinusoids->rows(start, end)) : x;
}

}  // namespace maki
