#include "nn/models/encoder.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "autograd/recompute.h"
#include "autograd/recording.h"

namespace maki {
namespace {

const EncoderConfig& checked(const EncoderConfig& c) {
  check(
      c.n_layer >= 1 && c.n_head >= 1 && c.n_embd >= 1 && c.block_size >= 1 && c.vocab_size >= 1 && c.classes >= 0,
      "encoder: n_layer, n_head, n_embd, block_size and vocab_size must be at least 1 and classes at least 0; got {}, "
      "{}, {}, {}, {} and {}",
      c.n_layer, c.n_head, c.n_embd, c.block_size, c.vocab_size, c.classes);
  check(c.n_embd % c.n_head == 0, "encoder: n_embd must be a multiple of n_head; got {} and {}", c.n_embd, c.n_head);
  check(c.dropout >= 0 && c.dropout < 1, "encoder: dropout must be in [0, 1); got {}", c.dropout);
  return c;
}

BlockOptions block_options(const EncoderConfig& c, DType dtype) {
  return {.n_embd = c.n_embd,
          .n_head = c.n_head,
          .causal = false,
          .bias = c.bias,
          .dropout = c.dropout,
          .activation = c.activation,
          .norm_order = c.norm_order,
          .norm = c.norm,
          .projection_std = kInitStd / std::sqrt(2.0 * static_cast<double>(c.n_layer)),
          .rotary = rotary_table(c.positions, c.n_embd / c.n_head, c.position_base, dtype)};
}

TokenInputOptions input_options(const EncoderConfig& c) {
  const bool scaled = c.positions == Positions::sinusoidal;
  return {.n_embd = c.n_embd,
          .block_size = c.block_size,
          .positions = c.positions,
          .base = c.position_base,
          .factor = scaled ? std::sqrt(static_cast<double>(c.n_embd)) : 1,
          .vocab_size = c.vocab_size,
          .ngram = c.ngram};
}

// The mean over the tokens that are not padding: x [B, T, C] and its mask [B, T] or none → [B, C].
Tensor mean_of_tokens(const Tensor& x, const Tensor& mask) {
  if (!mask) return mean(x, {1});
  const std::int64_t batch = x.shape()[0], tokens = x.shape()[1];
  Tensor weights = empty({batch, 1, tokens}, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int32_t* const row = mask.data<std::int32_t>() + b * tokens;
      const auto visible = tokens - std::count(row, row + tokens, 0);
      for (std::int64_t t = 0; t < tokens; ++t) {
        weights.data<T>()[b * tokens + t] = row[t] != 0 ? T{1} / static_cast<T>(visible) : T{0};
      }
    }
  });
  // The product below is a sum, which no precision rounds, but its operands would be.
  if (rounds_operands()) return sum(mul(x, reshape(weights, {batch, tokens, 1})), {1});
  return reshape(matmul(weights, x), {batch, x.shape()[2]});
}

// The rows of x [B, T, C] whose target is not ignored, and those targets: [n, C] and [n].
std::pair<Tensor, Tensor> predicted(const Tensor& x, const Tensor& targets, std::int32_t ignored) {
  check(targets && targets.dtype() == DType::int32 && targets.shape() == Shape{x.shape()[0], x.shape()[1]},
        "encoder: targets must be int32 [{}, {}], one per token; got {} {}", x.shape()[0], x.shape()[1],
        targets ? to_string(targets.dtype()) : "none", targets ? targets.shape() : Shape{});
  const std::span<const std::int32_t> all = targets.values<std::int32_t>();
  const std::int64_t n = targets.numel() - std::ranges::count(all, ignored);
  Tensor rows = empty({n}, DType::int32), ids = empty({n}, DType::int32);
  std::int64_t found = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == ignored) continue;
    rows.data<std::int32_t>()[found] = static_cast<std::int32_t>(i);
    ids.data<std::int32_t>()[found++] = all[i];
  }
  return {embedding(reshape(x, {targets.numel(), x.shape()[2]}), rows), ids};
}

}  // namespace

