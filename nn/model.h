// The interfaces through which training, evaluation, checkpoints and generation see a model. Networks themselves are
// plain structs that read like their figure (nn/models); a few lines wrap each of them in these interfaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/recording.h"
#include "nn/forward_parts.h"
#include "nn/prior.h"

namespace maki {

/// One micro-batch. What a task does not need stays empty.
struct Batch {
  /// [B, T] int32; a target equal to CrossEntropy::ignored is not predicted. The targets of a classifier of sequences
  /// are [B] or [B, 1].
  Tensor ids = {}, targets = {};
  /// [B, T, V]: what is known about the targets without the model, for models with a prior (nn/prior.h). Empty: the
  /// model computes it from the ids.
  Tensor prior = {};
  /// [B, T, V] each: priors by other counts than that of `prior`, for models that are made of several.
  std::vector<Tensor> other_priors = {};
  /// [B, T, V]: probabilities to be learned in place of the targets, as a Generator does. Those of a token sum to 1, or
  /// are 0 where nothing is predicted.
  Tensor expected = {};
  Tensor source = {}, source_mask = {};  ///< [B, S]: what an encoder reads, and a mask that is 0 at padding
  /// Targets that are predicted, for averages over several batches. Set by tasks; models do not read it.
  std::int64_t target_count = 0;
};

/// What a model carries from one call to the next: a key-value cache, a recurrent state, an encoded source.
class State {
 public:
  virtual ~State() = default;
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Sequences in the batch.
  virtual std::int64_t batch() const = 0;
  /// The number of tokens read so far, and the largest number that can be read: kUnlimitedCapacity if there is none.
  virtual std::int64_t length() const = 0;
  virtual std::int64_t capacity() const = 0;
  static constexpr std::int64_t kUnlimitedCapacity = std::int64_t{1} << 62;  ///< sums with lengths do not overflow
  /// Forgets all tokens, but not an encoded source. Also required after an exception in the middle of a forward pass.
  virtual void clear() = 0;
  /// Row i becomes the former row rows[i], as beam search requires. batch() becomes the number of rows: one row may
  /// become several, and rows that are not named are forgotten. Throws Error unless there is at least one row, and each
  /// is in [0, batch).
  virtual void reorder(std::span<const std::int32_t> rows) = 0;
  /// The tensors of the state and their names. Checkpoints store those of a carried state (Model::make_carried()). For
  /// other states they show what is kept, but need not be all of it.
  virtual std::vector<std::pair<std::string, Tensor*>> tensors() = 0;
};

class Generator;
struct Encoder;

/// A model that can be trained. Its parameters are in the store of the scope that it was created with.
///
/// Thread safety: const calls may run at the same time if each thread has its own State and no Recording is shared.
class Model {
 public:
  virtual ~Model() = default;
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// How the products of training and evaluation round their operands: callers of loss() hold a ProductPrecision.
  Precision precision = Precision::float32;

