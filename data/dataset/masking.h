// The masked language model: some tokens of a sequence are hidden, and the model predicts them from all others. Devlin
// et al. 2019, arXiv:1810.04805, section 3.1.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "autograd/core/philox.h"

namespace maki {

/// A masked token in texts that people read and write.
inline constexpr std::string_view kMask = "[MASK]";

/// Of a sequence, the tokens that are predicted, in percent: in evaluations, as many as BERT does; in training twice as
/// many, because a model that learns from more tokens of each step is better also where fewer are hidden (Wettig et al.
/// 2022, arXiv:2202.08005; docs/learning.md).
inline constexpr std::int64_t kEvaluatedPercent = 15, kTrainedPercent = 30;

/// How many of the tokens of a sequence are predicted: `percent`, rounded, but at least one. Requires: tokens >= 1.
std::int64_t masked_count(std::int64_t tokens, std::int64_t percent);

/// Chooses `count` tokens of a sequence and copies them to `targets`; the other targets become kIgnoredTarget.
/// Of the chosen tokens 80 % become the mask token, whose id is vocab_size; 10 % become a random token, so that the
/// model cannot trust what it sees; 10 % stay as they are. A function of the stream and `row`, the number of the
/// sequence: sequences of the same length with different numbers draw different words of the stream. Throws Error
/// unless both spans have the same length, at least 1 and at least `count`.
void mask_tokens(const RandomStream& stream, std::int64_t row, std::int64_t vocab_size, std::int64_t count,
                 std::span<std::int32_t> ids, std::span<std::int32_t> targets);

}  // namespace maki
