// The n-grams of one length and what is counted about them: the building block of NgramModel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace maki {

inline constexpr std::uint32_t kNoNgram = UINT32_MAX;

/// The n-grams of one length. An n-gram is identified by its context, an entry of the level of n-grams that are one
/// token shorter, and its last token. The only context of the first level is 0, the empty one.
class NgramLevel {
 public:
  NgramLevel();

  /// The entry of an n-gram, or kNoNgram, as for a context that is kNoNgram.
  std::uint32_t find(std::uint32_t context, std::int32_t token) const;
  /// The entry of an n-gram; a new one is added with count 0, unless its context is kNoNgram.
  std::uint32_t find_or_add(std::uint32_t context, std::int32_t token);
  /// Has the memory that find_or_add() of this n-gram needs first loaded into the cache. Has no other effect.
  void prefetch(std::uint32_t context, std::int32_t token) const;
  void increment(std::uint32_t ngram);
  std::uint32_t count(std::uint32_t ngram) const { return ngrams_[ngram].count; }
  std::size_t size() const { return ngrams_.size(); }

  /// N-grams counted once, twice, more often: each class has its own discount.
  static constexpr int kDiscountClasses = 3;
  struct Ngram {
    std::uint32_t context, token, count;
  };
  /// Requires: ngram < size().
  const Ngram& ngram(std::uint32_t ngram) const { return ngrams_[ngram]; }
  const std::array<double, kDiscountClasses>& discounts() const { return discounts_; }

  /// Estimates the discounts from the numbers of n-grams that were counted once, twice, three and four times. One for
  /// which too few were counted stays as it is.
  void fit_discounts();
  /// (count − discount + weight · lower) / total, where weight is the sum of all discounts of the context; or `lower`
  /// if nothing follows the context. Sums to 1 over all tokens if `lower` does.
  double interpolate(std::uint32_t context, std::int32_t token, double lower) const;

 private:
  // What follows a context: the sum of the counts, and how many tokens are of each class.
  struct Followers {
    std::uint32_t total = 0;
    std::array<std::uint32_t, kDiscountClasses> kinds{};
  };

  std::size_t first_slot(std::uint32_t context, std::uint32_t token) const;
  std::size_t slot(std::uint32_t context, std::uint32_t token) const;
  void grow();

  std::vector<std::uint32_t> slots_;  // open addressing; a power of two of them, at most 5/8 in use
  std::vector<Ngram> ngrams_;
  std::vector<Followers> followers_;                              // by context
  std::array<std::int64_t, 5> with_count_{};                      // n-grams with a count of 1 … 4 ([0] is not used)
  std::array<double, kDiscountClasses> discounts_{0.5, 0.75, 1};  // until they are fitted
};

}  // namespace maki
