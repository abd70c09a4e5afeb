// Byte-pair encoding of one piece: beginning with its bytes, the adjacent pair of tokens with the lowest rank is
// merged, the leftmost first among equal ones, until no pair can be merged. [Sennrich et al. 2016, arXiv:1508.07909]
//
// Thread safety: an encoder may be used by several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace maki {

/// Two tokens that become one. The rank of a merge is its index in the list of merges.
struct BpeMerge {
  std::int32_t left, right, merged;

  bool operator==(const BpeMerge&) const = default;
};

class BpeEncoder {
 public:
  /// An encoder without merges; `byte_ids` are the tokens of the bytes.
  explicit BpeEncoder(const std::array<std::int32_t, 256>& byte_ids) : byte_ids_(byte_ids) {}

  /// Adds the merge of the next rank. Returns false, and changes nothing, if the pair has a merge already.
  bool add(const BpeMerge& merge);
  void reserve(std::size_t merges);

  /// Appends the ids of a piece, none if it is empty. Takes O(n log n) for n bytes. Requires: n < 2^31.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  struct Slot {
    std::int32_t left = -1, right = -1, rank = 0, merged = 0;
  };
  /// The slot of a pair: its merge, or a free slot (left < 0).
  const Slot& find(std::int32_t left, std::int32_t right) const { return slots_[index_of(left, right)]; }
  std::size_t index_of(std::int32_t left, std::int32_t right) const;
  void encode_by_scanning(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_by_heap(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // open addressing; a power of two, at most half of them taken
  std::size_t merges_ = 0;
};

}  // namespace maki
