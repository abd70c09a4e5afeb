#include "data/tokenizer/bpe_encoder.h"

#include <bit>
#include <limits>
#include <queue>

#include "data/tokenizer/piece_map.h"

namespace maki {
namespace {

// For a pair that no merge joins: after every rank.
constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();
// Up to this length, scanning all pairs for each merge is faster than a heap: measured with 32,000 tokens.
constexpr std::size_t kMaxScannedBytes = 64;

}  // namespace

std::size_t BpeEncoder::index_of(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  std::size_t i = mix64(pair) & (slots_.size() - 1);
  while (slots_[i].left >= 0 && (slots_[i].left != left || slots_[i].right != right)) i = (i + 1) & (slots_.size() - 1);
  return i;
}

void BpeEncoder::reserve(std::size_t merges) {
  if (2 * merges <= slots_.size()) return;
  std::vector<Slot> before(std::bit_ceil(2 * merges));
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.left >= 0) slots_[index_of(slot.left, slot.right)] = slot;
  }
}

bool BpeEncoder::add(const BpeMerge& merge) {
  reserve(merges_ + 1);
  Slot& slot = slots_[index_of(merge.left, merge.right)];
  if (slot.left >= 0) return false;
  slot = {merge.left, merge.right, static_cast<std::int32_t>(merges_++), merge.merged};
  return true;
}

void BpeEncoder::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() <= kMaxScannedBytes) {
    encode_by_scanning(piece, ids);
  } else {
    encode_by_heap(piece, ids);
  }
}

void BpeEncoder::encode_by_scanning(std::string_view piece, std::vector<std::int32_t>& ids) const {
  const std::size_t first = ids.size();
  for (const char byte : piece) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  const auto slot_at = [&](std::size_t i) { return find(ids[i], ids[i + 1]); };
  // The merge of each token with the next one.
  Slot slots[kMaxScannedBytes];
  std::size_t count = piece.size();
  const auto look_up = [&](std::size_t i) {
    slots[i] = slot_at(first + i);
    if (slots[i].left < 0) slots[i].rank = kNoRank;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (slots[i].rank < slots[best].rank) best = i;
    }
    if (slots[best].rank == kNoRank) break;
    ids[first + best] = slots[best].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(first + best + 1));
    --count;
    for (std::size_t i = best + 1; i + 1 < count; ++i) slots[i] = slots[i + 1];
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
}

void BpeEncoder::encode_by_heap(std::string_view piece, std::vector<std::int32_t>& ids) const {
  // A linked list of tokens; each is named by the position of its first byte.
  constexpr std::int32_t kNone = -1;
  struct Node {
    std::int32_t id, previous, next;  // id kNone: merged into an earlier node
    std::int32_t rank;                // of the merge with the next token
  };
  const auto size = static_cast<std::int32_t>(piece.size());
  std::vector<Node> nodes(piece.size());
  const auto at = [&](std::int32_t i) -> Node& { return nodes[static_cast<std::size_t>(i)]; };
  // Rank in the upper half, position in the lower: the smallest is the leftmost pair of the lowest rank.
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
  const auto look_up = [&](std::int32_t i) {
    Node& node = at(i);
    const Slot* const slot = node.next < size ? &find(node.id, at(node.next).id) : nullptr;
    node.rank = slot != nullptr && slot->left >= 0 ? slot->rank : kNoRank;
    if (node.rank != kNoRank) queue.push(static_cast<std::uint64_t>(node.rank) << 32 | static_cast<std::uint32_t>(i));
  };
  for (std::int32_t i = 0; i < size; ++i)
    at(i) = {byte_ids_[static_cast<unsigned char>(piece[static_cast<std::size_t>(i)])], i - 1, i + 1, kNoRank};
  for (std::int32_t i = 0; i < size; ++i) look_up(i);
  while (!queue.empty()) {
    const std::uint64_t top = queue.top();
    queue.pop();
    const auto i = static_cast<std::int32_t>(top & 0xFFFFFFFF);
    Node& node = at(i);
    if (node.id == kNone || node.rank != static_cast<std::int32_t>(top >> 32)) continue;  // a pair that is no more
    Node& right = at(node.next);
    node.id = find(node.id, right.id).merged;
    node.next = right.next;
    right.id = kNone;
    if (node.next < size) at(node.next).previous = i;
    look_up(i);
    if (node.previous >= 0) look_up(node.previous);
  }
  for (std::int32_t i = 0; i < size; i = at(i).next) ids.push_back(at(i).id);
}

}  // namespace maki
