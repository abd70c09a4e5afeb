#include "data/ngram/held_out_counts.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/parallel_throwing.h"

namespace maki {
namespace {

using Level = NgramTrie::Level;
using Numbers = std::vector<std::uint32_t>;

// For each n-gram that its model has counted: the n-gram without its first token, and how often it is in the text.
struct Occurrences {
  std::vector<Numbers> suffixes;  // by level; not for single tokens
  std::vector<Numbers> counts;
};

// The longest n-grams are counted whenever they occur, shorter ones by how many tokens precede them and at beginnings
// of texts (NgramModel::read()).
Occurrences occurrences(const std::vector<Level>& levels) {
  Occurrences all;
  const std::size_t order = levels.size();
  all.suffixes.resize(order);
  for (std::size_t k = 0; k < order; ++k) all.counts.push_back(levels[k].counts);
  for (std::size_t k = 1; k < order; ++k) {
    const Level& level = levels[k];
    all.suffixes[k].resize(level.tokens.size());
    for (std::uint32_t c = 0; c + 1 < level.begin.size(); ++c) {
      const std::uint32_t shorter = k == 1 ? 0 : all.suffixes[k - 1][c];
      for (std::uint32_t i = level.begin[c]; i < level.begin[c + 1]; ++i)
        all.suffixes[k][i] = levels[k - 1].find(shorter, static_cast<std::int32_t>(level.tokens[i]));
    }
  }
  for (std::size_t k = order - 1; k > 0; --k) {
    for (std::size_t i = 0; i < levels[k].counts.size(); ++i) {
      const std::uint32_t suffix = all.suffixes[k][i];
      if (levels[k].counts[i] > 0 && suffix != kNoNgram) all.counts[k - 1][suffix] += all.counts[k][i] - 1;
    }
  }
  return all;
}

// Adds how often each n-gram ends in a range of tokens: those with as many tokens before them as the model reads.
void add_occurrences(const NgramTrie& trie, TokenSpan text, TokenRange range, std::vector<Numbers>& found) {
  const std::span<const std::int64_t> joins = text.joins();
  auto join = std::ranges::upper_bound(joins, range.begin);
  const std::int64_t piece = join == joins.begin() ? 0 : *std::prev(join);
  const std::int64_t first = std::max(piece, range.begin - (trie.order() - 1));
  const std::vector<std::int32_t> ids =
      text.ids(static_cast<std::size_t>(first), static_cast<std::size_t>(range.end - first));
  NgramContext context;
  for (std::int64_t i = first; i < range.end; ++i) {
    if (join != joins.end() && *join == i) {
      context = {};
      ++join;
    }
    const std::int32_t id = ids[static_cast<std::size_t>(i - first)];
    const auto longest = static_cast<std::size_t>(context.length);
    if (i >= range.begin) {
      const std::uint32_t ngram = trie.levels()[longest].find(context.last[longest], id);
      if (ngram != kNoNgram) ++found[longest][ngram];
    }
    context = trie.next(context, id);
  }
}

// How often each n-gram ends in the tokens of a part, in the ranges that were counted.
std::vector<Numbers> occurrences_in(const NgramTrie& trie, TokenSpan text, const std::vector<TokenRange>& counted,
                                    TokenRange part) {
  std::vector<Numbers> found;
  for (const Level& level : trie.levels()) found.emplace_back(level.tokens.size(), 0);
  for (const TokenRange& range : counted) {
    const TokenRange common{std::max(range.begin, part.begin), std::min(range.end, part.end)};
    if (common.begin < common.end) add_occurrences(trie, text, common, found);
  }
  return found;
}

HeldOutPart held_out(const NgramTrie& trie, const Occurrences& all, std::vector<Numbers> inside) {
  const std::vector<Level>& levels = trie.levels();
  HeldOutPart part;
  part.levels.resize(levels.size());
  Numbers less = inside.back();  // of the level k
  for (std::size_t k = levels.size() - 1;; --k) {
    for (std::size_t i = 0; i < less.size(); ++i) less[i] = std::min(less[i], levels[k].counts[i]);
    part.levels[k] = LessCounted(less);
    if (k == 0) break;
    // An n-gram that is nowhere else no longer precedes its suffix. Those at beginnings of texts have no longer n-gram.
    less = inside[k - 1];
    for (std::uint32_t i = 0; i < inside[k].size(); ++i) {
      const std::uint32_t suffix = all.suffixes[k][i];
      if (inside[k][i] == 0 || suffix == kNoNgram) continue;
      inside[k - 1][suffix] += inside[k][i];
      if (inside[k][i] >= all.counts[k][i]) ++less[suffix];
    }
  }
  Numbers counts = levels[0].counts;
  for (const auto& [ngram, count] : part.levels[0].entries()) counts[ngram] -= count;
  part.unigrams = trie.unigrams(counts);
  for (const double p : part.unigrams) part.log_unigrams.push_back(static_cast<float>(std::log(p)));
  return part;
}

}  // namespace

HeldOutCounts::HeldOutCounts(const NgramTrie& trie, TokenSpan text, const std::vector<TokenRange>& counted)
    : tokens_(static_cast<std::int64_t>(text.size())), parts_(static_cast<std::size_t>(kHeldOutParts)) {
  // A rough guess, in elementary operations: searches in every level, mostly for data that is not in the cache.
  constexpr std::int64_t kWorkPerToken = 1000;
  const Occurrences all = occurrences(trie.levels());
  const std::int64_t work = std::max<std::int64_t>(1, tokens_ / kHeldOutParts) * kWorkPerToken;
  parallel_for_throwing(kHeldOutParts, work, [&](std::int64_t part) {
    parts_[static_cast<std::size_t>(part)] =
        held_out(trie, all, occurrences_in(trie, text, counted, held_out_range(part, tokens_)));
  });
}

const HeldOutPart& HeldOutCounts::part_of(std::int64_t position) const {
  return parts_[static_cast<std::size_t>(held_out_part(position, tokens_))];
}

}  // namespace maki
