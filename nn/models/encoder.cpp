#include "nn/models/encoder.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/recording.h"

namespace maki {
namespace {

const EncoderConfig& checked(const EncoderConfig& c) {
  checked("encoder", c);
  check(c.classes >= 0, "encoder: classes must be at least 0; got {}", c.classes);
  return c;
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
      wte(scope / "wte", c.vocab_size, c.n_embd, kInitStd, c.tie_weights && c.classes == 0),
      input(scope, c) {
  const BlockOptions options = block_options(c, dtype, /*causal=*/false);
  for (std::int64_t i = 0; i < c.n_layer; ++i) h.emplace_back(scope / "h" / i, options);
  if (c.norm_order == NormOrder::pre) ln_f.emplace(scope / "ln_f", c.n_embd, c.norm, c.bias, c.norm_epsilon);
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
  return hidden_through(ids, [this, visible](std::size_t i, const Tensor& x) { return h[i](x, nullptr, visible); });
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
  check(classifier.has_value(),
        "encoder: a masked language model has no classes; set the number of classes to train a classifier");
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

std::optional<ForwardParts> EncoderModel::forward_parts(const Tensor& ids) const {
  const Encoder& e = encoder;
  std::vector<Tensor> streams;
  e.hidden_through(ids, keeping_streams(streams, [&e](std::size_t i, const Tensor& x) { return e.h[i](x); }));
  ForwardParts parts{.embedding = e.input.tokens(e.wte.weight, ids),
                     .positions = e.input.positions(0, ids.shape()[1]),
                     .position_kind = to_string(e.config.positions),
                     .streams = std::move(streams)};
  if (!e.classifier)
    parts.logits = [&e](const Tensor& x) { return linear(e.ln_f ? (*e.ln_f)(x) : x, e.head_weight()); };
  return parts;
}

std::int64_t EncoderModel::activation_bytes(std::int64_t batch, std::int64_t length) const {
  const EncoderConfig& c = encoder.config;
  const std::int64_t tokens = batch * length, size = size_of(encoder.dtype);
  const std::int64_t logits = c.classes > 0 ? batch * c.classes : 3 * tokens / 10 * c.vocab_size;
  return tokens * activations_per_token(c) * size + std::min(logits * size, kMaxLogitsBytes);
}

}  // namespace maki
