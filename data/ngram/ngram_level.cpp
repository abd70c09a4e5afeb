#include "data/ngram/ngram_level.h"

#include <algorithm>

namespace maki {
namespace {

constexpr std::size_t kInitialSlots = 64;  // any power of two works: their number is doubled as n-grams are added
// Discounts are at least this, far below usual ones (0.5 to 1.5), so that every token has a positive probability in
// every context.
constexpr double kMinDiscount = 0.01;

}  // namespace

NgramLevel::NgramLevel() : slots_(kInitialSlots, kNoNgram) {}

// Where the search for an n-gram begins. Multiplication by a large odd constant moves the differences to the upper
// bits; they are folded down, because the slot is taken from the middle ones.
std::size_t NgramLevel::first_slot(std::uint32_t context, std::uint32_t token) const {
  std::uint64_t hash = ((std::uint64_t{context} << 32) | token) * 0x9E3779B97F4A7C15;
  hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93;
  return static_cast<std::size_t>(hash >> 32) & (slots_.size() - 1);
}

void NgramLevel::prefetch(std::uint32_t context, std::int32_t token) const {
  __builtin_prefetch(&slots_[first_slot(context, static_cast<std::uint32_t>(token))]);
}

// Where the n-gram is or would be added.
std::size_t NgramLevel::slot(std::uint32_t context, std::uint32_t token) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = first_slot(context, token);; i = (i + 1) & mask) {
    const std::uint32_t at = slots_[i];
    if (at == kNoNgram || (ngrams_[at].context == context && ngrams_[at].token == token)) return i;
  }
}

std::uint32_t NgramLevel::find(std::uint32_t context, std::int32_t token) const {
  return context == kNoNgram ? kNoNgram : slots_[slot(context, static_cast<std::uint32_t>(token))];
}

std::uint32_t NgramLevel::find_or_add(std::uint32_t context, std::int32_t token) {
  if (context == kNoNgram) return kNoNgram;
  std::size_t at = slot(context, static_cast<std::uint32_t>(token));
  if (slots_[at] != kNoNgram) return slots_[at];
  if (8 * (ngrams_.size() + 1) > 5 * slots_.size()) {
    grow();
    at = slot(context, static_cast<std::uint32_t>(token));
  }
  slots_[at] = static_cast<std::uint32_t>(ngrams_.size());
  ngrams_.push_back({context, static_cast<std::uint32_t>(token), 0});
  return slots_[at];
}

void NgramLevel::grow() {
  slots_.assign(2 * slots_.size(), kNoNgram);
  for (std::size_t i = 0; i < ngrams_.size(); ++i)
    slots_[slot(ngrams_[i].context, ngrams_[i].token)] = static_cast<std::uint32_t>(i);
}

void NgramLevel::increment(std::uint32_t ngram) {
  Ngram& found = ngrams_[ngram];
  if (found.context >= followers_.size()) followers_.resize(found.context + 1);
  Followers& followers = followers_[found.context];
  if (found.count > 0) --followers.kinds[std::min<std::uint32_t>(found.count, kDiscountClasses) - 1];
  if (found.count > 0 && found.count < with_count_.size()) --with_count_[found.count];
  ++found.count;
  ++followers.total;
  ++followers.kinds[std::min<std::uint32_t>(found.count, kDiscountClasses) - 1];
  if (found.count < with_count_.size()) ++with_count_[found.count];
}

// Chen and Goodman 1999, equation 26: D_j = j − (j + 1) Y n_{j+1} / n_j with Y = n_1 / (n_1 + 2 n_2), where n_j is the
// number of n-grams that were counted j times. A text that is too short for an estimate leaves the discount as it is.
void NgramLevel::fit_discounts() {
  const auto n = [this](int count) { return static_cast<double>(with_count_[static_cast<std::size_t>(count)]); };
  if (n(1) == 0) return;
  const double y = n(1) / (n(1) + 2 * n(2));
  for (int j = 1; j <= kDiscountClasses; ++j) {
    if (n(j) == 0 || n(j + 1) == 0) continue;
    discounts_[static_cast<std::size_t>(j - 1)] =
        std::clamp(j - (j + 1) * y * n(j + 1) / n(j), kMinDiscount, double(j));
  }
}

double NgramLevel::interpolate(std::uint32_t context, std::int32_t token, double lower) const {
  if (context >= followers_.size() || followers_[context].total == 0) return lower;
  const Followers& followers = followers_[context];
  double weight = 0;
  for (std::size_t j = 0; j < kDiscountClasses; ++j) weight += discounts_[j] * followers.kinds[j];
  const std::uint32_t ngram = find(context, token), count = ngram == kNoNgram ? 0 : ngrams_[ngram].count;
  const double kept = count == 0 ? 0 : count - discounts_[std::min<std::uint32_t>(count, kDiscountClasses) - 1];
  return (kept + weight * lower) / followers.total;
}

}  // namespace maki
