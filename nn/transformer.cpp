#include "nn/transformer.h"

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "nn/generate/kv_cache.h"
#include "nn/names.h"

namespace maki {
namespace {

// A learned vector whose elements are initially `value`.
Parameter* vector_or_none(const Scope& scope, const std::string& name, std::int64_t size, double value, bool wanted) {
  return wanted ? &scope.parameter(name, {size}, init::constant(value)) : nullptr;
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

BlockExtras BlockExtras::of_first_block() const {
  BlockExtras first = *this;
  first.input_skip = first.value_residual = false;
  return first;
}

std::int64_t BlockOptions::hidden_width() const {
  return ffn_width > 0 ? ffn_width : feed_forward_width(n_embd, activation);
}

Initializer BlockOptions::initial_residual_weights(std::int64_t in, std::int64_t out) const {
  return extras.zero_projections ? init::constant(0) : initial_weights(in, out, projection_std);
}

const char* to_string(NormOrder order) { return order == NormOrder::pre ? "pre" : "post"; }

NormOrder norm_order_named(std::string_view name) { return value_named("norm_order", kNormOrders, name); }

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const BlockOptions& o)
    : options(attention_options(o)),
      rotary(o.rotary),
      c_attn(scope / "c_attn", o.n_embd, o.qkv_width(), o.bias, o.initial_weights(o.n_embd, o.qkv_width()),
             stacked_matrices(o)),
      qk_norm(vector_or_none(scope, "qk_norm", o.n_embd + o.kv_width(), 1, o.extras.qk_norm)),
      value_gain(vector_or_none(scope, "value_gain", o.kv_width(), 0, o.extras.value_residual)),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.initial_residual_weights(o.n_embd, o.n_embd)) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask, const Tensor& mask,
                                      BlockContext* context) const {
  const Tensor qkv = project(x, cache != nullptr ? cache->length() : 0, context);
  Attention masked = options;
  if (key_mask) masked.key_mask = key_mask;
  if (mask) masked.mask = mask;
  return c_proj(cache != nullptr ? cache->attend(qkv, masked) : attention(qkv, masked));
}

Tensor MultiHeadAttention::project(const Tensor& x, std::int64_t first, BlockContext* context) const {
  const std::int64_t heads = options.n_head + options.kv_heads();  // of q‖k
  const Tensor qkv = with_first_values(c_attn(x), context);
  const Tensor normal = qk_norm != nullptr ? rms_norm_heads(qkv, *qk_norm, heads) : qkv;
  if (!rotary) return normal;
  return maki::rotary(normal, rotary->rows(first, first + x.shape()[1]), heads);
}

// q‖k‖v with v + value_gain · v0 for v.
Tensor MultiHeadAttention::with_first_values(const Tensor& qkv, BlockContext* context) const {
  const std::int64_t end = qkv.shape()[2], begin = end - end / (options.n_head / options.kv_heads() + 2);  // of v
  if (context != nullptr && !context->first_values) context->first_values = slice(qkv, 2, begin, end);
  if (value_gain == nullptr) return qkv;
  check(context != nullptr, "attention: a value residual needs the context that the blocks of a model share");
  const Tensor v = add(slice(qkv, 2, begin, end), mul(context->first_values, *value_gain));
  return concat({slice(qkv, 2, 0, begin), v}, 2);
}

std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation) {
  return activation == Activation::swiglu ? 16 * ceil_div(8 * n_embd, 3 * 16) : 4 * n_embd;
}

FeedForward::FeedForward(const Scope& scope, const BlockOptions& o)
    : activation(o.activation),
      c_fc(scope / "c_fc", o.n_embd, columns_per_output(o.activation) * o.hidden_width(), o.bias,
           o.initial_weights(o.n_embd, o.hidden_width()), columns_per_output(o.activation)),
      c_proj(scope / "c_proj", o.hidden_width(), o.n_embd, o.bias,
             o.initial_residual_weights(o.hidden_width(), o.n_embd)) {}

std::int64_t norm_parameter_count(const BlockOptions& o) {
  return o.norm == NormKind::layer && o.bias ? 2 * o.n_embd : o.n_embd;
}

namespace {

std::int64_t extra_parameter_count(const BlockOptions& o) {
  const BlockExtras& e = o.extras;
  const std::int64_t of_heads = (e.qk_norm ? o.n_embd + o.kv_width() : 0) + (e.value_residual ? o.kv_width() : 0);
  return of_heads + o.n_embd * (2 * e.conv_width + (e.input_skip ? 1 : 0) + (e.branch_scales ? 2 : 0));
}

}  // namespace

std::int64_t block_parameter_count(const BlockOptions& o) {
  const std::int64_t c = o.n_embd, hidden = o.hidden_width();
  const std::int64_t fc = columns_per_output(o.activation) * hidden,
                     biases = o.bias ? o.qkv_width() + (1 + 1) * c + fc : 0;
  return (o.qkv_width() + c) * c + (fc + hidden) * c + biases + 2 * norm_parameter_count(o) + extra_parameter_count(o);
}

Branch::Branch(const Scope& scope, const BlockOptions& o, int number)
    : scale(vector_or_none(scope, fmt::format("scale_{}", number), o.n_embd, 1, o.extras.branch_scales)) {
  if (o.extras.conv_width > 0) conv.emplace(scope / fmt::format("conv_{}", number), o.n_embd, o.extras.conv_width);
}

Block::Block(const Scope& scope, const BlockOptions& o)
    : residual{o.norm_order, {o.dropout}},
      skip(vector_or_none(scope, "skip", o.n_embd, 0, o.extras.input_skip)),
      ln_1(scope / "ln_1", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      branch_1(scope, o, 1),
      attn(scope / "attn", o),
      ln_2(scope / "ln_2", o.n_embd, o.norm, o.bias, o.norm_epsilon),
      branch_2(scope, o, 2),
      mlp(scope / "mlp", o) {}

Tensor Block::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask, const Tensor& mask,
                         BlockContext* context) const {
  return with_attention(
      x, [&](const Tensor& y) { return attn(y, cache, key_mask, mask, context); },
      cache != nullptr ? &cache->recent : nullptr);
}

}  // namespace maki
