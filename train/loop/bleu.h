// BLEU-4, the usual measure of translation quality: Papineni et al. 2002.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace maki {

struct Bleu {
  double score = 0;           ///< 0 to 100
  double precisions[4] = {};  ///< of n-grams of 1 to 4 words, in percent, smoothed; 0: no output has so many words
  double brevity_penalty = 1;
  std::int64_t output_words = 0, reference_words = 0;
};

/// The score of a whole corpus with one reference per line, as sacrebleu computes it with `--tokenize none` (Post 2018,
/// arXiv:1804.08771): words are separated by white space, and upper and lower case differ. A precision of 0 counts as
/// 1 / (2ᵏ · n-grams), where k is the number of zeros so far, with this one (smoothing `exp`). The score is 0 if no
/// word is right, or no output has four words. Requires: the lines are well-formed UTF-8. Throws Error unless there are
/// as many references as outputs, and at least one.
Bleu corpus_bleu(const std::vector<std::string_view>& outputs, const std::vector<std::string_view>& references);

}  // namespace maki
