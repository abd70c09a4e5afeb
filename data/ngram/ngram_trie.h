// The n-grams that an NgramModel has counted, as a tree that is not counted further: it predicts all tokens at once, in
// a time that hardly depends on the size of the vocabulary, and can be stored.
//
// Thread safety: immutable; may be used by several threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/ngram/ngram_model.h"

namespace maki {

/// What is left out of the counts of one level.
class LessCounted {
 public:
  struct Entry {
    std::uint32_t ngram, less;  ///< the number of an n-gram, and how much less it was counted
  };
  /// `less`: by number of the n-gram.
  explicit LessCounted(std::span<const std::uint32_t> less = {});

  std::span<const Entry> entries() const { return entries_; }  ///< by ascending number
  /// At most the place of the first entry from this n-gram on, and near it. Requires: the n-gram is of the level.
  std::size_t near(std::uint32_t ngram) const { return first_[ngram / kStride]; }

 private:
  static constexpr std::uint32_t kStride = 64;  // n-grams

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> first_;  // [i]: the place of the first entry from n-gram kStride · i on
};

/// The counts of a part of the text, which are left out of those of the whole text (HeldOutCounts).
struct HeldOutPart {
  std::vector<LessCounted> levels;  ///< of n-grams of 1, 2, … tokens
  std::vector<double> unigrams;     ///< the probability of each token without a context
  std::vector<float> log_unigrams;  ///< its logarithm
};

class NgramTrie {
 public:
  /// NgramModel::restart() is that of the model. The saved form does not contain it: n-grams that continue beyond such
  /// a token were never counted, so a context that does predicts the same. It matters for what is held out.
  explicit NgramTrie(const NgramModel& model);

  std::int64_t vocab_size() const { return static_cast<std::int64_t>(unigrams_.size()); }
  int order() const { return static_cast<int>(levels_.size()); }

  /// NgramModel::next().
  NgramContext next(const NgramContext& context, std::int32_t token) const;
  /// The logarithm of NgramModel::probability(context, token) for every token of the vocabulary. With a part that is
  /// held out, that of a model that has not counted this part, with the same discounts.
  /// Requires: out.size() == vocab_size().
  void log_probabilities(const NgramContext& context, std::span<float> out,
                         const HeldOutPart* held_out = nullptr) const;

  /// The logarithm for one token alone, which takes less time.
  double log_probability(const NgramContext& context, std::int32_t token) const;
  /// NgramModel::evaluate(), with the default limit of tokens.
  NgramLoss evaluate(TokenSpan text, const StopRequest& stop = {}) const;

  /// Bytes from which load_ngram_trie() restores the same tree.
  std::string save() const;

  /// The n-grams of k + 1 tokens, in the order of their contexts, which are numbers of n-grams of k tokens, and of
  /// their last tokens.
  struct Level {
    std::vector<std::uint32_t> tokens, counts;
    std::vector<std::uint32_t> begin;  ///< the first n-gram of each context, and as last element the number of n-grams
    std::array<double, NgramLevel::kDiscountClasses> discounts{};

    /// The n-gram, or kNoNgram.
    std::uint32_t find(std::uint32_t context, std::int32_t token) const;
    /// How much of a count is left to the shorter contexts; 0 for a count of 0.
    double discount(std::uint32_t count) const {
      return count == 0 ? 0 : discounts[std::min<std::uint32_t>(count, NgramLevel::kDiscountClasses) - 1];
    }
  };
  const std::vector<Level>& levels() const { return levels_; }
  /// The probability of each token without a context, if the counts of the first level are those given. Requires: as
  /// many as it has n-grams, in its order.
  std::vector<double> unigrams(std::span<const std::uint32_t> counts) const;

 private:
  friend NgramTrie load_ngram_trie(std::string_view saved, std::int64_t vocab_size);
  NgramTrie() = default;
  void finish(std::size_t vocab_size);

  std::optional<std::int32_t> restart_;
  std::vector<Level> levels_;
  std::vector<double> unigrams_;
  std::vector<float> log_unigrams_;
};

/// Restores a tree from the bytes of save(). Throws CorpusError for any other bytes, and if the tree has another
/// vocabulary than `vocab_size`; then no memory is taken for it. The tree has no restart token: see the constructor.
NgramTrie load_ngram_trie(std::string_view saved, std::int64_t vocab_size);

}  // namespace maki
