#include "nn/models/transformer_xl.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "nn/state_of.h"

namespace maki {
namespace {

// The memory has ids as numbers, of which float32 has all integers up to here.
constexpr std::int64_t kMaxCarriedIds = std::int64_t{1} << 24;

const TransformerXlConfig& checked(const TransformerXlConfig& c) {
  checked("transformer-xl", c);
  check(c.memory >= 0, "transformer-xl: memory must be at least 0; got {}", c.memory);
  check(c.memory == 0 || c.memory >= c.recent_tokens(),
        "transformer-xl: a memory must hold the {} tokens before those of an n-gram; got {}; choose a longer memory, "
        "none, or shorter n-grams",
        c.recent_tokens(), c.memory);
  check(c.memory == 0 || c.recent_tokens() == 0 || c.vocab_size <= kMaxCarriedIds,
        "transformer-xl: n-grams that continue from the memory need a vocabulary of at most {} tokens; got {}",
        kMaxCarriedIds, c.vocab_size);
  return c;
}

TransformerConfig without_positions(TransformerConfig c) {
  c.positions = Positions::none;
  return c;
}

}  // namespace

TransformerXl::TransformerXl(const Scope& scope, const TransformerXlConfig& c)
    : config(checked(c)),
      dtype(scope.dtype()),
      wte(scope / "wte", c.vocab_size, c.n_embd, kInitStd, c.tie_weights),
      input(scope, without_positions(c)),
      encodings(std::make_shared<PositionTable>(sinusoidal_positions, c.n_embd, c.position_base, dtype)),
      drop{c.dropout} {
  const BlockOptions options = block_options(without_positions(c), dtype);
  for (std::int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(scope / "h" / i, options, encodings);
  if (c.norm_order == NormOrder::pre) ln_f.emplace(scope / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
  if (!c.tie_weights)
    lm_head.emplace(scope / "lm_head", c.n_embd, c.vocab_size, /*with_bias=*/false, head_weights(c.ngram_prior),
                    kOutputLayer);
  if (c.ngram_prior > 0) prior_gate.emplace(scope / "prior", c.n_embd);
}

Tensor TransformerXl::with_prior(const Tensor& x, const Tensor& prior) const {
  if (!prior_gate) return head(x);
  check(static_cast<bool>(prior), "transformer-xl: a model with ngram_prior = {} needs the prior of each token",
        config.ngram_prior);
  return (*prior_gate)(head(x), x, prior);
}

Tensor TransformerXl::hidden(const Tensor& ids, const SegmentMemory* memory, std::vector<Tensor>* entering) const {
  check(memory == nullptr || memory->batch() == ids.shape()[0],
        "transformer-xl: ids must have as many rows as the memory, {}; got {}", memory != nullptr ? memory->batch() : 0,
        ids.shape());
  if (memory != nullptr) check_layers("transformer-xl", memory->layers(), config.n_layer);
  const Tensor embedded = embed(ids, memory != nullptr ? memory->recent() : Tensor());
  if (entering != nullptr) entering->clear();
  return hidden_through(embedded, [&](std::size_t i, const Tensor& x) {
    if (entering != nullptr) entering->push_back(x);
    return h[i](x, memory != nullptr ? memory->layer(i) : Tensor());
  });
}

// The memory is replaced last, so that it is as before if anything is refused.
Tensor TransformerXlModel::loss(const Batch& batch, const CrossEntropy& options, State* carried) const {
  constexpr const char* kRule = "loss() needs a state made by make_carried()";
  SegmentMemory* const memory =
      carried != nullptr ? &state_of<SegmentMemory>(*carried, "transformer-xl", kRule) : nullptr;
  std::vector<Tensor> entering;
  const Tensor prior = prior_of_batch(batch, net.dtype, memory != nullptr ? memory->recent() : Tensor());
  const Tensor x = net.hidden(batch.ids, memory, &entering);
  Tensor loss = net.prior_gate || batch.expected ? loss_of_logits(net.with_prior(x, prior), batch, options)
                                                 : linear_cross_entropy(x, net.head_weight(), batch.targets, options);
  if (memory != nullptr) memory->append(batch.ids, entering);
  return loss;
}

Tensor TransformerXlModel::logits(const Tensor& ids, SegmentMemory* memory, const Tensor& prior) const {
  std::vector<Tensor> entering;
  Tensor y = net.with_prior(net.hidden(ids, memory, &entering), prior);
  if (memory != nullptr) memory->append(ids, entering);
  return y;
}

std::optional<ForwardParts> TransformerXlModel::forward_parts(const Tensor& ids) const {
  const Tensor prior = prior_of_batch({.ids = ids}, net.dtype);
  ForwardParts parts{.embedding = net.embed(ids), .positions = {}, .position_kind = "relative"};
  net.hidden_through(parts.embedding, keeping_streams(parts.streams, [this](std::size_t i, const Tensor& x) {
                       return net.h[i](x, Tensor());
                     }));
  parts.embedding = net.input.tokens(net.wte.weight, ids);  // without n-grams
  parts.logits = [this, prior](const Tensor& x) { return net.with_prior(net.ln_f ? (*net.ln_f)(x) : x, prior); };
  return parts;
}

std::unique_ptr<State> TransformerXlModel::make_carried(std::int64_t batch) const {
  if (net.config.memory == 0) return nullptr;
  return std::make_unique<SegmentMemory>(net.config, batch, net.dtype);
}

double TransformerXlModel::attention_flop(std::int64_t length) const {
  const TransformerXlConfig& c = net.config;
  const auto n_layer = static_cast<double>(c.n_layer), width = static_cast<double>(c.n_embd);
  const double projected = static_cast<double>(c.memory) / static_cast<double>(length);
  return 1.5 * maki::attention_flop(c, length + c.memory) + 12 * n_layer * width * width * projected;
}

// Saved per token of a block: what a Block saves but keys and values (2C). Saved per token that it attends to: keys and
// values (2C), the projected encodings of distances (C, once per batch) and, with a memory, what the keys were
// projected from (C); what entered the block for the memory is part of the carried state. Around the blocks: embedding
// and final norm. Alive at once in backward: the gradients of a hidden layer and of the residual, or those of queries,
// keys, values and distances.
std::int64_t TransformerXlModel::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const TransformerXlConfig& c = net.config;
  const std::int64_t width = c.n_embd, tokens = batch * length, keys = batch * (length + c.memory);
  const std::int64_t by_token = tokens * (saved_by_block(c) - 2 * width);
  const std::int64_t by_key = keys * (c.memory > 0 ? 3 : 2) * width + (length + c.memory) * width;
  const std::int64_t passing = std::max(tokens * passing_in_block(c), 3 * tokens * width + 3 * keys * width) +
                               tokens * width * c.ngram().activation_vectors();
  const std::int64_t logits = tokens * c.vocab_size * size_of(net.dtype);
  return (c.n_layer * (by_token + by_key) + 2 * tokens * width + passing) * size_of(net.dtype) +
         (net.prior_gate ? kPriorCopies * logits : std::min(logits, kMaxLogitsBytes));
}

std::unique_ptr<State> TransformerXlModel::start(std::int64_t batch, const Tensor& source, const Tensor&) const {
  check(!source, "transformer-xl: takes no source; got one of shape {}", source.shape());
  std::vector<Tensor> r;
  for (const DistanceBlock& block : net.h) {
    r.push_back(block.attn.distances(net.config.memory + net.config.block_size).detach());
  }
  return std::make_unique<DistanceCache>(net.config, batch, std::move(r), net.dtype);
}

// Every token is looked up before the first is read, so that ids outside the vocabulary are refused in time.
Tensor TransformerXlModel::next_logits(const Tensor& ids, State& state) const {
  DistanceCache& cache = state_of<DistanceCache>(state, "transformer-xl");
  check(Tape::current() == nullptr, "transformer-xl: generation has no gradient; end the Recording before");
  check(ids.shape().rank() == 2 && ids.shape()[0] == cache.batch() && ids.shape()[1] >= 1,
        "transformer-xl: the next ids must be [{}, t], the batch of the state and t >= 1; got {}", cache.batch(),
        ids.shape());
  check_layers("transformer-xl", cache.layers(), net.config.n_layer);
  const Tensor embedded = net.embed(ids, cache.recent.ids());
  const Tensor prior = prior_of_last(ids, cache.recent.ids(), net.dtype);
  const std::int64_t tokens = ids.shape()[1];
  Tensor x;
  for (std::int64_t begin = 0, end = 0; begin < tokens; begin = end) {
    end = std::min(tokens, begin + cache.room());
    x = net.hidden_through(slice(embedded, 1, begin, end), [&](std::size_t i, const Tensor& entering) {
      const DistanceAttention& attn = net.h[i].attn;
      return net.h[i].with_attention(entering, [&](const Tensor& y) {
        const Tensor& kv = cache.append(i, attn.c_kv(y));
        return attn.attend(y, kv, cache.distances(i), cache.held() + y.shape()[1]);
      });
    });
    cache.advance(end - begin);
  }
  cache.recent.append(ids);
  const std::int64_t last = x.shape()[1];
  return reshape(net.with_prior(slice(x, 1, last - 1, last), prior), {cache.batch(), net.config.vocab_size});
}

}  // namespace maki
