// A hash map from pieces of text to values, faster than std::unordered_map for millions of short keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace maki {

/// A mixing function for keys of hash tables; not for files.
inline std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;  // a multiplier of C. Wellons' hash prospector
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

inline std::uint64_t hash_of_piece(std::string_view piece) {
  std::uint64_t hash = piece.size();
  for (; piece.size() > 8; piece.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, piece.data(), 8);
    hash = mix64(hash ^ word);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, piece.data(), piece.size());
  return mix64(hash ^ word);
}

/// Open addressing; at most half of the slots are taken. The keys must outlive the map. Requires: a key has data, even
/// if it is empty.
template <class Value>
class PieceMap {
 public:
  struct Entry {
    std::string_view key;  ///< no data: the slot is free
    Value value{};
  };

  /// The value of the key, which is inserted with the value `initial` if it is missing. Valid until the next call.
  Value& at_or_insert(std::string_view key, const Value& initial = {}) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Entry& entry = slots_[slot_of(key)];
    if (entry.key.data() == nullptr) {
      entry = {key, initial};
      ++size_;
    }
    return entry.value;
  }
  /// nullptr if the key is missing.
  const Value* find(std::string_view key) const {
    if (slots_.empty()) return nullptr;
    const Entry& entry = slots_[slot_of(key)];
    return entry.key.data() == nullptr ? nullptr : &entry.value;
  }

  std::size_t size() const { return size_; }
  /// Calls f(key, value) for every entry, in an order that depends only on what was inserted, in which order, and on
  /// the byte order of the machine.
  template <class F>
  void each(const F& f) const {
    for (const Entry& entry : slots_) {
      if (entry.key.data() != nullptr) f(entry.key, entry.value);
    }
  }

 private:
  std::size_t slot_of(std::string_view key) const {
    std::size_t slot = hash_of_piece(key) & (slots_.size() - 1);
    while (slots_[slot].key.data() != nullptr && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow() {
    constexpr std::size_t kFirstSlots = 64;  // any power of two works: their number is doubled as pieces are added
    std::vector<Entry> before(std::max(kFirstSlots, 2 * slots_.size()));
    before.swap(slots_);
    for (const Entry& entry : before) {
      if (entry.key.data() != nullptr) slots_[slot_of(entry.key)] = entry;
    }
  }

  std::vector<Entry> slots_;
  std::size_t size_ = 0;
};

}  // namespace maki