Encoder::Encoder(const Scope& scope, const EncoderConfig& c)
    : config(checked(c)),
      dtype(scope.dtype()),
      drop{c.dropout},
      wte(scope / "wte", c.vocab_size, c.n_embd),
      input(scope, input_options(c)) {
  for (std::int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(scope / "h" / i, block_options(c, dtype));
  if (c.norm_order == NormOrder::pre) ln_f.emplace(scope / "ln_f", c.n_embd, c.norm, c.bias);
  if (c.classes > 0) {
    classifier.emplace(scope / "classifier", c.n_embd, c.classes, /*with_bias=*/true, init::normal(kInitStd),
                       kOutputLayer);
  } else if (!c.tie_weights) {
    lm_head.emplace(scope / "lm_head", c.n_embd, c.vocab_size, /*with_bias=*/false, init::normal(kInitStd),
                    kOutputLayer);
  }
}

Tensor Encoder::hidden(const Tensor& ids, const Tensor& mask) const {
  const Tensor visible = checked_padding_mask("encoder", ids, mask);
  Tensor x = drop(input("encoder", wte.weight, ids));
  for (const Block& block : h) {
    const auto layer = [&block, visible](const Tensor& y) { return block(y, nullptr, visible); };
    x = config.recompute_blocks ? recompute(x, layer) : layer(x);
  }
  return ln_f ? (*ln_f)(x) : x;
}

Tensor Encoder::logits(const Tensor& ids, const Tensor& mask) const {
  check(!classifier, "encoder: a classifier of {} classes predicts no tokens; use class_logits()", config.classes);
  return linear(hidden(ids, mask), head_weight());
}

Tensor Encoder::logits_at(const Tensor& rows, const Tensor& ids, const Tensor& mask) const {
  check(!classifier, "encoder: a classifier of {} classes predicts no tokens; use class_logits()", config.classes);
  return linear(embedding(reshape(hidden(ids, mask), {ids.numel(), config.n_embd}), rows), head_weight());
}

Tensor Encoder::class_logits(const Tensor& ids, const Tensor& mask) const {
  check(classifier.has_value(), "encoder: a masked language model has no classes; set `classes` to train a classifier");
  return (*classifier)(mean_of_tokens(hidden(ids, mask), mask));
}

Tensor Encoder::loss(const Batch& batch, const CrossEntropy& options) const {
  if (classifier) {
    const Tensor logits = class_logits(batch.ids, batch.source_mask);
    check(batch.targets && batch.targets.numel() == logits.shape()[0],
          "encoder: a classifier needs one target for each of {} sequences; got {}", logits.shape()[0],
          batch.targets ? batch.targets.shape() : Shape{});
    return cross_entropy(logits, reshape(batch.targets, {logits.shape()[0]}), options);
  }
  const auto [x, targets] = predicted(hidden(batch.ids, batch.source_mask), batch.targets, options.ignored);
  return linear_cross_entropy(x, head_weight(), targets, options);
}

std::int64_t Encoder::parameter_count() const {
  const BlockOptions block = block_options(config, dtype);
  const std::int64_t tables = config.vocab_size * config.n_embd * (lm_head ? 2 : 1);
  const std::int64_t head = classifier ? config.classes * (config.n_embd + 1) : 0;
  return tables + input.ngram_parameter_count() + config.n_layer * block_parameter_count(block) +
         (ln_f ? norm_parameter_count(block) : 0) + head;
}

std::int64_t Encoder::flop_parameter_count() const {
  return parameter_count() - input.ngram_parameter_count() -
         (lm_head || classifier ? config.vocab_size * config.n_embd : 0);
}

double EncoderModel::flop_per_token(std::int64_t length) const {
  return 6 * static_cast<double>(flop_parameter_count()) +
         12 * static_cast<double>(encoder.config.n_layer * encoder.config.n_embd) * static_cast<double>(length);
}

// Saved as in Gpt, but relu keeps only its value.
std::int64_t EncoderModel::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const EncoderConfig& c = encoder.config;
  const std::int64_t width = c.n_embd, tokens = batch * length, size = size_of(encoder.dtype);
  const std::int64_t hidden = feed_forward_width(width, c.activation);
  const std::int64_t layer = (c.activation == Activation::relu ? 1 : 1 + columns_per_output(c.activation)) * hidden;
  const std::int64_t block = 8 * width + layer + c.n_head + 4;
  const std::int64_t ngrams = width * c.ngram.activation_vectors();
  const std::int64_t logits = c.classes > 0 ? batch * c.classes : tokens / 4 * c.vocab_size;
  const std::int64_t blocks = c.recompute_blocks ? c.n_layer * width + block : c.n_layer * block;
  return tokens * (blocks + 2 * width + 9 * width + ngrams) * size + std::min(logits * size, kMaxLogitsBytes);
}

}  // namespace maki
