#include "data/mixing/context_table.h"

#include <algorithm>

#include "data/mixing/logistic.h"

namespace maki {
namespace {

constexpr int kMaxInHistory = 15;  // four bits
// What remains of the count of zeros when a one is seen, and the other way round: about its number of binary digits. So
// a long run that is contradicted still counts for more than a short one, but not for much more.
constexpr std::array<int, kMaxInHistory + 1> kReduced = {0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5};
// The probability that follows a history is an average over about this many observations: enough to be exact, and few
// enough to follow a text that changes.
constexpr float kMaxHistoryCount = 1000;
constexpr float kMinHistoryProbability = 1e-4F;  // of 1 − p as well: log(p / (1 − p)) stays within ±9.2

}  // namespace

void DecisionCount::learn(bool bit) {
  // Of 2^16: p stays 0.05 % away from 0 and 1, and log(p / (1 − p)) within ±7.6.
  constexpr float kOne = 65535, kLeast = 32, kMost = kOne - kLeast;
  const float rate = 1 / (static_cast<float>(seen) + 1.5F);
  const auto p = static_cast<float>(probability);
  probability = static_cast<std::uint16_t>(std::clamp(p + ((bit ? kOne : 0) - p) * rate, kLeast, kMost));
  int zeros = history >> 4, ones = history & 15;
  int &same = bit ? ones : zeros, &other = bit ? zeros : ones;
  same = std::min(same + 1, kMaxInHistory);
  other = kReduced[static_cast<std::size_t>(other)];
  history = static_cast<std::uint8_t>(zeros << 4 | ones);
  if (seen < kMaxSeen) ++seen;
}

ContextTable::ContextTable(int bits) : bits_(bits), lines_(std::size_t{1} << bits) {}

ContextTable::Place ContextTable::place(std::uint64_t context, std::int32_t group) const {
  const std::uint64_t hash = spread_bits(context + static_cast<std::uint64_t>(group) * 0x9E3779B97F4A7C15);
  const Place place{static_cast<std::uint32_t>(hash >> (64 - bits_)), static_cast<std::uint16_t>(hash << 3)};
  __builtin_prefetch(&lines_[place.line]);
  return place;
}

const DecisionCount* ContextTable::look_up(const Place& place, std::uint16_t member) const {
  const Line& line = lines_[place.line];
  const auto check = static_cast<std::uint16_t>(place.check | member);
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (line.checks[i] == check) return &line.counts[i];
  }
  return nullptr;
}

DecisionCount& ContextTable::find(const Place& place, std::uint16_t member) {
  Line& line = lines_[place.line];
  const auto check = static_cast<std::uint16_t>(place.check | member);
  std::size_t least = member;  // among equals, so that the members of a group do not replace each other
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (line.checks[i] == check) return line.counts[i];
    if (line.counts[i].seen < line.counts[least].seen) least = i;
  }
  line.checks[least] = check;
  return line.counts[least] = {};
}

HistoryMap::HistoryMap() {
  for (std::size_t h = 0; h < entries_.size(); ++h) {
    const auto zeros = static_cast<float>(h >> 4), ones = static_cast<float>(h & 15);
    entries_[h].probability = (ones + 0.4F) / (zeros + ones + 0.8F);
    entries_[h].stretched = stretch(entries_[h].probability);
  }
}

void HistoryMap::learn(std::uint8_t history, bool bit) {
  Entry& entry = entries_[history];
  const float moved = entry.probability + ((bit ? 1.0F : 0.0F) - entry.probability) / (entry.count + 1.5F);
  entry.probability = std::clamp(moved, kMinHistoryProbability, 1 - kMinHistoryProbability);
  entry.stretched = stretch(entry.probability);
  entry.count = std::min(entry.count + 1, kMaxHistoryCount);
}

}  // namespace maki