  /// The value of the training field `model`.
  virtual const char* kind() const = 0;
  /// This model, if it writes tokens one after the other; else null.
  virtual const Generator* as_generator() const { return nullptr; }
  Generator* as_generator() { return const_cast<Generator*>(std::as_const(*this).as_generator()); }
  /// The encoder, if this model gives a vector for each token of a text; else null.
  virtual const Encoder* as_encoder() const { return nullptr; }
  /// Cross-entropy of the batch's targets, in nats: []; of a batch with expected probabilities p of each token,
  /// −Σ p · log softmax(logits) over all of them. `carried` comes from make_carried() of this model, or is null.
  virtual Tensor loss(const Batch& batch, const CrossEntropy& options, State* carried = nullptr) const = 0;
  /// What the model computes on the way to its logits, for ids [B, T] int32 and nothing before them; nullopt for a
  /// model that is no stack of blocks over one text. Throws Error for ids that loss() refuses. Requires: there is no
  /// Recording.
  virtual std::optional<ForwardParts> forward_parts(const Tensor&) const { return std::nullopt; }
  /// The state that is carried from one batch to the next, for `batch` sequences; null if nothing is carried. Row b of
  /// a batch then continues row b of the batch before it. Such a state is a memory of the last tokens:
  ///
  /// - length() is the smaller of capacity() and the number of tokens read since clear().
  /// - Every tensor is [batch, length(), …], of the store's type. A state is restored by assigning tensors of another
  ///   length, the same for all. The pointers that tensors() returns are valid as long as the state.
  /// - loss() assigns new tensors, detached from the tape. It does not write to the elements of the former ones, so
  ///   copies of their handles restore the former state.
  ///
  /// The store need not be sealed.
  virtual std::unique_ptr<State> make_carried(std::int64_t) const { return nullptr; }
  /// Floating-point operations of attention per token of a training step, forward and backward, for contexts of
  /// `length` tokens: what flop_per_token() adds to those of the parameters.
  virtual double attention_flop(std::int64_t length) const = 0;
  /// Bytes that the recorded ops of one micro-batch of [batch, length] tokens save for backward, plus the bytes of the
  /// gradients that are alive at the same time. An estimate; the store need not be sealed.
  virtual std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const = 0;
};

/// Model::loss() of a Generator whose logits are these, [B, T, V]. Throws Error if the batch expects probabilities of
/// another shape or type.
Tensor loss_of_logits(const Tensor& logits, const Batch& batch, const CrossEntropy& options);

/// Floating-point operations per token of a training step of a model, whose parameters are those of the store, for
/// contexts of `length` tokens: 6 · multiplied_numel() + attention_flop(). The store need not be sealed.
inline double flop_per_token(const Model& model, const ParameterStore& store, std::int64_t length) {
  return 6 * static_cast<double>(store.multiplied_numel()) + model.attention_flop(length);
}

/// A model that generates a sequence by predicting one token after another.
class Generator : public Model {
 public:
  const Generator* as_generator() const final { return this; }
  using Model::as_generator;

  /// A state that has read nothing, for `batch` sequences. For models that have an encoder, `source` [B, S] is what it
  /// reads, and `source_mask` [B, S] int32 is 0 at padding; an empty mask means that there is none. Throws Error if
  /// such a model is given no source, and if another one is given a source.
  virtual std::unique_ptr<State> start(std::int64_t batch, const Tensor& source = {},
                                       const Tensor& source_mask = {}) const = 0;
  /// Reads the next t >= 1 tokens of every sequence, ids [B, t] → logits of the token after them, [B, V]. Throws Error,
  /// and reads nothing, if the state has no room for them; also inside a Recording, for ids of another shape or outside
  /// the vocabulary, for a state that start() of such a model of these sizes did not make, and without a prior that the
  /// model needs.
  virtual Tensor next_logits(const Tensor& ids, State& state) const = 0;
  /// Whether the logits have the same bits however the tokens are divided among calls of next_logits(). If not, they
  /// agree to rounding.
  virtual bool same_bits_stepwise() const { return true; }

  /// Gives a model with a prior its prior, which it needs before it computes anything, except losses of batches that
  /// have a prior of their own. Throws Error if the prior is null, if its vocabulary is another one, if it depends on
  /// more tokens than the model keeps, and always for a model without a prior.
  void use_prior(std::shared_ptr<const TokenPrior> prior);
  const std::shared_ptr<const TokenPrior>& prior() const { return prior_; }

 protected:
  /// nullopt for a model without a prior.
  virtual std::optional<PriorNeeds> prior_needs() const { return std::nullopt; }
  /// The prior of a batch: its own if it has one, or else that of its ids after `before`, for which Error is thrown if
  /// use_prior() was not called. Empty for a model without a prior, even if the batch has one.
  Tensor prior_of_batch(const Batch& batch, DType dtype, const Tensor& before = {}) const;
  /// The prior of the token after the last of ids [B, t], before which `before` was read: [B, 1, V], or empty for a
  /// model without a prior. Throws Error if use_prior() was not called.
  Tensor prior_of_last(const Tensor& ids, const Tensor& before, DType dtype) const;

 private:
  /// The prior. Throws Error if use_prior() was not called.
  const TokenPrior& required_prior() const;

  std::shared_ptr<const TokenPrior> prior_;
};

}  // namespace maki
