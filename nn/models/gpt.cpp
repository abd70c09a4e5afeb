#include "nn/models/gpt.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"

namespace maki {
namespace {

const GptConfig& checked(const GptConfig& c) {
  check(c.n_layer >= 1 && c.n_head >= 1 && c.n_embd >= 1 && c.block_size >= 1 && c.vocab_size >= 1,
        "gpt: n_layer, n_head, n_embd, block_size and vocab_size must be at least 1; got {}, {}, {}, {}, {}", c.n_layer,
        c.n_head, c.n_embd, c.block_size, c.vocab_size);
  check(c.n_embd % c.n_head == 0, "gpt: n_embd must be a multiple of n_head; got {} and {}", c.n_embd, c.n_head);
  check(c.n_kv_head == 0 || (c.n_kv_head >= 1 && c.n_head % c.n_kv_head == 0),
        "gpt: n_kv_head must be 0 or divide n_head; got {} and {}", c.n_kv_head, c.n_head);
  check(c.dropout >= 0 && c.dropout < 1, "gpt: dropout must be in [0, 1); got {}", c.dropout);
  check(c.logit_cap >= 0, "gpt: logit_cap must be at least 0; got {}", c.logit_cap);
  check(c.ffn_width >= 0, "gpt: ffn_width must be at least 0; got {}", c.ffn_width);
  check(c.ngram_prior >= 0, "gpt: ngram_prior must be at least 0; got {}", c.ngram_prior);
  check(!c.recompute_blocks || !(c.extras.input_skip || c.extras.value_residual),
        "gpt: recompute_blocks needs blocks that read the one before alone; omit it, or input_skip and value_residual");
  check(c.norm_epsilon > 0, "gpt: norm_epsilon must be above 0; got {}", c.norm_epsilon);
  return c;
}

BlockOptions block_options(const GptConfig& c, DType dtype) {
  return {.n_embd = c.n_embd,
          .n_head = c.n_head,
          .n_kv_head = c.n_kv_head,
          .causal = true,
          .bias = c.bias,
          .dropout = c.dropout,
          .activation = c.activation,
          .norm_order = c.norm_order,
          .norm = c.norm,
          .projection_std = kInitStd / std::sqrt(2.0 * static_cast<double>(c.n_layer)),
          .extras = c.extras,
          .ffn_width = c.ffn_width,
          .norm_epsilon = c.norm_epsilon,
          .rotary = rotary_table(c.positions, c.n_embd / c.n_head, c.position_base, dtype)};
}

BlockOptions first_block_options(BlockOptions options) {
  options.extras = options.extras.of_first_block();
  return options;
}

}  // namespace

Gpt::Gpt(const Scope& scope, const GptConfig& c)
    : config(checked(c)), dtype(scope.dtype()), wte(scope / "wte", c.vocab_size, c.n_embd), drop{c.dropout} {
  if (c.positions == Positions::learned) wpe.emplace(scope / "wpe", c.block_size, c.n_embd);
  if (c.positions == Positions::sinusoidal) {
    sinusoids = std::make_shared<PositionTable>(sinusoidal_positions, c.n_embd, c.position_base, scope.dtype());
  }
  if (!c.ngram.orders.empty()) ngram.emplace(scope / "ngram", c.vocab_size, c.n_embd, c.ngram);
  const BlockOptions options = block_options(c, scope.dtype()), first = first_block_options(options);
  for (std::int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(scope / "h" / i, i == 0 ? first : options);
  if (c.norm_order == NormOrder::pre) ln_f.emplace(scope / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
  if (!c.tie_weights)
    lm_head.emplace(scope / "lm_head", c.n_embd, c.vocab_size, /*with_bias=*/false, head_weights(c.ngram_prior),
                    kOutputLayer);
  if (c.ngram_prior > 0) prior_gate.emplace(scope / "prior", c.n_embd);
}

// Embeds tokens at positions start … start + T − 1, before which `before` was read: [B, T] → [B, T, C].
Tensor Gpt::embed(const Tensor& ids, std::int64_t start, const Tensor& before) const {
  const Tensor x = tokens_and_positions(ids, start);
  return drop(ngram ? add(x, (*ngram)(ids, before)) : x);
}

Tensor Gpt::tokens_and_positions(const Tensor& ids, std::int64_t start) const {
  check(ids.dtype() == DType::int32 && ids.shape().rank() == 2, "gpt: ids must be int32 [B, T]; got {} {}",
        to_string(ids.dtype()), ids.shape());
  const std::int64_t end = start + ids.shape()[1];
  check(!wpe || end <= config.block_size,
        "gpt: a sequence has at most block_size = {} tokens, because learned positions end there; got {}",
        config.block_size, end);
  const Tensor tokens = wte(ids);
  if (wpe) return add(tokens, slice(wpe->weight, 0, start, end));
  if (!sinusoids) return tokens;
  return add(scale(tokens, std::sqrt(static_cast<double>(config.n_embd))), sinusoids->rows(start, end));
}

Tensor Gpt::hidden(const Tensor& ids, KvCache* cache) const {
  const auto layer = [this, cache](std::size_t i, const Tensor& x, BlockContext* context) {
    return h[i](x, cache != nullptr ? &cache->layer(i) : nullptr, {}, {}, context);
  };
  if (cache == nullptr) return hidden_through(ids, 0, {}, layer);
  const Tensor x = hidden_through(ids, cache->length(), cache->recent.ids(), layer);
  cache->recent.append(ids);
  return x;
}

Tensor Gpt::head(const Tensor& x) const {
  const Tensor logits = linear(x, head_weight());
  const double cap = config.logit_cap;
  return cap > 0 ? scale(tanh(scale(logits, 1 / cap)), cap) : logits;
}

Tensor Gpt::with_prior(const Tensor& x, const Tensor& prior) const {
  if (!prior_gate) return head(x);
  check(static_cast<bool>(prior), "gpt: a model with ngram_prior = {} needs the prior of each token",
        config.ngram_prior);
  return (*prior_gate)(head(x), x, prior);
}

Tensor Gpt::hidden_loss(const Tensor& x, const Tensor& targets, const CrossEntropy& options,
                        const Tensor& prior) const {
  if (config.logit_cap > 0 || prior_gate) return cross_entropy(with_prior(x, prior), targets, options);
  return linear_cross_entropy(x, head_weight(), targets, options);
}

KvCache Gpt::make_cache(std::int64_t batch, std::int64_t capacity) const {
  const std::int64_t kv_width = config.n_embd / config.n_head * h.front().attn.options.kv_heads();
  return KvCache(config.n_layer, batch, capacity == 0 ? config.block_size : capacity, kv_width, dtype, recent_tokens());
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

std::int64_t Gpt::parameter_count() const {
  const BlockOptions block = block_options(config, dtype);
  const std::int64_t tables = config.vocab_size * config.n_embd * (config.tie_weights ? 1 : 2);
  const std::int64_t ngrams = ngram ? ngram->weight.shape().numel() : 0;
  const std::int64_t blocks =
      block_parameter_count(first_block_options(block)) + (config.n_layer - 1) * block_parameter_count(block);
  return tables + ngrams + blocks + (ln_f ? norm_parameter_count(block) : 0) + (prior_gate ? config.n_embd + 1 : 0);
}

std::int64_t Gpt::flop_parameter_count() const {
  const std::int64_t ngrams = ngram ? ngram->weight.shape().numel() : 0;
  return parameter_count() - ngrams - (config.tie_weights ? 0 : config.vocab_size * config.n_embd);
}

double Gpt::flop_per_token(std::int64_t length) const {
  return 6 * static_cast<double>(flop_parameter_count()) +
         12 * static_cast<double>(config.n_layer * config.n_embd) * static_cast<double>(length);
}

// Saved per token and block: two norms (2C), packed projections (3C, or fewer with fewer keys), attention (C), the
// hidden layer with its derivative (8C) or with gate‖up (3F), two residual sums (2C), a few numbers for heads and
// norms. Around the blocks: embedding and final norm. The extras save their inputs: q‖k‖v, those of convolutions (2C),
// the outputs of branches (2C), the sum with the skip (C), q‖k‖v with the values of the first block. Alive at the same
// time in backward: the gradients of a hidden layer before and after its activation, and of the residual. Logits above
// kMaxLogitsBytes are computed in chunks, but not those with a cap or a prior, of which three copies exist, or
// kPriorCopies.
std::int64_t Gpt::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const std::int64_t width = config.n_embd, tokens = batch * length;
  const BlockOptions options = block_options(config, dtype);
  const std::int64_t hidden = options.hidden_width(), qkv = options.qkv_width();
  const std::int64_t layer = (1 + columns_per_output(config.activation)) * hidden;
  const BlockExtras& e = config.extras;
  const std::int64_t extras = (e.qk_norm ? qkv + 2 * config.n_head : 0) + (e.conv_width > 0 ? 2 * width : 0) +
                              (e.branch_scales ? 2 * width : 0) + (e.input_skip ? width : 0) +
                              (e.value_residual ? qkv : 0);
  const std::int64_t block = 5 * width + qkv + layer + extras + config.n_head + 4;
  const std::int64_t blocks = config.recompute_blocks ? config.n_layer * width + block : config.n_layer * block;
  const std::int64_t saved = blocks + 2 * width;
  const std::int64_t passing = layer + width + width * config.ngram.activation_vectors();
  const std::int64_t size = size_of(dtype);
  const std::int64_t logits = tokens * config.vocab_size * size;
  return tokens * (saved + passing) * size + (prior_gate             ? kPriorCopies * logits
                                              : config.logit_cap > 0 ? 3 * logits
                                                                     : std::min(logits, kMaxLogitsBytes));
}

std::unique_ptr<State> GptModel::start(std::int64_t batch, const Tensor& source, const Tensor&) const {
  check(!source, "gpt: takes no source; got one of shape {}", source.shape());
  return std::unique_ptr<State>(new KvCache(gpt.make_cache(batch)));
}

Tensor GptModel::next_logits(const Tensor& ids, State& state) const {
  auto* const cache = dynamic_cast<KvCache*>(&state);
  check(cache != nullptr, "gpt: next_logits() needs a state made by start()");
  return gpt.next_logits(ids, *cache, prior_of_last(ids, cache->recent.ids(), gpt.dtype));
}

}  // namespace maki
