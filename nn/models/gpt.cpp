#include "nn/models/gpt.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "nn/state_of.h"

namespace maki {

Gpt::Gpt(const Scope& scope, const TransformerConfig& c)
    : config(checked("gpt", c)),
      dtype(scope.dtype()),
      wte(scope / "wte", c.vocab_size, c.n_embd, kInitStd, c.tie_weights),
      input(scope, c),
      drop{c.dropout} {
  const BlockOptions options = block_options(c, dtype);
  for (std::int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(scope / "h" / i, options);
  if (c.norm_order == NormOrder::pre) ln_f.emplace(scope / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
  if (!c.tie_weights)
    lm_head.emplace(scope / "lm_head", c.n_embd, c.vocab_size, /*with_bias=*/false, head_weights(c.ngram_prior),
                    kOutputLayer);
  if (c.ngram_prior > 0) prior_gate.emplace(scope / "prior", c.n_embd);
}

Tensor Gpt::hidden(const Tensor& ids, KvCache* cache) const {
  const auto layer = [this, cache](std::size_t i, const Tensor& x) {
    return h[i](x, cache != nullptr ? &cache->layer(i) : nullptr);
  };
  if (cache == nullptr) return hidden_through(ids, 0, {}, layer);
  check_layers("gpt", cache->layers(), config.n_layer);
  check(ids.shape().rank() == 2 && ids.shape()[0] == cache->batch(),
        "gpt: the next ids must be [{}, t], the batch of the cache; got {}", cache->batch(), ids.shape());
  const Tensor x = hidden_through(ids, cache->length(), cache->recent.ids(), layer);
  cache->recent.append(ids);
  return x;
}

Tensor Gpt::with_prior(const Tensor& x, const Tensor& prior) const {
  if (!prior_gate) return head(x);
  check(static_cast<bool>(prior), "gpt: a model with ngram_prior = {} needs the prior of each token",
        config.ngram_prior);
  return (*prior_gate)(head(x), x, prior);
}

Tensor Gpt::hidden_loss(const Tensor& x, const Tensor& targets, const CrossEntropy& options,
                        const Tensor& prior) const {
  if (prior_gate) return cross_entropy(with_prior(x, prior), targets, options);
  return linear_cross_entropy(x, head_weight(), targets, options);
}

KvCache Gpt::make_cache(std::int64_t batch, std::int64_t capacity) const {
  return KvCache(config.n_layer, batch, capacity == 0 ? config.block_size : capacity, config.kv_width(), dtype,
                 config.recent_tokens());
}

Tensor Gpt::next_logits(const Tensor& ids, KvCache& cache, const Tensor& prior) const {
  check(ids.shape().rank() == 2 && ids.shape()[0] == cache.batch() && ids.shape()[1] >= 1,
        "gpt: the next ids must be [{}, t], the batch of the cache and t >= 1; got {}", cache.batch(), ids.shape());
  const Shape one{cache.batch(), 1, config.vocab_size};
  check(!prior_gate || (prior && prior.dtype() == dtype && prior.shape() == one),
        "gpt: a model with ngram_prior = {} needs a prior {} {} for the next token; got {}", config.ngram_prior,
        to_string(dtype), one, prior ? fmt::format("{} {}", to_string(prior.dtype()), prior.shape()) : "none");
  const Tensor x = hidden(ids, &cache);
  const std::int64_t tokens = ids.shape()[1];
  return reshape(with_prior(slice(x, 1, tokens - 1, tokens), prior), {cache.batch(), config.vocab_size});
}

// Logits above kMaxLogitsBytes are computed in chunks, but not those with a prior, of which kPriorCopies exist.
std::int64_t Gpt::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const std::int64_t tokens = batch * length, logits = tokens * config.vocab_size * size_of(dtype);
  return tokens * activations_per_token(config) * size_of(dtype) +
         (prior_gate ? kPriorCopies * logits : std::min(logits, kMaxLogitsBytes));
}

std::unique_ptr<State> GptModel::start(std::int64_t batch, const Tensor& source, const Tensor&) const {
  check(!source, "gpt: takes no source; got one of shape {}", source.shape());
  return std::unique_ptr<State>(new KvCache(gpt.make_cache(batch)));
}

Tensor GptModel::next_logits(const Tensor& ids, State& state) const {
  KvCache& cache = state_of<KvCache>(state, "gpt");
  return gpt.next_logits(ids, cache, prior_of_last(ids, cache.recent.ids(), gpt.dtype));
}

}  // namespace maki
