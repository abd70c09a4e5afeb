#include "nn/transformer.h"

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "nn/generate/kv_cache.h"
#include "nn/names.h"

namespace maki {

double BlockOptions::init_std(std::int64_t in, std::int64_t out, double gpt2) const {
  return init == Init::gpt2 ? gpt2 : std::sqrt(2 / static_cast<double>(in + out));
}

const char* to_string(NormOrder order) { return order == NormOrder::pre ? "pre" : "post"; }

NormOrder norm_order_named(std::string_view name) { return value_named("norm_order", kNormOrders, name); }

MultiHeadAttention::MultiHeadAttention(const Scope& scope, const BlockOptions& o)
    : options{.n_head = o.n_head, .causal = o.causal, .dropout = o.dropout},
      rotary(o.rotary),
      c_attn(scope / "c_attn", o.n_embd, 3 * o.n_embd, o.bias, o.init_std(o.n_embd, 3 * o.n_embd, kInitStd), 3),
      c_proj(scope / "c_proj", o.n_embd, o.n_embd, o.bias, o.init_std(o.n_embd, o.n_embd, o.projection_std)) {
  check(o.n_head >= 1 && o.n_embd % o.n_head == 0, "attention: n_embd must be a multiple of n_head; got {} and {}",
        o.n_embd, o.n_head);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, KvLayer* cache, const Tensor& key_mask,
                                      const Tensor& mask) const {
  const Tensor qkv = project(x, cache != nullptr ? cache->length() : 0);
  Attention masked = options;
  if (key_mask) masked.key_mask = key_mask;
  if (mask) masked.mask = mask;
  return c_proj(cache != nullptr ? cache->attend(qkv, masked) : attention(qkv, masked));
}

Tensor MultiHeadAttention::project(const Tensor& x, std::int64_t first) const {
  const Tensor qkv = c_attn(x);
  if (!rotary) return qkv;
  return maki::rotary(qkv, rotary->rows(first, first + x.shape()[1]), 2 * options.n_head);
}

std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation) {
  return activation == Activation::swiglu ? 16 * ceil_div(8 * n_embd, 3 * 16) : 4 * n_embd;
}

FeedForward::FeedForward(const Scope& scope, const BlockOptions& o)
    : activation(o.activation),
      c_fc(scope / "c_fc", o.n_embd, columns_per_output(o.activation) * feed_forward_width(o.n_embd, o.activation),
           o.bias, o.init_std(o.n_embd, feed_forward_width(o.n_embd, o.activation), kInitStd),
           columns_per_output(o.activation)),
      c_proj(scope / "c_proj", feed_forward_width(o.n_embd, o.activation), o.n_embd, o.bias,
             o.init_std(feed_forward_width(o.n_embd, o.activation), o.n_embd, o.projection_std)) {}

std::int64_t norm_parameter_count(const BlockOptions& o) {
  return o.norm == NormKind::layer && o.bias ? 2 * o.n_embd : o.n_embd;
}

std::int64_t block_parameter_count(const BlockOptions& o) {
  const std::int64_t c = o.n_embd, hidden = feed_forward_width(c, o.activation);
  const std::int64_t fc = columns_per_output(o.activation) * hidden, biases = o.bias ? (3 + 1 + 1) * c + fc : 0;
  return (3 + 1) * c * c + (fc + hidden) * c + biases + 2 * norm_parameter_count(o);
}

Block::Block(const Scope& scope, const BlockOptions& o)
    : order(o.norm_order),
      ln_1(scope / "ln_1", o.n_embd, o.norm, o.bias),
      attn(scope / "attn", o),
      ln_2(scope / "ln_2", o.n_embd, o.norm, o.bias),
      mlp(scope / "mlp", o),
      drop{o.dropout} {}

}  // namespace maki
