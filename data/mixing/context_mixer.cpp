#include "data/mixing/context_mixer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/core/check.h"
#include "data/mixing/token_traits.h"

namespace maki {
namespace {

// The values down to kRepeatLengths were chosen by measurement, among about 120 configurations: see "What is counted
// and mixed" in docs/learning.md.
constexpr float kBias = 0.3F;    // the input that is always there
constexpr float kCertainty = 3;  // the factor of the input p − 1/2; the other inputs are log(p / (1 − p))
constexpr float kFirstRate = 0.02F, kLastRate = 0.0005F;  // of the mixers: weights move by rate · error · input
constexpr float kDecisionsToHalveRate = 150'000;          // from kFirstRate on, which falls as 1 / decisions
constexpr float kResultsRate = 0.002F;                    // of the mixers of results
constexpr DecisionMixer::Rates kRatesWithOther = {.mixers = 0.002F, .results = 0.002F};
constexpr float kWeightOfOther = 0.3F;            // of the other predictor, at first
constexpr std::size_t kRepeatLengths[] = {4, 7};  // in tokens: a finder looks for repetitions from each on
// Sets of weights by confidence(): seven orders; four lengths of repetition, which are none, 1 to 3 tokens (these do
// not occur, as repetitions begin with four), 4 to 7, and more.
constexpr std::size_t kLengthClasses = 4, kConfidences = (TextContexts::kOrders + 1) * kLengthClasses;
constexpr std::size_t kKinds = 16 * 16 * 16;  // sets by the kinds of the last three characters, four bits each
// Sets by the length of a repetition, from 0 to 15 tokens or more, and of the word so far.
constexpr std::size_t kRepetitions = 16, kWordLengths = TextContexts::kMaxWordLength + 1;
constexpr std::size_t kCertainties = 4 * 4 * 4 * 4;  // sets by certainty_of() four orders

// The binary logarithm of the lines of a table: more than half a line and at most one per token that is expected, which
// is five to ten slots, since most decisions are made for the first time in long contexts. At most 2^18: of 517,000
// byte pairs of tinyshakespeare, tables of half this size lose 0.003 nats per token, and larger ones gain 0.0008.
int table_bits(std::int64_t tokens) {
  constexpr int kMinBits = 9, kMaxBits = 18;  // 32 KiB, and 16 MiB for each context
  return std::clamp(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens))) - 1, kMinBits, kMaxBits);
}

// How sure a count is: 0 if nothing was seen, 1 or 2 if always the same was seen, at most or more than twice; else 3.
std::size_t certainty_of(const DecisionCount& count) {
  const int zeros = count.history >> 4, ones = count.history & 15;
  if (count.is_new()) return 0;
  if (zeros > 0 && ones > 0) return 3;
  return zeros + ones > 2 ? 2 : 1;
}

}  // namespace

ContextMixer::ContextMixer(const Tokenizer& tokenizer, std::span<const std::int64_t> counts, std::int64_t expected,
                           Use use)
    : code_(counts, ids_by_bytes(tokenizer)),
      contexts_(traits_of_tokens(tokenizer), use == Use::learn_while_predicting),
      tables_(kContexts - 1, ContextTable(table_bits(expected))),
      without_context_(static_cast<std::size_t>(code_.nodes())),
      alone_(kInputs, {kConfidences, static_cast<std::size_t>(code_.vocab_size()) + 1,
                       static_cast<std::size_t>(std::max(1, code_.nodes())), kKinds, kRepetitions * kWordLengths,
                       kCertainties}) {
  if (use == Use::learn_then_predict) return;
  for (const std::size_t length : kRepeatLengths) repeats_.emplace_back(text_, code_, length);
}

ContextMixer::Places ContextMixer::places(std::int32_t node, Contexts wanted) const {
  const std::int32_t group = code_.group(node).first;
  Places at;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if ((wanted >> i & 1) != 0) at[i] = tables_[i].place(hashes_[i], group);
  }
  return at;
}

// What was counted of the decision at a node, to be learned further.
void ContextMixer::find(std::int32_t node, const Places& at) {
  const std::uint16_t member = code_.group(node).member;
  for (std::size_t i = 0; i < at.size(); ++i) learned_[i] = &tables_[i].find(at[i], member);
  learned_[kContexts - 1] = &without_context_[static_cast<std::size_t>(node)];
  std::ranges::copy(learned_, counted_.begin());
  for (std::size_t i = 0; i < repeats_.size(); ++i) inputs_[3 * kContexts + i] = repeats_[i].predict(node);
}

// What was counted of the decision at a node in the contexts that are searched; returns those in which it was.
ContextMixer::Contexts ContextMixer::look_up(std::int32_t node, const Places& at, Contexts searched) {
  static constexpr DecisionCount kNew;
  const std::uint16_t member = code_.group(node).member;
  Contexts found = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const DecisionCount* const count = (searched >> i & 1) != 0 ? tables_[i].look_up(at[i], member) : nullptr;
    counted_[i] = count != nullptr ? count : &kNew;
    if (count != nullptr) found |= Contexts{1} << i;
  }
  counted_[kContexts - 1] = &without_context_[static_cast<std::size_t>(node)];
  return found;
}

// The inputs of the mixers.
void ContextMixer::collect() {
  for (std::size_t i = 0; i < kContexts; ++i) {
    const DecisionCount& count = *counted_[i];
    float* const input = &inputs_[3 * i];
    input[0] = count.is_new() ? 0 : histories_[i].stretched(count.history);
    input[1] = count.is_new() ? 0 : stretched_fraction(count.probability);
    input[2] = count.is_new() ? 0 : kCertainty * (histories_[i].probability(count.history) - 0.5F);
  }
  inputs_[kInputs - 1] = 0;
  inputs_[kInputs - 2] = kBias;
}

