// Sampling the next token from logits: bias, penalties for repetition, top-k, temperature, top-p, min-p in this order,
// and then one random draw.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/tensor.h"

namespace maki {

struct LogitBias {
  std::int32_t id;
  double bias;
};

/// The options of the draw and, below the seed, those that change the logits first. All defaults except that of the
/// temperature change nothing.
struct Sampling {
  double temperature = 0.8;  ///< the logits are divided by it; 0: always choose the largest logit (greedy)
  std::int64_t top_k = 0;    ///< keep exactly the k most likely tokens, lower ids first among equals; 0: keep all
  /// Keep the smallest set of most likely tokens whose probability reaches top_p, in (0, 1], of that of the tokens that
  /// top_k has kept; 1: keep all (Holtzman et al. 2020).
  double top_p = 1;
  /// Keep the tokens whose probability is at least this share of the largest one, in [0, 1] (Nguyen et al. 2024); 0:
  /// keep all.
  double min_p = 0;
  std::uint64_t seed = 0;
  // These change the logits, before all of the above, and the choice of the largest logit as well.
  std::vector<LogitBias> logit_bias = {};  ///< added to the logits of these ids, which must be in [0, V)
  /// The logits of all tokens in the prompt and in the new text (TokenHistory) are divided by it if they are positive,
  /// else multiplied by it (CTRL, Keskar et al. 2019). Must be positive; above 1, repetition becomes less likely.
  double repetition_penalty = 1;
  /// Subtracted from the logit of a token for each of its occurrences in the new text, and once for having occurred.
  double frequency_penalty = 0, presence_penalty = 0;

  /// Whether a draw depends on the tokens before it by more than their logits.
  bool penalizes() const { return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0; }
};

/// The tokens that came before the next one, for the penalties.
class TokenHistory {
 public:
  /// Tokens of the prompt. They are not counted as occurrences in the new text.
  void add_prompt(std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids) drawn_.try_emplace(id, 0);
  }
  void add_drawn(std::int32_t id) { ++drawn_[id]; }
  /// For each token, how often it was drawn; 0 if it occurred only in the prompt.
  const std::unordered_map<std::int32_t, std::int64_t>& drawn() const { return drawn_; }

 private:
  std::unordered_map<std::int32_t, std::int64_t> drawn_;
};

/// The logits define no distribution, because one is NaN or all are −Inf: the model has diverged. Beam search throws it
/// for +Inf as well.
class BadLogitsError : public Error {
 public:
  using Error::Error;
};

/// Draws the next token. Thread safety: none; calls share scratch memory.
class Sampler {
 public:
  /// Throws Error if the temperature is negative or not finite, top_k is negative, top_p is outside (0, 1], min_p is
  /// outside [0, 1], a bias or a penalty is not finite, or the penalty for repetition is not positive.
  explicit Sampler(const Sampling& options);

  /// Chooses one of the ids 0 … V − 1 for logits of V elements of any shape. The result depends on the logits, the
  /// options, `before`, `sample` and `position` alone, not on earlier calls. Ties are broken in favour of the lower id.
  /// Logits of +Inf share all the probability equally, which is the limit of growing logits. Throws BadLogitsError if a
  /// logit is NaN or all are −Inf, and Error if there are no logits, or a bias or, with penalties, a token of `before`
  /// is outside [0, V).
  std::int32_t operator()(const Tensor& logits, std::uint64_t sample, std::uint64_t position,
                          const TokenHistory& before = {});

 private:
  void read(const Tensor& logits);
  void change_logits(const TokenHistory& before);
  void keep_most_likely(std::int64_t n);
  void keep_top_p();
  std::int32_t draw(double uniform) const;

  struct Candidate {
    std::int32_t id;
    double weight;  // at first the logit, then the unnormalised probability
  };
  Sampling options_;
  std::vector<Candidate> candidates_;
};

}  // namespace maki
