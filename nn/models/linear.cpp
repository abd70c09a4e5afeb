#include "nn/models/linear.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "nn/state_of.h"

namespace maki {
namespace {

// Sets all elements to zero, in place.
void clear(Tensor& x) {
  dispatch(x.dtype(), [&]<class T>() { std::fill_n(x.data<T>(), x.numel(), T{0}); });
}

}  // namespace

LinearState::LinearState(std::int64_t n_layer, std::int64_t batch, std::int64_t n_head, std::int64_t features,
                         std::int64_t head_size, std::int64_t capacity, DType dtype, std::int64_t recent_tokens)
    : recent(recent_tokens),
      batch_(batch),
      capacity_(capacity),
      recent_inputs_(static_cast<std::size_t>(std::max<std::int64_t>(n_layer, 0))) {
  check(n_layer >= 1 && batch >= 1 && n_head >= 1 && features >= 1 && head_size >= 1,
        "linear: layers, batch, heads, features and head size must be at least 1; got {}, {}, {}, {}, {}", n_layer,
        batch, n_head, features, head_size);
  for (std::int64_t i = 0; i < n_layer; ++i) {
    layers_.push_back({zeros({batch, n_head, features, head_size}, dtype), zeros({batch, n_head, features}, dtype)});
  }
}

void LinearState::clear() {
  for (LinearAttentionSums& layer : layers_) {
    maki::clear(layer.products);
    maki::clear(layer.keys);
  }
  for (RecentInputs& inputs : recent_inputs_) inputs.clear();
  recent.clear();
  length_ = 0;
}

void LinearState::reorder(std::span<const std::int32_t> rows) {
  check_rows("linear", rows, batch_);
  for (LinearAttentionSums& layer : layers_) {
    layer.products = rows_of(layer.products, rows);
    layer.keys = rows_of(layer.keys, rows);
  }
  for (RecentInputs& inputs : recent_inputs_) inputs.reorder(rows);
  recent.reorder(rows);
  batch_ = std::ssize(rows);
}

std::vector<std::pair<std::string, Tensor*>> LinearState::tensors() {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    list.emplace_back("sums." + std::to_string(i), &layers_[i].products);
    list.emplace_back("norms." + std::to_string(i), &layers_[i].keys);
  }
  return list;
}

LinearModel::LinearModel(const Scope& scope, const LinearConfig& c) : attention(c.attention), gpt(scope, c) {
  if (attention.kind == AttentionForm::Kind::softmax) return;
  check(c.n_kv_head == 0 || c.n_kv_head == c.n_head,
        "linear: n_kv_head must be 0 or n_head, because heads cannot share features; got {} and {}", c.n_kv_head,
        c.n_head);
  for (std::int64_t i = 0; i < c.n_layer; ++i) {
    maps.emplace_back(scope / "h" / i / "attn", attention, c.n_head, c.n_embd / c.n_head);
  }
}

Tensor LinearModel::attend(std::size_t i, const Tensor& x, LinearState* state) const {
  const MultiHeadAttention& attn = gpt.h[i].attn;
  const std::int64_t c = gpt.config.n_embd;
  const Tensor qkv = attn.project(x, state != nullptr ? state->length() : 0);
  const Tensor q = maps[i].queries(slice(qkv, 2, 0, c)), k = maps[i].keys(slice(qkv, 2, c, 2 * c));
  const Tensor v = slice(qkv, 2, 2 * c, 3 * c);
  const LinearAttention options{.n_head = gpt.config.n_head, .floor = maps[i].floor()};
  return attn.c_proj(state != nullptr ? linear_attention(q, k, v, options, state->layer(i))
                                      : linear_attention(q, k, v, options));
}

Tensor LinearModel::block(std::size_t i, const Tensor& x, LinearState* state) const {
  if (maps.empty()) return gpt.h[i](x);
  return gpt.h[i].with_attention(
      x, [&](const Tensor& normed) { return attend(i, normed, state); },
      state != nullptr ? &state->recent_inputs(i) : nullptr);
}

