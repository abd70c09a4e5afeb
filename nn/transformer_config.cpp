#include "nn/transformer_config.h"

#include <cmath>

#include "autograd/core/check.h"

namespace maki {

const TransformerConfig& checked(const char* model, const TransformerConfig& c) {
  check(c.n_layer >= 1 && c.n_head >= 1 && c.n_embd >= 1 && c.block_size >= 1 && c.vocab_size >= 1,
        "{}: n_layer, n_head, n_embd, block_size and vocab_size must be at least 1; got {}, {}, {}, {}, {}", model,
        c.n_layer, c.n_head, c.n_embd, c.block_size, c.vocab_size);
  check(c.dropout >= 0 && c.dropout < 1, "{}: dropout must be in [0, 1); got {}", model, c.dropout);
  check(c.ffn_width >= 0, "{}: ffn_width must be at least 0; got {}", model, c.ffn_width);
  check(c.ngram_prior >= 0, "{}: ngram_prior must be at least 0; got {}", model, c.ngram_prior);
  check(c.norm_epsilon > 0, "{}: norm_epsilon must be above 0; got {}", model, c.norm_epsilon);
  return c;
}

BlockOptions block_options(const TransformerConfig& c, DType dtype, bool causal) {
  return {.n_embd = c.n_embd,
          .n_head = c.n_head,
          .n_kv_head = c.n_kv_head,
          .causal = causal,
          .bias = c.bias,
          .dropout = c.dropout,
          .activation = c.activation,
          .norm_order = c.norm_order,
          .norm = c.norm,
          .projection_std = kInitStd / std::sqrt(2.0 * static_cast<double>(c.n_layer)),
          .qk_norm = c.qk_norm,
          .zero_projections = c.zero_projections,
          .conv_width = c.conv_width,
          .ffn_width = c.ffn_width,
          .norm_epsilon = c.norm_epsilon,
          .rotary = rotary_table(c.positions, c.n_embd / c.n_head, c.position_base, dtype)};
}

double attention_flop(const TransformerConfig& c, std::int64_t length) {
  return 12 * static_cast<double>(c.n_layer * c.n_embd) * static_cast<double>(length);
}

std::int64_t activations_per_token(const TransformerConfig& c, const BlockOptions& options) {
  const std::int64_t block = saved_by_block(options);
  const std::int64_t blocks = c.recompute_blocks ? c.n_layer * c.n_embd + block : c.n_layer * block;
  return blocks + 2 * c.n_embd + passing_in_block(options) + c.n_embd * c.ngram.activation_vectors();
}

}  // namespace maki
