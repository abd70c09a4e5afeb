#include "data/ngram/ngram_trie.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace maki {
namespace {

std::vector<float> logarithms(const std::vector<double>& values) {
  std::vector<float> logs(values.size());
  std::ranges::transform(values, logs.begin(), [](double value) { return static_cast<float>(std::log(value)); });
  return logs;
}

// The n-grams of a level of a model, sorted by context and token, where context c has become places[c]. Returns the new
// numbers of the n-grams.
std::vector<std::uint32_t> sort_level(const NgramLevel& from, const std::vector<std::uint32_t>& places,
                                      NgramTrie::Level& to) {
  std::vector<std::uint32_t> order(from.size()), numbers(from.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t i) {
    return (std::uint64_t{places[from.ngram(i).context]} << 32) | from.ngram(i).token;
  });
  to.begin.assign(places.size() + 1, 0);
  to.tokens.reserve(order.size());
  to.counts.reserve(order.size());
  for (const std::uint32_t i : order) {
    const NgramLevel::Ngram& ngram = from.ngram(i);
    numbers[i] = static_cast<std::uint32_t>(to.tokens.size());
    to.tokens.push_back(ngram.token);
    to.counts.push_back(ngram.count);
    ++to.begin[places[ngram.context] + 1];
  }
  std::partial_sum(to.begin.begin(), to.begin.end(), to.begin.begin());
  to.discounts = from.discounts();
  return numbers;
}

// Reads the counts of the followers of a context in order, less those that are held out.
class Counts {
 public:
  Counts(const NgramTrie::Level& level, const LessCounted* less, std::uint32_t first) : level_(level), less_(less) {
    if (less != nullptr)
      next_ = static_cast<std::size_t>(std::ranges::lower_bound(less->ngrams, first) - less->ngrams.begin());
  }
  /// Requires: every n-gram from `first` on is asked for once, in ascending order.
  std::uint32_t of(std::uint32_t ngram) {
    const std::uint32_t all = level_.counts[ngram];
    if (less_ == nullptr || next_ == less_->ngrams.size() || less_->ngrams[next_] != ngram) return all;
    return all - less_->less[next_++];
  }

 private:
  const NgramTrie::Level& level_;
  const LessCounted* less_;
  std::size_t next_ = 0;
};

}  // namespace

std::uint32_t NgramTrie::Level::find(std::uint32_t context, std::int32_t token) const {
  if (context == kNoNgram) return kNoNgram;
  const auto first = tokens.begin() + begin[context], last = tokens.begin() + begin[context + 1];
  const auto found = std::lower_bound(first, last, static_cast<std::uint32_t>(token));
  if (found == last || *found != static_cast<std::uint32_t>(token)) return kNoNgram;
  return static_cast<std::uint32_t>(found - tokens.begin());
}

NgramTrie::NgramTrie(const NgramModel& model) : restart_(model.restart()) {
  std::vector<std::uint32_t> places{0};
  for (int k = 0; k < model.order(); ++k) places = sort_level(model.level(k), places, levels_.emplace_back());
  finish(static_cast<std::size_t>(model.vocab_size()));
}

void NgramTrie::finish(std::size_t vocab_size) {
  unigrams_.resize(vocab_size);
  unigrams_ = unigrams(levels_[0].counts);
  log_unigrams_ = logarithms(unigrams_);
}

std::vector<double> NgramTrie::unigrams(std::span<const std::uint32_t> counts) const {
  const Level& level = levels_[0];
  const double uniform = 1 / static_cast<double>(unigrams_.size());
  double total = 0, weight = 0;
  for (const std::uint32_t count : counts) {
    total += count;
    weight += level.discount(count);
  }
  if (total == 0) return std::vector<double>(unigrams_.size(), uniform);
  std::vector<double> p(unigrams_.size(), weight / total * uniform);
  for (std::size_t i = 0; i < counts.size(); ++i) p[level.tokens[i]] += (counts[i] - level.discount(counts[i])) / total;
  return p;
}

NgramContext NgramTrie::next(const NgramContext& context, std::int32_t token) const {
  if (token == restart_ && context.length > 0) return this->next(NgramContext{}, token);
  NgramContext next;
  next.length = std::min(context.length + 1, order() - 1);
  for (std::size_t k = 0; k < static_cast<std::size_t>(next.length); ++k)
    next.last[k + 1] = levels_[k].find(context.last[k], token);
  return next;
}

// A token that has never followed the last token has the probability that all longer contexts leave to the unigrams,
// which is the same factor for all of them. So only the followers of the last token are computed one by one.
void NgramTrie::log_probabilities(const NgramContext& context, std::span<float> out,
                                  const HeldOutPart* held_out) const {
  const std::vector<double>& unigrams = held_out != nullptr ? held_out->unigrams : unigrams_;
  const std::vector<float>& log_unigrams = held_out != nullptr ? held_out->log_unigrams : log_unigrams_;
  thread_local std::vector<double> p;
  p.resize(unigrams.size());
  std::span<const std::uint32_t> followers;
  double left = 1;  // the product of the weights of the shorter contexts
  for (int n = 1; n <= context.length && context.last[static_cast<std::size_t>(n)] != kNoNgram; ++n) {
    const auto k = static_cast<std::size_t>(n);
    const Level& level = levels_[k];
    const LessCounted* less = held_out != nullptr ? &held_out->levels[k] : nullptr;
    const std::uint32_t begin = level.begin[context.last[k]], end = level.begin[context.last[k] + 1];
    double total = 0, weight = 0;
    Counts sums(level, less, begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t count = sums.of(i);
      total += count;
      weight += level.discount(count);
    }
    if (total == 0) continue;
    const double scale = weight / total;
    left *= scale;
    if (followers.empty()) {
      followers = std::span(level.tokens).subspan(begin, end - begin);
      for (const std::uint32_t token : followers) p[token] = unigrams[token];
    }
    for (const std::uint32_t token : followers) p[token] *= scale;
    Counts counts(level, less, begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t count = counts.of(i);
      p[level.tokens[i]] += (count - level.discount(count)) / total;
    }
  }
  const auto shift = static_cast<float>(std::log(left));
  std::ranges::transform(log_unigrams, out.begin(), [shift](float value) { return value + shift; });
  for (const std::uint32_t token : followers) out[token] = std::log(static_cast<float>(p[token]));
}

double NgramTrie::log_probability(const NgramContext& context, std::int32_t token) const {
  double p = unigrams_[static_cast<std::size_t>(token)];
  for (int n = 1; n <= context.length && context.last[static_cast<std::size_t>(n)] != kNoNgram; ++n) {
    const auto k = static_cast<std::size_t>(n);
    const Level& level = levels_[k];
    double total = 0, weight = 0, kept = 0;
    for (std::uint32_t i = level.begin[context.last[k]]; i < level.begin[context.last[k] + 1]; ++i) {
      const double discount = level.discount(level.counts[i]);
      total += level.counts[i];
      weight += discount;
      if (level.tokens[i] == static_cast<std::uint32_t>(token)) kept = level.counts[i] - discount;
    }
    if (total > 0) p = (kept + weight * p) / total;
  }
  return std::log(p);
}

NgramLoss NgramTrie::evaluate(TokenSpan text, const StopRequest& stop) const {
  return evaluate_ngrams(
      text, order(), NgramLimits().tokens, stop,
      [this](const NgramContext& context, std::int32_t token) { return next(context, token); },
      [this](const NgramContext& context, std::int32_t token) { return log_probability(context, token); });
}

}  // namespace maki
