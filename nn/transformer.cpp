#include "nn/transformer.h"

#include <cmath>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"

namespace maki {
namespace {

Parameter* qk_norm_or_none(const Scope& scope, const BlockOptions& o) {
  return o.qk_norm ? &scope.parameter("qk_norm", {o.n_embd + o.kv_width()}, init::constant(1)) : nullptr;
}

std::optional<ShortConv> conv_or_none(const Scope& scope, const BlockOptions& o) {
  if (o.conv_width == 0) return std::nullopt;
  return std::optional<ShortConv>(std::in_place, scope, o.n_embd, o.conv_width, o.causal);
}

Attention attention_options(const BlockOptions& o) {
  check(o.n_head >= 1 && o.n_embd % o.n_head == 0, "attention: n_embd must be a multiple of n_head; got {} and {}",
        o.n_embd, o.n_head);
  check(o.n_kv_head == 0 || (o.n_kv_head >= 1 && o.n_head % o.n_kv_head == 0),
        "attention: n_kv_head must be 0 or divide n_head; got {} and {}", o.n_kv_head, o.n_head);
  return {.n_head = o.n_head, .n_kv_head = o.n_kv_head, .causal = o.causal, .dropout = o.dropout};
}

// Of how many matrices of equal size the weight of q‖k‖v consists: 3, or, if H heads of queries share K heads of keys,
// H / K of q, one of k and one of v.
std::int64_t stacked_matrices(const BlockOptions& o) { return o.kv_width() == 0 ? 3 : o.qkv_width() / o.kv_width(); }

}  // namespace

Initializer BlockOptions::initial_weights(std::int64_t in, std::int64_t out, double gpt2) const {
  return init::normal(init == Init::gpt2 ? gpt2 : std::sqrt(2 / static_cast<double>(in + out)));
}

Initializer BlockOptions::initial_residual_weights(std::int64_t in, std::int64_t out) const {
  return zero_projections ? init::constant(0) : initial_weights(in, out, projection_std);
}

BlockOptions block_options(const TransformerConfig& c, DType dtype, bool causal, Init init) {
  return {c, causal, kInitStd / std::sqrt(2.0 * static_cast<double>(c.n_layer)), init,
          rotary_table(c.positions, c.n_embd / c.n_head, c.position_base, dtype)};
}

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const BlockOptions& o)
    : options(attention_options(o)),
      rotary(o.rotary),
      c_attn(scope / "c_attn", o.n_embd, o.qkv_width(), o.bias, o.initial_weights(o.n_embd, o.qkv_width()),
             stacked_matrices(o)),
      qk_norm(qk_norm_or_none(scope, o)),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.initial_residual_weights(o.n_embd, o.n_embd)) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask,
                                      const Tensor& mask) const {
  const Tensor qkv = project(x, cache != nullptr ? cache->length() : 0);
  Attention masked = options;
  if (key_mask) masked.key_mask = key_mask;
  if (mask) masked.mask = mask;
  return c_proj(cache != nullptr ? cache->attend(qkv, masked) : attention(qkv, masked));
}

Tensor MultiHeadAttention::project(const Tensor& x, std::int64_t first) const {
  const std::int64_t heads = options.n_head + options.kv_heads();  // of q‖k
  const Tensor qkv = c_attn(x);
  const Tensor normal = qk_norm != nullptr ? rms_norm_heads(qkv, *qk_norm, heads) : qkv;
  if (!rotary) return normal;
  return maki::rotary(normal, rotary->rows(first, first + x.shape()[1]), heads);
}

FeedForward::FeedForward(const Scope& scope, const BlockOptions& o)
    : activation(o.activation),
      c_fc(scope / "c_fc", o.n_embd, columns_per_output(o.activation) * o.hidden_width(), o.bias,
           o.initial_weights(o.n_embd, o.hidden_width()), columns_per_output(o.activation)),
      c_proj(scope / "c_proj", o.hidden_width(), o.n_embd, o.bias,
             o.initial_residual_weights(o.hidden_width(), o.n_embd)) {}

std::int64_t saved_by_block(const TransformerConfig& o) {
  const std::int64_t copies = o.activation == Activation::relu ? 1 : 1 + columns_per_output(o.activation);
  const std::int64_t extras = (o.qk_norm ? o.qkv_width() + 2 * o.n_head : 0) + (o.conv_width > 0 ? 2 * o.n_embd : 0);
  return 5 * o.n_embd + o.qkv_width() + copies * o.hidden_width() + extras + o.n_head + 4;
}

std::int64_t passing_in_block(const TransformerConfig& o) {
  return (1 + columns_per_output(o.activation)) * o.hidden_width() + o.n_embd;
}

std::int64_t activations_per_token(const TransformerConfig& c) {
  const std::int64_t block = saved_by_block(c);
  const std::int64_t blocks = c.recompute_blocks ? c.n_layer * c.n_embd + block : c.n_layer * block;
  return blocks + 2 * c.n_embd + passing_in_block(c) + c.n_embd * c.ngram().activation_vectors();
}

Block::Block(const Scope& scope, const BlockOptions& o)
    : residual(o),
      ln_1(scope / "ln_1", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      conv_1(conv_or_none(scope / "conv_1", o)),
      attn(scope / "attn", o),
      ln_2(scope / "ln_2", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      conv_2(conv_or_none(scope / "conv_2", o)),
      mlp(scope / "mlp", o) {}

Tensor Block::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask, const Tensor& mask) const {
  return with_attention(
      x, [&](const Tensor& y) { return attn(y, cache, key_mask, mask); }, cache != nullptr ? &cache->recent : nullptr,
      key_mask);
}

Tensor Block::without_padding(const Tensor& x, const Tensor& key_mask) const {
  if (!key_mask || !conv_1 || conv_1->ahead == 0) return x;
  return where(reshape(key_mask, {x.shape()[0], x.shape()[1], 1}), x, zeros({1}, x.dtype()));
}

}  // namespace maki
