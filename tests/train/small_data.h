// A dataset of a few hundred random characters, for tests that train inside their own process.
#pragma once

#include <cstdint>
#include <string>

#include "autograd/core/philox.h"
#include "data/dataset/dataset.h"
#include "train/run/config/config.h"

namespace maki::tests {

/// `characters` random letters of `alphabet`, a function of the seed.
inline std::string seeded_text(std::size_t characters, const std::string& alphabet, std::uint64_t seed = 11) {
  const RandomStream stream(seed, RandomPurpose::test);
  std::string text;
  for (std::uint64_t i = 0; i < characters; ++i) text += alphabet[stream.below(i, alphabet.size())];
  return text;
}

/// An ASCII text, split and encoded as configured.
inline Dataset dataset_of(const std::string& text, const Config& config) {
  Corpus corpus;
  corpus.text = text;
  corpus.characters = static_cast<std::int64_t>(text.size());
  corpus.hash = "0123456789abcdef0123456789abcdef";
  return make_dataset(corpus, config.val_fraction, config.block_size, config.tokenizer);
}

}  // namespace maki::tests
