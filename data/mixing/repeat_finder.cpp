#include "data/mixing/repeat_finder.h"

#include <algorithm>

#include "data/mixing/context_table.h"
#include "data/mixing/logistic.h"

namespace maki {
namespace {

constexpr int kSlotBits = 18;  // 262,144 slots, 1 MB: the latest tokens with a hash replace earlier ones
// The probability that a repetition goes on, for each length: a guess at first, then an average over about the last
// hundred decisions, never so near to 0 or 1 that one surprise would cost more than 8 nats.
constexpr float kFirstTrust = 0.75F, kTrustRate = 0.01F, kMinTrust = 0.01F, kMaxTrust = 0.9995F;

}  // namespace

RepeatFinder::RepeatFinder(const std::vector<std::int32_t>& text, const TokenCode& code, std::size_t length)
    : text_(text), code_(code), shortest_(length), last_(std::size_t{1} << kSlotBits) {
  trust_.fill(kFirstTrust);
}

// Of the last `shortest_` tokens. Requires: there are as many.
std::size_t RepeatFinder::slot() const {
  std::uint64_t hash = 0;
  for (std::size_t i = text_.size() - shortest_; i < text_.size(); ++i)
    hash = spread_bits(hash + static_cast<std::uint64_t>(text_[i]) + 1);
  return static_cast<std::size_t>(hash >> (64 - kSlotBits));
}

// Slots may have been written for other tokens with the same hash, so the repetition is compared.
void RepeatFinder::look_up() {
  next_ = last_[slot()];
  length_ = 0;
  while (length_ < kMaxLength && length_ < next_ && text_[next_ - 1 - length_] == text_[text_.size() - 1 - length_])
    ++length_;
  if (length_ < shortest_) length_ = 0;
}

void RepeatFinder::begin_token() {
  expects_ = false;
  if (text_.size() < shortest_) return;
  if (length_ == 0) look_up();
  last_[slot()] = static_cast<std::uint32_t>(text_.size());
  expects_ = length_ > 0;
  if (expects_) expected_ = code_.path(text_[next_]);
}

float RepeatFinder::predict(std::int32_t node) {
  expects_ = expects_ && !expected_.empty() && expected_.front().node == node;
  if (!expects_) return 0;
  const float x = stretch(trust_[length_]);
  return expected_.front().bit ? x : -x;
}

void RepeatFinder::learn(bool bit) {
  if (!expects_) return;
  const bool right = expected_.front().bit == bit;
  float& trust = trust_[length_];
  trust = std::clamp(trust + ((right ? 1.0F : 0.0F) - trust) * kTrustRate, kMinTrust, kMaxTrust);
  expects_ = right;
  expected_ = expected_.subspan(1);
}

void RepeatFinder::end_token() {
  if (length_ == 0) return;
  length_ = text_[next_] == text_.back() ? std::min(length_ + 1, kMaxLength) : 0;
  ++next_;
}

}  // namespace maki
