// Similarities of contextual vectors, and the file that NumPy reads.
#include "train/loop/embed_texts.h"

#include <cmath>
#include <cstring>

#include "autograd/core/check.h"
#include "data/io/file.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/npy.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Tokens with the vectors (row, column).
EmbeddedText text_of(const std::vector<std::int32_t>& ids, const std::vector<double>& vectors) {
  return {ids, tensor(vectors, {std::ssize(ids), 2})};
}

}  // namespace

TEST_CASE("similarities are the cosines between all occurrences") {
  const std::vector<EmbeddedText> texts = {text_of({4, 7, 4}, {1, 0, 5, 5, 1, 1}), text_of({4, 9}, {0, 3, 2, 2})};
  const std::vector<std::int32_t> four = {4};
  const std::vector<Similarity> list = similarities(texts, {four});
  REQUIRE(list.size() == 3);
  REQUIRE(list[0].ids == four);
  REQUIRE(list[0].first.text == 0);
  REQUIRE(list[0].first.position == 0);
  REQUIRE(list[0].second.position == 2);
  REQUIRE(list[0].cosine == Approx(std::sqrt(0.5)));
  REQUIRE(list[1].second.text == 1);
  REQUIRE(list[1].cosine == Approx(0).margin(1e-15));
  REQUIRE(list[2].cosine == Approx(std::sqrt(0.5)));
}

TEST_CASE("several tokens are compared by the means of their vectors") {
  const std::vector<EmbeddedText> texts = {text_of({1, 2, 3}, {9, 9, 2, 0, 0, 2}),
                                           text_of({2, 3, 2}, {1, 0, 3, 0, 7, 7})};
  const std::vector<Similarity> list = similarities(texts, {{2, 3}});
  REQUIRE(list.size() == 1);
  REQUIRE(list[0].first.position == 1);
  REQUIRE(list[0].second.position == 0);
  REQUIRE(list[0].cosine == Approx(std::sqrt(0.5)));  // (1, 1) and (2, 0)
  REQUIRE(similarities(texts, {{3, 2}, {9}}).empty());
}

TEST_CASE("a word is compared whether or not its first token includes a space") {
  const auto bpe = make_tokenizer("bpe", "a bank a bank a bank a bank", {.vocab_size = 300});
  const std::vector<std::vector<std::int32_t>> both = spellings(*bpe, "bank");
  REQUIRE(both.size() == 2);
  REQUIRE(bpe->decode(both[0]) == "bank");
  REQUIRE(bpe->decode(both[1]) == " bank");
  const std::vector<EmbeddedText> texts = {text_of(both[0], std::vector<double>(2 * both[0].size(), 1)),
                                           text_of(both[1], std::vector<double>(2 * both[1].size(), 2))};
  const std::vector<Similarity> list = similarities(texts, both);
  REQUIRE(list.size() == 1);
  REQUIRE(list[0].ids == both[0]);
  REQUIRE(list[0].second.tokens == both[1].size());
  REQUIRE(list[0].cosine == Approx(1));
  // A space that is a token of its own, and a vocabulary without one.
  REQUIRE(spellings(*make_tokenizer("char", "a bank"), "bank").size() == 1);
  REQUIRE(spellings(*make_tokenizer("char", "bank"), "bank").size() == 1);
}

TEST_CASE("tokens of one text only are not compared by themselves") {
  const std::vector<EmbeddedText> texts = {text_of({5, 5, 2}, {1, 0, 0, 1, 1, 1}), text_of({2, 3}, {-1, -1, 0, 0})};
  const std::vector<Similarity> list = shared_similarities(texts);
  REQUIRE(list.size() == 1);
  REQUIRE(list[0].ids == std::vector<std::int32_t>{2});
  REQUIRE(list[0].cosine == Approx(-1));
}

TEST_CASE("a vector of zeros is similar to nothing") {
  const std::vector<EmbeddedText> texts = {text_of({1}, {0, 0}), text_of({1}, {1, 2})};
  REQUIRE(shared_similarities(texts).at(0).cosine == 0);
}

TEST_CASE("no similarity is beyond that of a vector with itself, whatever is rounded") {
  for (int x = 1; x < 10; ++x) {
    for (int y = 1; y < 10; ++y) {
      const std::vector<double> to = {static_cast<double>(x), static_cast<double>(y)}, away = {-to[0], -to[1]};
      const std::vector<EmbeddedText> texts = {text_of({1}, to), text_of({1}, to), text_of({1}, away)};
      const std::vector<Similarity> list = shared_similarities(texts);
      INFO(x << " " << y);
      REQUIRE(list.size() == 3);
      REQUIRE(list[0].cosine <= 1);
      REQUIRE(list[0].cosine == Approx(1));
      REQUIRE(list[1].cosine >= -1);
      REQUIRE(list[1].cosine == Approx(-1));
    }
  }
}

TEST_CASE("an npy file has the bytes that NumPy writes") {
  const TemporaryFolder folder;
  Unsynced fs;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6.5};
  write_npy(fs, folder / "a.npy", values, 3, 2);
  const std::string bytes = read_file(folder / "a.npy");
  // numpy.save(…, numpy.zeros((3, 2), "<f4")) of NumPy 1.24
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header.append(118 - header.size() - 1, ' ').append("\n");
  REQUIRE(bytes.size() == 128 + 24);
  REQUIRE(bytes.substr(0, 10) == std::string("\x93NUMPY\x01\x00v\x00", 10));
  REQUIRE(bytes.substr(10, 118) == header);
  std::vector<float> read(6);
  std::memcpy(read.data(), bytes.data() + 128, 24);
  REQUIRE(read == values);
  REQUIRE_THROWS_AS(write_npy(fs, folder / "b.npy", values, 2, 2), Error);
}
