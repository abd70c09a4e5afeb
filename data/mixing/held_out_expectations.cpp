#include "data/mixing/held_out_expectations.h"

#include <algorithm>

#include "autograd/core/parallel_throwing.h"

namespace maki {

// Every mixer reads in the order of the text. The end of the text, which the validation text usually continues, is then
// what it has read last; networks learn more from such mixers than from some that have read the neighbours of their
// part last (docs/decisions/085-counts-that-teach.md).
HeldOutExpectations::HeldOutExpectations(const Tokenizer& tokenizer, TokenSpan text)
    : tokens_(static_cast<std::int64_t>(text.size())) {
  constexpr std::int64_t kWorkPerToken = 100'000;  // a rough guess, in elementary operations (parallel.h)
  const std::vector<std::int32_t> ids = text.ids();
  const std::vector<std::int64_t> counts = token_counts(ids, tokenizer.vocab_size());
  const float all = static_cast<float>(tokens_) + 0.5F * static_cast<float>(counts.size());
  for (const std::int64_t count : counts) shares_.push_back((static_cast<float>(count) + 0.5F) / all);
  parallel_for_throwing(kHeldOutParts, tokens_ * kWorkPerToken,
                        [&](std::int64_t part) { predict_part(part, tokenizer, text.joins(), ids, counts); });
}

// Reads all but a part, and then the part.
void HeldOutExpectations::predict_part(std::int64_t index, const Tokenizer& tokenizer,
                                       std::span<const std::int64_t> joins, std::span<const std::int32_t> ids,
                                       std::span<const std::int64_t> counts) {
  constexpr std::int64_t kContextTokens = 256;  // that are read before a part: more than most contexts reach back
  const TokenRange range = held_out_range(index, tokens_);
  const std::int64_t begin = range.begin, end = range.end;
  ContextMixer mixer(tokenizer, counts, tokens_, ContextMixer::Use::learn_then_predict);
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
  part.begin.push_back(static_cast<std::uint32_t>(part.expected.size()));
}

std::int64_t HeldOutExpectations::bytes_to_make(std::int64_t tokens, std::int64_t threads) {
  constexpr std::int64_t kPerToken = 200;                                    // of what is kept
  constexpr std::int64_t kMixer = 26'000'000;                                // of a ContextMixer, without its tables
  constexpr std::int64_t kTablesPerToken = 1008, kMostTables = 264'000'000;  // 21 tables with 8 slots of 6 bytes
  return kPerToken * tokens +
         std::min(threads, kHeldOutParts) * (kMixer + std::min(kTablesPerToken * tokens, kMostTables));
}

void HeldOutExpectations::probabilities(std::int64_t position, std::span<float> out) const {
  const std::int64_t index = held_out_part(position, tokens_);
  const Part& part = parts_[static_cast<std::size_t>(index)];
  const auto place = static_cast<std::size_t>(position - held_out_range(index, tokens_).begin);
  const std::span all = part.expected;
  const std::span expected = all.subspan(part.begin[place], part.begin[place + 1] - part.begin[place]);
  float rest = 1, share = 1;  // of the other tokens
  for (const auto [token, probability] : expected) {
    rest -= static_cast<float>(probability) / 65536.0F;
    share -= shares_[token];
  }
  constexpr float kRounding = 1e-5F;  // what is left of the shares where all tokens are expected
  const float factor = share > kRounding ? std::max(0.0F, rest) / share : 0.0F;
  std::ranges::transform(shares_, out.begin(), [factor](float s) { return factor * s; });
  for (const auto [token, probability] : expected) out[token] = static_cast<float>(probability) / 65536.0F;
}

}  // namespace maki
