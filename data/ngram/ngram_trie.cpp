#include "data/ngram/ngram_trie.h"

#include <algorithm>
#include <array>
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

// Reads numbers so that they are in the cache when they are needed. With __builtin_prefetch() instead, a prior
// takes 1.3 times as long.
void load(const std::uint32_t* first, std::size_t count) {
  constexpr std::size_t kPerLine = 64 / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count; i += kPerLine)
    static_cast<void>(*static_cast<const volatile std::uint32_t*>(first + i));
}

// What follows a context in one level.
struct Followers {
  const NgramTrie::Level* level;
  std::uint32_t begin, end;  // numbers of n-grams
  const LessCounted* held_out;
  std::size_t entry = 0;  // near those of what is held out

  std::size_t size() const { return end - begin; }
  const std::uint32_t* tokens() const { return level->tokens.data() + begin; }
  void find_held_out() { entry = held_out != nullptr && begin < end ? held_out->near(begin) : 0; }
  void load_all() const {
    load(tokens(), size());
    load(level->counts.data() + begin, size());
    if (held_out != nullptr && entry < held_out->entries().size()) load(&held_out->entries()[entry].ngram, 1);
  }
  // counts ← those of the text without what is held out.
  void read_counts(std::vector<std::uint32_t>& counts) const {
    counts.assign(level->counts.begin() + begin, level->counts.begin() + end);
    if (held_out == nullptr) return;
    const std::span<const LessCounted::Entry> entries = held_out->entries();
    std::size_t i = entry;
    while (i < entries.size() && entries[i].ngram < begin) ++i;
    for (; i < entries.size() && entries[i].ngram < end; ++i) counts[entries[i].ngram - begin] -= entries[i].less;
  }
};

// The followers of the last token and their probabilities, to which contexts are added from the shortest on.
struct Mixture {
  std::span<const std::uint32_t> tokens;
  std::vector<double> p;
  std::vector<std::uint32_t> counts, places;  // of the followers of one context; of each token among `tokens`
  double left = 1;                            // the product of the weights of the shorter contexts

  void begin(std::size_t vocab_size) {
    tokens = {};
    places.resize(vocab_size);
    left = 1;
  }
  // p ← (count − discount + weight · p) / total for what follows a longer context.
  void add(const Followers& f, const std::vector<double>& unigrams) {
    f.read_counts(counts);
    double total = 0, weight = 0;
    for (const std::uint32_t count : counts) {
      total += count;
      weight += f.level->discount(count);
    }
    if (total == 0) return;
    const double scale = weight / total;
    left *= scale;
    const auto kept = [&](std::size_t i) { return (counts[i] - f.level->discount(counts[i])) / total; };
    if (tokens.empty()) {
      tokens = {f.tokens(), f.size()};
      p.resize(tokens.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        p[i] = unigrams[tokens[i]] * scale + kept(i);
        places[tokens[i]] = static_cast<std::uint32_t>(i);
      }
      return;
    }
    for (double& each : p) each *= scale;
    for (std::size_t i = 0; i < f.size(); ++i) {
      const std::uint32_t token = f.tokens()[i], place = places[token];  // of another token if the tree is damaged
      if (place < p.size() && tokens[place] == token) p[place] += kept(i);
    }
  }
};

}  // namespace

LessCounted::LessCounted(std::span<const std::uint32_t> less) {
  for (std::uint32_t i = 0; i < less.size(); ++i) {
    if (i % kStride == 0) first_.push_back(static_cast<std::uint32_t>(entries_.size()));
    if (less[i] > 0) entries_.push_back({i, less[i]});
  }
}

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
// which is the same factor for all of them. So only the followers of the last token are computed one by one; what
// follows a longer context is among them.
void NgramTrie::log_probabilities(const NgramContext& context, std::span<float> out,
                                  const HeldOutPart* held_out) const {
  // What all contexts need is read before anything is computed, and in three steps: in each the processor waits for all
  // of them together.
  std::array<Followers, kMaxCountedNgram> all;
  std::size_t known = 0;
  for (std::size_t n = 1; n <= static_cast<std::size_t>(context.length) && context.last[n] != kNoNgram; ++n) {
    const Level& level = levels_[n];
    const std::uint32_t* const begin = &level.begin[context.last[n]];
    all[known++] = {&level, begin[0], begin[1], held_out != nullptr ? &held_out->levels[n] : nullptr};
  }
  const std::span<Followers> contexts = std::span(all).first(known);
  for (Followers& f : contexts) f.find_held_out();
  for (const Followers& f : contexts) f.load_all();

  thread_local Mixture mixture;
  mixture.begin(unigrams_.size());
  for (const Followers& f : contexts) mixture.add(f, held_out != nullptr ? held_out->unigrams : unigrams_);
  const auto shift = static_cast<float>(std::log(mixture.left));
  std::ranges::transform(held_out != nullptr ? held_out->log_unigrams : log_unigrams_, out.begin(),
                         [shift](float value) { return value + shift; });
  for (std::size_t i = 0; i < mixture.tokens.size(); ++i)
    out[mixture.tokens[i]] = std::log(static_cast<float>(mixture.p[i]));
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
