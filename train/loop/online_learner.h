// A trained model that goes on learning while it reads a text: dynamic evaluation (Krause, Kahembwe, Murray and Renals
// 2018, arXiv:1709.07432). Each window is predicted first, and only then trained on.
//
// Thread safety: none; an object is used by one thread at a time. No result depends on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autograd/core/stop_request.h"
#include "autograd/tape.h"
#include "data/tokenizer/tokens.h"
#include "optim/optimizer.h"
#include "train/loop/observed_logits.h"
#include "train/loop/without_dropout.h"

namespace maki {

/// The default rate and decay are the best of the combinations that were tried on tinyshakespeare
/// (docs/learning.md).
struct AdaptOptions {
  double learning_rate = 5e-4;  ///< at least 0; with 0 nothing is learned
  /// In [0, kMaxAdaptDecay]: the share by which the weights return to the trained ones after each window.
  double decay = 0.01;
  std::int64_t window = 0;  ///< tokens that are predicted and then learned at once; 0: half of the context
};

/// The largest decay: with 1, nothing that is learned would remain.
inline constexpr double kMaxAdaptDecay = 0.999;

/// What a model predicted for a token before it learned it.
struct Prediction {
  std::int32_t token;
  bool begins;  ///< the token is the first of a text, for which there is no prediction
  /// The logarithms of the probabilities of all tokens; empty if `begins`. Valid until use() returns.
  std::span<const float> log_probabilities;
};

class OnlineLearner {
 public:
  /// Learns in a copy of the weights; the loaded model is left alone. Throws Error if the options are out of range, or
  /// if the model does not predict the next token of a text.
  ///
  /// A step is RMS-scaled: g / √v, where v is a decaying average (0.99) of g² over all windows that this object has
  /// read, and g is clipped as in training (Config::grad_clip). Rows of n-gram tables learn by their own rule
  /// (optim/row_rule.h), with squares that begin at 0; they do not return to the trained ones.
  ///
  /// Requires: the loaded model outlives the object.
  OnlineLearner(const LoadedModel& loaded, const AdaptOptions& options);

  /// Reads a text from its beginning to its end, and calls use() for each of its tokens in order; for those of a
  /// window, after it was learned. Pieces are separate texts: no window continues from one into the next, but what was
  /// learned remains, also for the next call. `stop` is asked before each window; once it is
  /// requested, nothing more is read. Throws DivergedError if a loss or gradient is not finite, and std::logic_error
  /// if the probabilities do not give the loss, a defect of maki.
  void read(TokenSpan text, const std::function<void(const Prediction&)>& use, const StopRequest& stop = {});

  /// The model with what it has learned so far.
  const Model& model() const { return *copy_.model; }
  std::int64_t window() const { return window_; }
  std::int64_t windows() const { return windows_; }  ///< read so far

 private:
  bool read_piece(std::span<const std::int32_t> piece, const std::function<void(const Prediction&)>& use,
                  const StopRequest& stop);
  Tensor record(std::span<const std::int32_t> read, std::size_t begin, std::size_t known);
  Tensor log_probabilities(const Tensor& loss, std::span<const std::int32_t> ids, std::size_t known) const;
  void learn(const Tensor& loss, std::int64_t targets);
  void return_to_trained();

  const LoadedModel& loaded_;
  AdaptOptions options_;
  std::int64_t context_, window_, windows_ = 0;
  ModelWithoutDropout copy_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<State> carried_;  // or null
  Tape tape_;
  ObservedLogits logits_;  // of the loss that was recorded last
};

}  // namespace maki
