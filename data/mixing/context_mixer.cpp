#include "data/mixing/context_mixer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utf8proc.h>
#include <utility>

#include "autograd/core/check.h"

namespace maki {
namespace {

constexpr std::size_t kLongestOrder = 6;  // contexts of the last 1 … 6 tokens
// Chosen by measurement; see "Evaluation that learns while it reads" in docs/design.md.
constexpr float kFirstWeight = 0.15F, kBias = 0.3F, kCertainty = 3;
constexpr float kFirstRate = 0.02F, kLastRate = 0.002F, kRateDecay = 150'000;  // of the mixers, by decisions
constexpr float kRateWithOther = 0.003F;                                       // once another predictor takes part
constexpr float kResultsRate = 0.0005F, kCorrectionRate = 0.02F;
constexpr float kMinProbability = 1e-5F;
constexpr std::size_t kCorrections = 1 << 16;  // contexts of a correction, by hash
constexpr std::size_t kRepeatLengths[] = {4, 7};
// Sets of weights by confidence(): seven orders; four lengths of repetition, which are none, 1 to 3 tokens (these do
// not occur, as repetitions begin with four), 4 to 7, and more.
constexpr std::size_t kLengths = 4, kConfidences = (kLongestOrder + 1) * kLengths;

// The binary logarithm of the slots of a table: more than 4 and at most 8 slots per token that is expected, since most
// decisions are made for the first time in long contexts. No measurement of these sizes is recorded.
int table_bits(std::int64_t tokens) {
  constexpr int kMinBits = 12, kMaxBits = 21;
  return std::clamp(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, tokens)))) + 2,
                    kMinBits, kMaxBits);
}

// Whether the first character is a letter, digit or mark of any script, or a byte of a character that is cut into
// tokens.
bool is_in_word(std::string_view bytes) {
  if (bytes.empty()) return false;
  utf8proc_int32_t point = 0;
  const auto* const text = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  if (utf8proc_iterate(text, static_cast<utf8proc_ssize_t>(bytes.size()), &point) < 0) return true;
  return utf8proc_category(point) <= UTF8PROC_CATEGORY_NO && utf8proc_category(point) != UTF8PROC_CATEGORY_CN;
}

std::uint64_t extend(std::uint64_t hash, std::uint64_t value) { return spread_bits(hash + value + 1); }

float clamped(double p) {
  return static_cast<float>(std::clamp(p, static_cast<double>(kMinProbability), 1.0 - kMinProbability));
}

}  // namespace

DecisionMixer::DecisionMixer(std::size_t inputs, const std::array<std::size_t, 3>& sets)
    : of_results_(sets.size(), sets[0], 1.0F / static_cast<float>(sets.size())),
      corrections_(2, ProbabilityCorrection(kCorrections)) {
  for (const std::size_t n : sets) mixers_.emplace_back(inputs, n, kFirstWeight);
}

// The shares 0.4, 0.3 and 0.3 of the mixer and its corrections have no recorded measurement.
double DecisionMixer::probability(std::span<const float> inputs, const Choice& choice) {
  for (std::size_t i = 0; i < mixers_.size(); ++i) results_[i] = mixers_[i].mix(inputs, choice.sets[i]);
  const float mixed = of_results_.mix(results_, choice.sets[0]);
  const float first = corrections_[0].correct(mixed, choice.corrections[0]);
  const float second = corrections_[1].correct(mixed, choice.corrections[1]);
  return clamped(0.4F * squash(mixed) + 0.3F * first + 0.3F * second);
}

void DecisionMixer::learn(std::span<const float> inputs, bool bit, float rate) {
  for (LogisticMixer& mixer : mixers_) mixer.learn(inputs, bit, rate);
  of_results_.learn(results_, bit, kResultsRate);
  for (ProbabilityCorrection& correction : corrections_) correction.learn(bit, kCorrectionRate);
}

ContextMixer::ContextMixer(const Tokenizer& tokenizer, std::span<const std::int64_t> counts, std::int64_t expected)
    : code_(counts),
      tables_(kContexts - 1, ContextTable(table_bits(expected))),
      without_context_(static_cast<std::size_t>(code_.nodes())),
      alone_(kInputs, {kConfidences, static_cast<std::size_t>(code_.vocab_size()) + 1,
                       static_cast<std::size_t>(std::max(1, code_.nodes()))}) {
  for (std::int32_t id = 0; id < code_.vocab_size(); ++id) {
    in_word_.push_back(is_in_word(tokenizer.bytes(id)));
    ends_line_.push_back(tokenizer.bytes(id).ends_with('\n'));
  }
  for (const std::size_t length : kRepeatLengths) repeats_.emplace_back(text_, code_, length);
}

void ContextMixer::begin_text() {
  begin_ = text_.size();
  word_ = last_word_ = second_last_word_ = line_ = 0;
}

