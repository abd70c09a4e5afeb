// Small token files for tests.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "autograd/core/philox.h"
#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/hash.h"
#include "tests/files.h"
#include "train/run/convert/prepare.h"

namespace maki::tests {

inline Prepared prepare(const std::vector<std::string>& sources, const std::string& out,
                        PrepareOptions options = {.sources = {}, .out = {}}) {
  options.sources = sources;
  options.out = {out, /*replace=*/true};
  return prepare_corpus(posix_file_system(), options);
}

/// What is said while they are prepared, also where that fails.
inline std::vector<std::string> notes_of_preparing(const std::vector<std::string>& sources, const std::string& out,
                                                   PrepareOptions options = {.sources = {}, .out = {}}) {
  std::vector<std::string> all;
  options.on_notes = [&](const std::vector<std::string>& notes) { all.insert(all.end(), notes.begin(), notes.end()); };
  error_message<CorpusError>([&] { prepare(sources, out, options); });
  return all;
}

/// Words of English, Japanese and punctuation in random, reproducible order, until there are at least `bytes` bytes.
inline std::string words(std::size_t bytes, std::uint64_t seed) {
  static const std::vector<std::string> kWords = {"the", "cat",   "猫は",    "、",   "ran.", "\n", "up",  "山",
                                                  "　",  "don't", "e\u0301", "ﾊﾝｶｸ", "\r\n", "42", "吾輩"};
  const RandomStream stream(seed, RandomPurpose::shuffle);
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) {
    text += kWords[static_cast<std::size_t>(stream.below(2 * i, kWords.size()))];
    if (stream.below(2 * i + 1, 3) > 0) text += ' ';
  }
  return text;
}

inline void require_same(const Dataset& a, const Dataset& b) {
  REQUIRE(a.tokenizer->hash() == b.tokenizer->hash());
  REQUIRE(a.corpus_hash == b.corpus_hash);
  REQUIRE(a.characters == b.characters);
  REQUIRE(a.best_possible_loss == b.best_possible_loss);
  for (const auto& [x, y] : {std::pair{a.train.view(), b.train.view()}, {a.val.view(), b.val.view()}}) {
    REQUIRE(x.ids() == y.ids());
    REQUIRE(std::ranges::equal(x.joins(), y.joins()));
  }
}

/// Replaces the bytes of a number at this offset of a token file's header, and gives the header its hash again.
template <class Number>
void forge(std::string& file, std::size_t offset, Number number) {
  constexpr std::size_t kHashed = 240;
  std::memcpy(file.data() + offset, &number, sizeof(number));
  const auto hash = hash128(std::string_view(file).substr(0, kHashed));
  std::memcpy(file.data() + kHashed, hash.data(), hash.size());
}

}  // namespace maki::tests
