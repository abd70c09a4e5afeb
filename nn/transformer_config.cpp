#include "nn/transformer_config.h"

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"

namespace maki {

const char* to_string(NormOrder order) { return order == NormOrder::pre ? "pre" : "post"; }

std::int64_t feed_forward_width(std::int64_t n_embd, Activation activation) {
  return activation == Activation::swiglu ? 16 * ceil_div(8 * n_embd, 3 * 16) : 4 * n_embd;
}

const TransformerConfig& checked(const char* model, const TransformerConfig& c) {
  check(c.n_layer >= 1 && c.n_head >= 1 && c.n_embd >= 1 && c.block_size >= 1 && c.vocab_size >= 1,
        "{}: n_layer, n_head, n_embd, block_size and vocab_size must be at least 1; got {}, {}, {}, {}, {}", model,
        c.n_layer, c.n_head, c.n_embd, c.block_size, c.vocab_size);
  check(c.dropout >= 0 && c.dropout < 1, "{}: dropout must be in [0, 1); got {}", model, c.dropout);
  check(c.ffn_width >= 0, "{}: ffn_width must be at least 0; got {}", model, c.ffn_width);
  check(c.ngram_prior >= 0, "{}: ngram_prior must be at least 0; got {}", model, c.ngram_prior);
  check(c.norm_epsilon > 0 && c.norm_epsilon <= 1, "{}: norm_epsilon must be above 0 and at most 1; got {}", model,
        c.norm_epsilon);
  return c;
}

double attention_flop(const TransformerConfig& c, std::int64_t length) {
  return 12 * static_cast<double>(c.n_layer * c.n_embd) * static_cast<double>(length);
}

}  // namespace maki
