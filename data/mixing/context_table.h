// What was counted about binary decisions in contexts: the memory of ContextMixer.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace maki {

/// What is known about one decision in one context.
struct DecisionCount {
  std::uint16_t probability = 1U << 15;  ///< that a 1 follows, of 2^16: the average of all, and later of the last ones
  /// How many zeros (upper four bits) and ones (lower four bits) were seen. Whenever one of them is seen, a large count
  /// of the other is reduced, because what happened last says more than what happened often.
  std::uint8_t history = 0;
  /// How often something followed, at most kMaxSeen, which limits how slowly the probability still changes: by 1 /
  /// (kMaxSeen + 1.5) of what was missing.
  std::uint8_t seen = 0;

  static constexpr std::uint8_t kMaxSeen = 240;  ///< long for an average, which still follows a text that changes
  bool is_new() const { return seen == 0; }
  void learn(bool bit);
};

/// A hash table of fixed size. The decisions of a group (TokenCode) in a context are in one line of the cache, with
/// those of other groups; where a line is full, a decision replaces the one in it that was seen least often. 13 bits of
/// the hash are compared, so a decision rarely finds the slot of another.
class ContextTable {
 public:
  /// 2^bits lines of ten slots, 64 bytes each. Requires: 1 <= bits <= 24.
  explicit ContextTable(int bits);

  /// Where the decisions of a group are, and what they are told from others by.
  struct Place {
    std::uint32_t line;
    std::uint16_t check;
  };
  /// The place of a group of decisions in a context, given by its hash. Its memory begins to be read.
  Place place(std::uint64_t context, std::int32_t group) const;
  /// The slot of a decision; a new one if there is none yet. Valid until the next call. Requires: 0 < member < 8.
  DecisionCount& find(const Place& place, std::uint16_t member);
  /// The slot if there is one, else null.
  const DecisionCount* look_up(const Place& place, std::uint16_t member) const;

 private:
  static constexpr std::size_t kSlots = 10;
  struct alignas(64) Line {
    std::array<std::uint16_t, kSlots> checks{};  // 0: the slot is free
    std::array<DecisionCount, kSlots> counts;
  };
  int bits_;
  std::vector<Line> lines_;
};

/// How often a 1 followed a history, over all contexts: what few observations are worth is learned, not assumed.
class HistoryMap {
 public:
  HistoryMap();
  float probability(std::uint8_t history) const { return entries_[history].probability; }
  /// stretch() of it, computed when it was learned.
  float stretched(std::uint8_t history) const { return entries_[history].stretched; }
  void learn(std::uint8_t history, bool bit);

 private:
  struct Entry {
    float probability = 0, stretched = 0, count = 0;
  };
  std::array<Entry, 256> entries_;
};

/// Spreads the bits of a number (the finalizer of SplitMix64: Steele, Lea and Flood 2014).
constexpr std::uint64_t spread_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// The hash of a sequence from that of all but its last value; that of the empty sequence is 0.
constexpr std::uint64_t extend_hash(std::uint64_t hash, std::uint64_t value) { return spread_bits(hash + value + 1); }

}  // namespace maki
