#include "data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <string>
#include <unordered_map>

#include "autograd/core/parallel_throwing.h"
#include "data/io/error.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/piece_map.h"

namespace maki {
namespace {

using Position = std::uint32_t;
constexpr std::int64_t kMinPairs = 2;  // merging a pair that occurs once would learn one place by heart
// In place of a token: between two pieces, and at the bytes of a token after its first.
constexpr std::int32_t kBetween = -1, kInside = -2;

// An adjacent pair of tokens.
struct Pair {
  std::int32_t left = 0, right = 0;
  std::int64_t count = 0;
  std::vector<Position> positions = {};  // where its left token begins, or began: it may have been merged since
  bool queued = false;                   // is in the list of the pairs that the current merge has made more frequent
};

// A pair and the count with which it was queued. The count may have become smaller since.
struct Queued {
  std::int64_t count;
  std::int32_t left, right;
  Pair* pair;

  // The top of the queue is the pair with the largest count, then the one with the smallest ids.
  bool operator<(const Queued& other) const {
    if (count != other.count) return count < other.count;
    return left != other.left ? left > other.left : right > other.right;
  }
};

struct PairHash {
  std::size_t operator()(std::uint64_t pair) const { return mix64(pair); }
};

class Trainer {
 public:
  explicit Trainer(const PieceCounts& pieces);
  std::vector<BpeMerge> train(std::int64_t max_tokens);

 private:
  Pair& pair_of(std::int32_t left, std::int32_t right);
  void add(std::int32_t left, std::int32_t right, Position at, std::int64_t count);
  void merge(Pair& pair, std::int32_t merged);
  void merge_at(Position at, const Pair& pair, std::int32_t merged);
  void queue_grown();
  std::int32_t token_of(const std::string& bytes);

