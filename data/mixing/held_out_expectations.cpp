#include "data/mixing/held_out_expectations.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/parallel_throwing.h"
#include "data/mixing/context_mixer.h"
#include "data/mixing/token_traits.h"
#include "data/ngram/held_out_counts.h"

namespace maki {

// Every mixer reads in the order of the text. The end of the text, which the validation text usually continues, is then
// what it has read last; networks learn more from such mixers than from some that have read the neighbours of their
// part last (docs/decisions/085-counts-that-teach.md).
HeldOutExpectations::HeldOutExpectations(const Tokenizer& tokenizer, TokenSpan text)
    : tokens_(static_cast<std::int64_t>(text.size())),
      counts_(token_counts(text.ids(), tokenizer.vocab_size())),
      code_(counts_, ids_by_bytes(tokenizer)) {
  constexpr std::int64_t kWorkPerToken = 50'000;  // a rough guess, in elementary operations (parallel.h)
  const std::vector<std::int32_t> ids = text.ids();
  for (std::int32_t child = 0; child < code_.vocab_size() + code_.nodes(); ++child) {
    float& sum = shares_.emplace_back(0.0F);
    for (const std::int32_t id : code_.tokens_below(child))
      sum += static_cast<float>(counts_[static_cast<std::size_t>(id)]) + 0.5F;
  }
  parallel_for_throwing(kParts, tokens_ * kWorkPerToken,
                        [&](std::int64_t part) { predict_part(part, tokenizer, text.joins(), ids); });
}

// Reads all but a part, and then the part.
void HeldOutExpectations::predict_part(std::int64_t index, const Tokenizer& tokenizer,
                                       std::span<const std::int64_t> joins, std::span<const std::int32_t> ids) {
  constexpr std::int64_t kContextTokens = 256;  // that are read before a part: more than most contexts reach back
  const TokenRange range = held_out_range(index, tokens_, kParts);
  const std::int64_t begin = range.begin, end = range.end;
  ContextMixer mixer(tokenizer, counts_, tokens_, ContextMixer::Use::learn_then_predict);
  const auto enter = [&](std::int64_t i) {  // the token at i, before which a text may begin
    if (i == end || std::ranges::binary_search(joins, i)) mixer.begin_text();
    return ids[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < tokens_; ++i) {
    if (i < begin || i >= end) mixer.read(enter(i));
  }
  mixer.begin_text();
  Part& part = parts_[static_cast<std::size_t>(index)];
  for (std::int64_t i = std::max<std::int64_t>(0, begin - kContextTokens); i < end; ++i) {
    const std::int32_t token = enter(i);
    if (i >= begin) {
      part.begin.push_back(static_cast<std::uint32_t>(part.expected.size()));
      mixer.expect(part.expected);
    }
    mixer.follow(token);
  }
}

std::int64_t HeldOutExpectations::bytes_to_make(std::int64_t tokens, std::int64_t threads) {
  constexpr std::int64_t kMixer = 26'000'000;                                // of a ContextMixer, without its tables
  constexpr std::int64_t kTablesPerToken = 1344, kMostTables = 353'000'000;  // 21 tables with a line of 64 bytes
  return bytes_kept(tokens) + std::min(threads, kParts) * (kMixer + std::min(kTablesPerToken * tokens, kMostTables));
}

// A line through what was measured on two threads of an AMD EPYC: 23, 56 and 78 microseconds of one thread per token of
// a vocabulary of 65, 512 and 3,059 (docs/decisions/085-counts-that-teach.md). A token is about log2(vocabulary)
// decisions.
double HeldOutExpectations::seconds_to_make(std::int64_t tokens, std::int64_t vocabulary, std::int64_t threads) {
  constexpr double kPerDecision = 10e-6, kAtNone = -37e-6, kLeast = 10e-6;
  const double decisions = std::log2(static_cast<double>(std::max<std::int64_t>(1, vocabulary)));
  const double per_token = std::max(kLeast, kAtNone + kPerDecision * decisions);
  return per_token * static_cast<double>(tokens) / static_cast<double>(std::min(threads, kParts));
}

void HeldOutExpectations::probabilities(std::int64_t position, std::span<float> out) const {
  const std::int64_t index = held_out_part(position, tokens_, kParts);
  const Part& part = parts_[static_cast<std::size_t>(index)];
  auto next = part.expected.begin() +
              part.begin[static_cast<std::size_t>(position - held_out_range(index, tokens_, kParts).begin)];
  visit_probable_nodes(
      code_, [](auto&&...) {}, [&](std::int32_t) { return *next++; },
      [&](std::int32_t child, float p) {
        const float factor = p / shares_[static_cast<std::size_t>(child)];
        for (const std::int32_t id : code_.tokens_below(child))
          out[static_cast<std::size_t>(id)] = factor * shares_[static_cast<std::size_t>(id)];
      });
}

}  // namespace maki
