#include "train/loop/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "autograd/core/check.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr std::size_t kMaxNgramWords = 4;  // as in BLEU-4 (Papineni et al. 2002)
using Words = std::vector<std::string_view>;
using NgramCounts = std::map<Words, std::int64_t>;

// White space in Unicode 15, and the four ASCII separators that Python's str.split() counts as well.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Words split_words(std::string_view line) {
  Words words;
  bool in_word = false;
  while (!line.empty()) {
    const char* const begin = line.data();
    const bool space = is_space(next_code_point(line));
    const auto size = static_cast<std::size_t>(line.data() - begin);
    if (!space && in_word) {
      words.back() = {words.back().data(), words.back().size() + size};
    } else if (!space) {
      words.emplace_back(begin, size);
    }
    in_word = !space;
  }
  return words;
}

NgramCounts count_ngrams(const Words& words, std::size_t order) {
  NgramCounts counts;
  for (std::size_t i = 0; i + order <= words.size(); ++i) {
    const auto ngram = std::span(words).subspan(i, order);
    ++counts[Words(ngram.begin(), ngram.end())];
  }
  return counts;
}

// An n-gram counts as often as it occurs in both.
std::int64_t matches(const NgramCounts& output, const NgramCounts& reference) {
  std::int64_t sum = 0;
  for (const auto& [ngram, count] : output) {
    const auto found = reference.find(ngram);
    if (found != reference.end()) sum += std::min(count, found->second);
  }
  return sum;
}

// The geometric mean of the precisions, which are smoothed, times the brevity penalty. Without any n-gram of an order,
// as in outputs of fewer than four words, the score is 0.
void finish(Bleu& bleu, std::span<const std::int64_t> correct, std::span<const std::int64_t> total) {
  const auto words = static_cast<double>(bleu.output_words), wanted = static_cast<double>(bleu.reference_words);
  bleu.brevity_penalty = words >= wanted ? 1 : std::exp(1 - wanted / words);
  double logs = 0, smoothing = 1;
  for (std::size_t i = 0; i < kMaxNgramWords; ++i) {
    if (total[i] == 0) return;
    if (correct[i] == 0) smoothing *= 2;
    const double hits = correct[i] > 0 ? static_cast<double>(correct[i]) : 1 / smoothing;
    const double precision = hits / static_cast<double>(total[i]);
    bleu.precisions[i] = 100 * precision;
    logs += std::log(precision) / kMaxNgramWords;  // at most 0, unlike that of a percentage, so no score is above 100
  }
  if (correct[0] > 0) bleu.score = 100 * bleu.brevity_penalty * std::exp(logs);
}

}  // namespace

Bleu corpus_bleu(const std::vector<std::string_view>& outputs, const std::vector<std::string_view>& references) {
  check(!outputs.empty() && outputs.size() == references.size(),
        "bleu: needs at least one line, and as many references as outputs; got {} and {}", references.size(),
        outputs.size());
  Bleu bleu;
  std::int64_t correct[kMaxNgramWords] = {}, total[kMaxNgramWords] = {};
  for (std::size_t line = 0; line < outputs.size(); ++line) {
    const Words output = split_words(outputs[line]), reference = split_words(references[line]);
    bleu.output_words += static_cast<std::int64_t>(output.size());
    bleu.reference_words += static_cast<std::int64_t>(reference.size());
    for (std::size_t order = 1; order <= kMaxNgramWords; ++order) {
      correct[order - 1] += matches(count_ngrams(output, order), count_ngrams(reference, order));
      total[order - 1] +=
          std::max<std::int64_t>(0, static_cast<std::int64_t>(output.size()) - static_cast<std::int64_t>(order) + 1);
    }
  }
  finish(bleu, correct, total);
  return bleu;
}

}  // namespace maki
