#include "train/loop/random_dataset.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// A text of n different characters: the first n code points from 1 on, skipping the surrogates.
std::string text_of_characters(std::int64_t n) {
  constexpr std::int64_t kMaxVocabulary = 1'000'000;  // there are 1,112,064 code points
  check(n >= 1 && n <= kMaxVocabulary, "vocab_size: must be between 1 and {}; got {}", kMaxVocabulary, n);
  std::string text;
  for (std::int64_t c = 1; c <= n; ++c) append_utf8(text, static_cast<char32_t>(c < 0xD800 ? c : c + 0x800));
  return text;
}

}  // namespace

Dataset random_dataset(std::int64_t vocab_size, std::int64_t tokens, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::shuffle, "benchmark");
  Dataset dataset;
  dataset.tokenizer = make_tokenizer("char", text_of_characters(vocab_size));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  std::uint64_t i = 0;
  for (std::int32_t& id : ids)
    id = static_cast<std::int32_t>(stream.below(i++, static_cast<std::uint64_t>(vocab_size)));
  dataset.train = Tokens(vocab_size);
  dataset.train.append(ids);
  return dataset;
}

PairDataset random_pairs(std::int64_t source_vocab_size, std::int64_t vocab_size, std::int64_t pairs,
                         std::int64_t length, std::uint64_t seed) {
  check(source_vocab_size >= 2 && vocab_size >= 2,
        "vocab_size: must be at least 2, because the end of a sequence is one of the ids; got {} and {}",
        source_vocab_size, vocab_size);
  PairDataset dataset;
  dataset.tokenizers = {make_tokenizer("char", text_of_characters(source_vocab_size - 1)),
                        make_tokenizer("char", text_of_characters(vocab_size - 1))};
  dataset.train = TokenPairs(source_vocab_size, vocab_size);
  const RandomStream stream(seed, RandomPurpose::shuffle, "benchmark");
  std::uint64_t word = 0;
  const auto draw = [&](std::int64_t vocabulary) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(std::max<std::int64_t>(1, length)));
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(stream.below(word++, static_cast<std::uint64_t>(vocabulary - 1)));
    return ids;
  };
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::vector<std::int32_t> source = draw(source_vocab_size), target = draw(vocab_size);
    dataset.train.add(source, target);
  }
  return dataset;
}

LabelledDataset random_labelled(std::int64_t vocab_size, std::int64_t classes, std::int64_t texts, std::int64_t length,
                                std::uint64_t seed) {
  LabelledDataset dataset;
  dataset.tokenizer = make_tokenizer("char", text_of_characters(vocab_size));
  for (std::int64_t i = 0; i < classes; ++i) dataset.labels.push_back(std::to_string(i));
  dataset.train = TokenPairs(vocab_size, classes);
  const RandomStream stream(seed, RandomPurpose::shuffle, "benchmark");
  std::uint64_t word = 0;
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int32_t>(stream.below(word++, static_cast<std::uint64_t>(below)));
  };
  for (std::int64_t i = 0; i < texts; ++i) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(1 + draw(length)));
    for (std::int32_t& id : ids) id = draw(vocab_size);
    const std::int32_t label = draw(classes);
    dataset.train.add(ids, std::span(&label, 1));
  }
  return dataset;
}

}  // namespace maki
