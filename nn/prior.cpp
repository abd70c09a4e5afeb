#include "nn/prior.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"

namespace maki {

void check_prior_ids(const TokenPrior& prior, const Tensor& ids) {
  const std::int64_t vocab = prior.vocab_size();
  for (const std::int32_t id : ids.values<std::int32_t>())
    check(id >= 0 && id < vocab, "prior: an id must be in [0, {}); got {}", vocab, id);
}

Tensor prior_of(const TokenPrior& prior, const Tensor& ids, const Tensor& before, DType dtype) {
  constexpr std::int64_t kWorkPerToken = 1000;  // a rough guess, in elementary operations (parallel.h): cache misses
  const std::int64_t batch = ids.shape()[0], tokens = ids.shape()[1], vocab = prior.vocab_size();
  check(!before || before.shape()[0] == batch,
        "prior: the tokens before ids of shape {} must have as many rows; got {}", ids.shape(), before.shape());
  const std::int64_t known = before ? before.shape()[1] : 0;
  check_prior_ids(prior, ids);
  Tensor out = empty({batch, tokens, vocab}, DType::float32);
  const auto row = [](const Tensor& all, std::int64_t length, std::int64_t b) {
    return length == 0 ? std::span<const std::int32_t>()
                       : std::span(all.data<std::int32_t>() + b * length, static_cast<std::size_t>(length));
  };
  parallel_for(batch, tokens * kWorkPerToken, [&](std::int64_t b) {
    prior.log_probabilities(row(before, known, b), row(ids, tokens, b),
                            {out.data<float>() + b * tokens * vocab, static_cast<std::size_t>(tokens * vocab)});
  });
  return dtype == DType::float32 ? out : convert(out, dtype);
}

Tensor PriorGate::operator()(const Tensor& logits, const Tensor& x, const Tensor& prior) const {
  return add_gated(logits, prior, scale(x));
}

}  // namespace maki