  // For every byte of the pieces, and one place before, between and after them: the token that begins here, the size of
  // the token (at its first and its last byte), and the piece.
  std::vector<std::int32_t> ids_;
  std::vector<std::uint32_t> sizes_, piece_;
  std::vector<std::int64_t> counts_;  // of the pieces
  std::unordered_map<std::uint64_t, Pair, PairHash> pairs_;
  std::vector<Pair*> grown_;
  std::priority_queue<Queued> queue_;
  std::deque<std::string> tokens_;
  PieceMap<std::int32_t> known_;  // the ids of tokens_
};

Trainer::Trainer(const PieceCounts& pieces) {
  std::array<std::int32_t, 256> id_of_byte{};
  for (const std::uint8_t byte : bytes_by_character())
    id_of_byte[byte] = token_of(std::string(1, static_cast<char>(byte)));
  std::size_t places = 1;
  for (const auto& [piece, count] : pieces) places += piece.size() + 1;
  check<CorpusError>(places <= std::numeric_limits<Position>::max(),
                     "tokenizer: byte-pair encoding can be learned from at most 4 GiB of different pieces of text; got "
                     "{} bytes; use less text",
                     places);
  ids_.assign(places, kBetween);
  sizes_.assign(places, 1);
  piece_.assign(places, 0);
  std::size_t at = 1;
  for (const auto& [piece, count] : pieces) {
    for (const char byte : piece) {
      ids_[at] = id_of_byte[static_cast<unsigned char>(byte)];
      piece_[at++] = static_cast<std::uint32_t>(counts_.size());
    }
    ++at;
    counts_.push_back(count);
  }
  for (std::size_t i = 1; i + 1 < places; ++i) {
    if (ids_[i] >= 0 && ids_[i + 1] >= 0) add(ids_[i], ids_[i + 1], static_cast<Position>(i), counts_[piece_[i]]);
  }
  queue_grown();
}

std::int32_t Trainer::token_of(const std::string& bytes) {
  if (const std::int32_t* const known = known_.find(bytes)) return *known;
  const auto id = static_cast<std::int32_t>(tokens_.size());
  known_.at_or_insert(tokens_.emplace_back(bytes), id);
  return id;
}

Pair& Trainer::pair_of(std::int32_t left, std::int32_t right) {
  const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  return pairs_.try_emplace(key, Pair{left, right}).first->second;
}

// `count` more occurrences of a pair, at this position.
void Trainer::add(std::int32_t left, std::int32_t right, Position at, std::int64_t count) {
  Pair& pair = pair_of(left, right);
  pair.count += count;
  pair.positions.push_back(at);
  if (!pair.queued) grown_.push_back(&pair);
  pair.queued = true;
}

void Trainer::queue_grown() {
  for (Pair* const pair : grown_) {
    pair->queued = false;
    if (pair->count >= kMinPairs) queue_.push({pair->count, pair->left, pair->right, pair});
  }
  grown_.clear();
}

// Merges the pair at a position and adapts the counts of the pairs around it, as Hugging Face's trainer does: in "aaa",
// the pair (a, a) counts twice.
void Trainer::merge_at(Position at, const Pair& pair, std::int32_t merged) {
  const Position second = at + sizes_[at], after = second + sizes_[second];
  const std::int64_t count = counts_[piece_[at]];
  const std::uint32_t size = after - at;
  if (ids_[at - 1] != kBetween) {
    const Position before = at - sizes_[at - 1];
    pair_of(ids_[before], pair.left).count -= count;
    add(ids_[before], merged, before, count);
  }
  if (ids_[after] != kBetween) {
    pair_of(pair.right, ids_[after]).count -= count;
    add(merged, ids_[after], at, count);
  }
  ids_[at] = merged;
  ids_[second] = kInside;
  sizes_[at] = sizes_[after - 1] = size;
}

void Trainer::merge(Pair& pair, std::int32_t merged) {
  std::vector<Position> positions;
  positions.swap(pair.positions);
  std::ranges::sort(positions);  // of overlapping occurrences, as in "aaa", the first is merged
  for (const Position at : positions) {
    if (ids_[at] == pair.left && ids_[at + sizes_[at]] == pair.right) merge_at(at, pair, merged);
  }
  pair.count = 0;
  queue_grown();
}

std::vector<BpeMerge> Trainer::train(std::int64_t max_tokens) {
  std::vector<BpeMerge> merges;
  while (std::ssize(tokens_) < max_tokens && !queue_.empty()) {
    const Queued top = queue_.top();
    queue_.pop();
    if (top.count != top.pair->count) {
      if (top.pair->count >= kMinPairs) queue_.push({top.pair->count, top.left, top.right, top.pair});
      continue;
    }
    const std::string bytes =
        tokens_[static_cast<std::size_t>(top.left)] + tokens_[static_cast<std::size_t>(top.right)];
    merges.push_back({top.left, top.right, token_of(bytes)});
    merge(*top.pair, merges.back().merged);
  }
  return merges;
}

// Parts of the texts, cut where the pre-tokenizer certainly cuts.
std::vector<std::string_view> parts_of(std::span<const std::string_view> texts, const PreTokenizer& pre_tokenizer) {
  constexpr std::size_t kPartBytes = 1 << 20;  // large enough that parts cost nothing, small enough for all threads
  std::vector<std::string_view> parts;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t size = pre_tokenizer.next_cut(text, std::min(kPartBytes, text.size()));
      parts.push_back(text.substr(0, size));
      text.remove_prefix(size);
    }
  }
  return parts;
}

}  // namespace

PieceCounts count_pieces(std::span<const std::string_view> texts, const PreTokenizer& pre_tokenizer) {
  const std::vector<std::string_view> parts = parts_of(texts, pre_tokenizer);
  std::vector<PieceMap<std::int64_t>> counts(
      static_cast<std::size_t>(std::max<std::int64_t>(1, workers(std::ssize(parts)))));
  parallel_for_throwing(std::ssize(parts), kMinParallelWork, [&](std::int64_t i, std::int64_t worker) {
    pre_tokenizer.split(parts[static_cast<std::size_t>(i)], [&](std::string_view piece) {
      ++counts[static_cast<std::size_t>(worker)].at_or_insert(piece);
    });
  });
  for (std::size_t i = 1; i < counts.size(); ++i) {
    counts[i].each([&](std::string_view piece, std::int64_t count) { counts[0].at_or_insert(piece) += count; });
    counts[i] = {};
  }
  PieceCounts pieces;
  pieces.reserve(counts[0].size());
  counts[0].each([&](std::string_view piece, std::int64_t count) { pieces.emplace_back(piece, count); });
  return pieces;
}

std::vector<BpeMerge> train_bpe(const PieceCounts& pieces, std::int64_t max_tokens) {
  return Trainer(pieces).train(max_tokens);
}

}  // namespace maki