Tensor LinearModel::hidden(const Tensor& ids, LinearState* state) const {
  if (maps.empty()) return gpt.hidden(ids);
  const auto layer = [this, state](std::size_t i, const Tensor& x) { return block(i, x, state); };
  if (state == nullptr) return gpt.hidden_through(ids, 0, {}, layer);
  check_layers("linear", state->layers(), gpt.config.n_layer);
  const Tensor y = gpt.hidden_through(ids, state->length(), state->recent.ids(), layer);
  state->advance(ids.shape()[1]);
  state->recent.append(ids);
  return y;
}

double LinearModel::attention_flop(std::int64_t length) const {
  if (maps.empty()) return maki::attention_flop(gpt.config, length);
  const TransformerConfig& c = gpt.config;
  const std::int64_t head_width = c.n_embd / c.n_head;
  const double state = 4.0 * static_cast<double>(maps[0].features() * head_width);
  const double heads = static_cast<double>(c.n_layer * c.n_head);
  return 3 * heads * (state + 2 * maps[0].flop());
}

// Attention of gpt saves the packed projections (3C), here it saves v (C), the features of queries and keys (2·H·F),
// and what their maps save: for random and Nyström features the scaled queries and keys (2C), for Nyström ones also the
// kernel values of the landmarks (2·H·F). Alive at once in backward: the gradients of the features and projections, as
// far as they are more than the 9C of a hidden layer of width 4C and of the residual, which gpt counts.
std::int64_t LinearModel::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const std::int64_t own = gpt.activation_bytes(batch, length);
  if (maps.empty()) return own;
  const std::int64_t c = gpt.config.n_embd, features = 2 * gpt.config.n_head * maps[0].features();
  std::int64_t saved = c + features;
  if (attention.kind != AttentionForm::Kind::elu) saved += 2 * c;
  if (attention.kind == AttentionForm::Kind::nystrom) saved += features;
  const std::int64_t passing = std::max<std::int64_t>(0, 2 * features + 4 * c - 9 * c);
  const std::int64_t kept = gpt.config.recompute_blocks ? 1 : gpt.config.n_layer;  // blocks whose activations are kept
  return own + batch * length * (kept * (saved - 3 * c) + passing) * size_of(gpt.dtype);
}

std::unique_ptr<State> LinearModel::start(std::int64_t batch, const Tensor& source, const Tensor&) const {
  check(!source, "linear: takes no source; got one of shape {}", source.shape());
  const TransformerConfig& c = gpt.config;
  if (maps.empty()) return std::unique_ptr<State>(new KvCache(gpt.make_cache(batch)));
  const std::int64_t capacity = gpt.input.wpe ? c.block_size : State::kUnlimitedCapacity;
  return std::make_unique<LinearState>(c.n_layer, batch, c.n_head, maps[0].features(), c.n_embd / c.n_head, capacity,
                                       gpt.dtype, c.recent_tokens());
}

Tensor LinearModel::next_logits(const Tensor& ids, State& state) const {
  if (maps.empty()) {
    KvCache& cache = state_of<KvCache>(state, "linear");
    return gpt.next_logits(ids, cache, prior_of_last(ids, cache.recent.ids(), gpt.dtype));
  }
  LinearState& sums = state_of<LinearState>(state, "linear");
  check(ids.shape().rank() == 2 && ids.shape()[0] == sums.batch() && ids.shape()[1] >= 1,
        "linear: the next ids must be [{}, t], the batch of the state and t >= 1; got {}", sums.batch(), ids.shape());
  const Tensor prior = prior_of_last(ids, sums.recent.ids(), gpt.dtype);  // before the ids are appended to the state
  const Tensor x = hidden(ids, &sums);
  const std::int64_t tokens = ids.shape()[1];
  return reshape(gpt.with_prior(slice(x, 1, tokens - 1, tokens), prior), {sums.batch(), gpt.config.vocab_size});
}

}  // namespace maki
