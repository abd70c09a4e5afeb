// A prior: what is known about the next token without the network, as the log-probabilities of all tokens, for example
// from counting the n-grams of the training text. They are added to the logits, so that the network only has to learn
// what the prior does not know: the product of both distributions (Hinton 2002, "Training Products of Experts"). The
// network also learns how far to trust the prior in which place:
//
//   logits = head(x) + (1 + w · x + b) · prior
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <cstdint>
#include <span>

#include "nn/layers.h"

namespace maki {

/// Thread safety: const functions may be called on several threads at once.
class TokenPrior {
 public:
  virtual ~TokenPrior() = default;
  TokenPrior() = default;
  TokenPrior(const TokenPrior&) = delete;
  TokenPrior& operator=(const TokenPrior&) = delete;

  virtual std::int64_t vocab_size() const = 0;
  /// How many tokens before the next one it depends on, at most.
  virtual std::int64_t context_tokens() const = 0;
  /// The natural logarithms of the probabilities of the token that follows each of the ids: out [ids, V]. `before` are
  /// the tokens before them, as many as are known. Requires: every id, also of `before`, is in [0, V). Must not throw:
  /// prior_of() calls it in a parallel loop.
  virtual void log_probabilities(std::span<const std::int32_t> before, std::span<const std::int32_t> ids,
                                 std::span<float> out) const = 0;
};

/// Throws Error if an id is outside the vocabulary of the prior.
void check_prior_ids(const TokenPrior& prior, const Tensor& ids);
/// The prior of ids [B, T] int32, before which `before` [B, m] was read (empty: nothing) → [B, T, V]. Throws Error if
/// an id of `ids` is outside [0, V), while those of `before` are not checked, and unless `before` has B rows.
Tensor prior_of(const TokenPrior& prior, const Tensor& ids, const Tensor& before, DType dtype);

/// What a model with a prior requires of it: its vocabulary, and on how many tokens before the next one it depends at
/// most.
struct PriorNeeds {
  std::int64_t vocab_size, context_tokens;
};

/// For estimates of memory: how many tensors of the shape of the logits exist at the same time in a step of a model
/// with a prior: in forward the logits without and with it, in backward those with it and their gradient, and the
/// prior.
inline constexpr std::int64_t kPriorCopies = 3;

/// The initial weights of an output head, N(0, kInitStd²). Beside a prior of `order` tokens they are zero, so that a
/// new model predicts what its prior predicts. A head that shares the embedding of the tokens cannot begin at zero.
inline Initializer head_weights(std::int64_t order) { return order > 0 ? init::constant(0) : init::normal(kInitStd); }

/// logits [… V], x [… C] and a prior [… V] → logits [… V], by the formula above. w and b are 0 at first, so the prior
/// counts once.
struct PriorGate {
  PriorGate(const Scope& scope, std::int64_t n_embd)
      : scale(scope, n_embd, 1, /*with_bias=*/true, init::constant(0), kOutputLayer) {}
  Tensor operator()(const Tensor& logits, const Tensor& x, const Tensor& prior) const;

  Linear scale;
};

}  // namespace maki