// In tokens; 0 if none is known.
std::size_t ContextMixer::longest_repetition() const {
  std::size_t longest = 0;
  for (const RepeatFinder& repeat : repeats_) longest = std::max(longest, repeat.repeated());
  return longest;
}

// The longest order whose context was seen before, and how long a repetition is.
std::size_t ContextMixer::confidence() const {
  std::size_t order = 0;
  for (std::size_t i = 0; i < TextContexts::kOrders; ++i) {
    if (!counted_[i]->is_new()) order = i + 1;
  }
  const std::size_t longest = longest_repetition();
  return order * kLengthClasses + (longest == 0 ? 0 : std::min(longest / 4 + 1, kLengthClasses - 1));
}

// Of the last 2 … 5 tokens.
std::size_t ContextMixer::certainties() const {
  std::size_t all = 0;
  for (std::size_t i = 1; i < 5; ++i) all = 4 * all + certainty_of(*counted_[i]);
  return all;
}

// Weights by confidence, the last token, the decision itself, the kinds of the last characters, the lengths of
// repetition and word, and certainties; corrections by the last token and the last two.
DecisionMixer::Choice ContextMixer::choose(std::int32_t node) const {
  const auto correction = [&](std::uint64_t hash) {
    return static_cast<std::size_t>((hash + static_cast<std::uint64_t>(node)) % DecisionMixer::kCorrectionContexts);
  };
  const std::size_t repeated = std::min(longest_repetition(), kRepetitions - 1);
  return {.sets = {confidence(), static_cast<std::size_t>(contexts_.last(1)), static_cast<std::size_t>(node),
                   contexts_.kinds(), repeated * kWordLengths + contexts_.word_length(), certainties()},
          .corrections = {correction(hashes_[0]), correction(hashes_[1])}};
}

// What was counted learns the decision; the mixers have learned it before.
void ContextMixer::learn(bool bit) {
  for (std::size_t i = 0; i < kContexts; ++i) {
    histories_[i].learn(learned_[i]->history, bit);
    learned_[i]->learn(bit);
  }
  for (RepeatFinder& repeat : repeats_) repeat.learn(bit);
  ++decisions_;
}

MixedLoss ContextMixer::read(std::int32_t token, std::span<const float> other) {
  check(other.empty() || std::ssize(other) == code_.vocab_size(),
        "context mixer: the other predictor must give a probability to each of {} tokens; got {}", code_.vocab_size(),
        other.size());
  hashes_ = contexts_.hashes();
  for (RepeatFinder& repeat : repeats_) repeat.begin_token();
  if (!other.empty()) code_.sum_branches(other, sums_);
  if (!other.empty() && !with_other_) {
    with_other_ = alone_;
    with_other_->set_weight(kInputs - 1, kWeightOfOther);
  }
  MixedLoss loss;
  const auto lose = [](double p, bool bit) { return -std::log(bit ? p : 1 - p); };
  const std::span<const Decision> path = code_.path(token);
  Places at, next = path.empty() ? Places{} : places(path.front().node);
  for (std::size_t step = 0; step < path.size(); ++step) {
    const auto [node, bit] = path[step];
    if (code_.group(node).first == node) {
      at = next;
      const std::size_t following = step + TokenCode::kGroupLevels;
      if (following < path.size()) next = places(path[following].node);
    }
    find(node, at);
    collect();
    const DecisionMixer::Choice choice = choose(node);
    loss.counts += lose(alone_.probability(inputs_, choice), bit);
    const float rate = std::max(kLastRate, kFirstRate / (1 + static_cast<float>(decisions_) / kDecisionsToHalveRate));
    alone_.learn(inputs_, bit, {.mixers = rate, .results = kResultsRate});
    if (!other.empty()) {
      const auto [zero, one] = sums_[static_cast<std::size_t>(node)];
      inputs_[kInputs - 1] = zero + one > 0 ? stretch(clamp_probability(one / (zero + one))) : 0;
      loss.mixed += lose(with_other_->probability(inputs_, choice), bit);
      with_other_->learn(inputs_, bit, kRatesWithOther);
    }
    learn(bit);
  }
  if (other.empty()) loss.mixed = loss.counts;
  if (!repeats_.empty()) text_.push_back(token);
  for (RepeatFinder& repeat : repeats_) repeat.end_token();
  contexts_.follow(token);
  return loss;
}

void ContextMixer::expect(std::vector<DecisionProbability>& probabilities) {
  hashes_ = contexts_.hashes();
  places_.clear();
  expected_.resize(static_cast<std::size_t>(code_.nodes()));
  const auto expected = [&](std::int32_t node) -> Expected& { return expected_[static_cast<std::size_t>(node)]; };
  visit_probable_nodes(
      code_,
      [&](std::int32_t node, std::optional<std::int32_t> from) {
        expected(node) = from ? expected(*from) : Expected{kAllContexts, 0};
        if (code_.group(node).first != node) return;
        expected(node).at = static_cast<std::uint32_t>(places_.size());
        places_.push_back(places(node, expected(node).contexts));
      },
      [&](std::int32_t node) {
        Expected& its = expected(node);
        its.contexts = look_up(node, places_[its.at], its.contexts);
        collect();
        const double one = alone_.probability(inputs_, choose(node));
        probabilities.push_back(static_cast<DecisionProbability>(std::lround(65536 * one)));
        return probabilities.back();
      },
      [](std::int32_t, float) {});
}

}  // namespace maki