// The last 1 … 6 tokens; the word so far, with the token before, with the last word, with that before it, and with
// both; the second and third last token; the line so far.
void ContextMixer::hash_contexts() {
  const auto last = [&](std::size_t k) -> std::uint64_t {  // 0 before the beginning
    return text_.size() - begin_ < k ? 0 : static_cast<std::uint64_t>(text_[text_.size() - k]) + 1;
  };
  std::uint64_t hash = 0;
  for (std::size_t k = 1; k <= kLongestOrder; ++k) hashes_[k - 1] = hash = extend(hash, last(k));
  const std::uint64_t word = extend(0, word_);
  std::size_t next = kLongestOrder;
  for (const std::uint64_t context :
       {extend(word, last(1)), extend(word, last_word_), extend(word, second_last_word_),
        extend(extend(word, last_word_), second_last_word_), extend(extend(0, last(2)), last(3)), extend(0, line_)})
    hashes_[next++] = context;
  for (std::size_t i = 0; i < hashes_.size(); ++i) hashes_[i] = extend(hashes_[i], i);
}

// The inputs of the mixers for the decision at a node.
void ContextMixer::collect(std::int32_t node) {
  for (std::size_t i = 0; i + 1 < kContexts; ++i) counted_[i] = &tables_[i].find(hashes_[i], node);
  counted_[kContexts - 1] = &without_context_[static_cast<std::size_t>(node)];
  for (std::size_t i = 0; i < kContexts; ++i) {
    const DecisionCount& count = *counted_[i];
    float* const input = &inputs_[3 * i];
    const float p = histories_[i].probability(count.history);
    input[0] = count.is_new() ? 0 : stretch(p);
    input[1] = count.is_new() ? 0 : stretch(static_cast<float>(count.probability) / 65536.0F);
    input[2] = count.is_new() ? 0 : kCertainty * (p - 0.5F);
  }
  for (std::size_t i = 0; i < kRepeats; ++i) inputs_[3 * kContexts + i] = repeats_[i].predict(node);
  inputs_[kInputs - 2] = kBias;
}

// The longest order whose context was seen before, and how long a repetition is.
std::size_t ContextMixer::confidence() const {
  std::size_t order = 0, repeated = 0;
  for (std::size_t i = 0; i < kLongestOrder; ++i) {
    if (!counted_[i]->is_new()) order = i + 1;
  }
  for (const RepeatFinder& repeat : repeats_) {
    if (repeat.repeated() > 0) repeated = std::max(repeated, std::min(repeat.repeated() / 4 + 1, kLengths - 1));
  }
  return order * kLengths + repeated;
}

// By confidence, the last token, and the decision itself; corrections by the last token and the last two.
DecisionMixer::Choice ContextMixer::choose(std::int32_t node) const {
  const std::size_t last = text_.size() == begin_ ? 0 : static_cast<std::size_t>(text_.back()) + 1;
  const auto context = [&](std::uint64_t hash) { return (hash + static_cast<std::uint64_t>(node)) % kCorrections; };
  return {.sets = {confidence(), last, static_cast<std::size_t>(node)},
          .corrections = {context(hashes_[0]), context(hashes_[1])}};
}

// What was counted learns the decision; the mixers have learned it before.
void ContextMixer::learn(bool bit) {
  for (std::size_t i = 0; i < kContexts; ++i) {
    histories_[i].learn(counted_[i]->history, bit);
    counted_[i]->learn(bit);
  }
  for (RepeatFinder& repeat : repeats_) repeat.learn(bit);
  ++decisions_;
}

void ContextMixer::follow(std::int32_t token) {
  text_.push_back(token);
  for (RepeatFinder& repeat : repeats_) repeat.end_token();
  if (in_word_[static_cast<std::size_t>(token)]) {
    word_ = extend(word_, static_cast<std::uint64_t>(token));
  } else {
    if (word_ != 0) second_last_word_ = std::exchange(last_word_, word_);
    word_ = 0;
  }
  line_ = ends_line_[static_cast<std::size_t>(token)] ? 0 : extend(line_, static_cast<std::uint64_t>(token));
}

MixedLoss ContextMixer::read(std::int32_t token, std::span<const float> other) {
  check(other.empty() || std::ssize(other) == code_.vocab_size(),
        "context mixer: the other predictor must give a probability to each of {} tokens; got {}", code_.vocab_size(),
        other.size());
  hash_contexts();
  for (RepeatFinder& repeat : repeats_) repeat.begin_token();
  if (!other.empty()) code_.sum_branches(other, sums_);
  if (!other.empty() && !with_other_) with_other_ = alone_;
  MixedLoss loss;
  const auto lose = [](double p, bool bit) { return -std::log(bit ? p : 1 - p); };
  for (const auto [node, bit] : code_.path(token)) {
    collect(node);
    const DecisionMixer::Choice choice = choose(node);
    inputs_[kInputs - 1] = 0;
    loss.counts += lose(alone_.probability(inputs_, choice), bit);
    alone_.learn(inputs_, bit, std::max(kLastRate, kFirstRate / (1 + static_cast<float>(decisions_) / kRateDecay)));
    if (!other.empty()) {
      const auto [zero, one] = sums_[static_cast<std::size_t>(node)];
      inputs_[kInputs - 1] = zero + one > 0 ? stretch(clamped(one / (zero + one))) : 0;
      loss.mixed += lose(with_other_->probability(inputs_, choice), bit);
      with_other_->learn(inputs_, bit, kRateWithOther);
    }
    learn(bit);
  }
  if (other.empty()) loss.mixed = loss.counts;
  follow(token);
  return loss;
}

}  // namespace maki
