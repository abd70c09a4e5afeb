// BLEU against sacrebleu, whose results for stored lines are in tests/fixtures/bleu.json (tests/fixtures/make_bleu.py).
#include "train/loop/bleu.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/core/check.h"
#include "data/io/utf8.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

Bleu bleu_of(const std::vector<std::string>& outputs, const std::vector<std::string>& references) {
  return corpus_bleu({outputs.begin(), outputs.end()}, {references.begin(), references.end()});
}

}  // namespace

TEST_CASE("BLEU is that of sacrebleu without tokenization") {
  const auto corpora = nlohmann::json::parse(read_bytes(MAKI_SOURCE_DIR "/tests/fixtures/bleu.json"));
  std::size_t lines = 0, scored = 0;
  for (const auto& corpus : corpora) {
    INFO(corpus.at("name"));
    const std::vector<std::string> outputs = corpus.at("outputs"), references = corpus.at("references");
    const Bleu bleu = bleu_of(outputs, references);
    CHECK(bleu.score == Approx(corpus.at("score").get<double>()).margin(1e-9));
    CHECK(bleu.brevity_penalty == Approx(corpus.at("brevity_penalty").get<double>()).margin(1e-12));
    CHECK(bleu.output_words == corpus.at("output_words"));
    CHECK(bleu.reference_words == corpus.at("reference_words"));
    lines += outputs.size();
    if (corpus.at("score") == 0) continue;  // sacrebleu does not smooth the precisions if nothing matches
    ++scored;
    for (std::size_t n = 0; n < 4; ++n)
      CHECK(bleu.precisions[n] == Approx(corpus.at("precisions").at(n).get<double>()).epsilon(1e-12));
  }
  REQUIRE(lines >= 30);
  REQUIRE(scored >= 10);
}

TEST_CASE("BLEU depends neither on the order of the lines nor on the spaces between words") {
  const std::vector<std::string> outputs = {"a b c d e", "b c d x a", "e d c b a f"},
                                 references = {"a b c d e f", "b c d e a", "e d c b f"};
  const Bleu bleu = bleu_of(outputs, references);
  REQUIRE(bleu.score > 10);
  REQUIRE(bleu.score < 90);
  REQUIRE(bleu_of({outputs[2], outputs[0], outputs[1]}, {references[2], references[0], references[1]}).score ==
          bleu.score);
  REQUIRE(bleu_of({" a b  c d e", "b\tc d x a\r", "e d c b a f "}, references).score == bleu.score);
  REQUIRE(bleu_of(references, references).score == 100);  // sacrebleu says 100.00000000000004
  REQUIRE(bleu_of({"A b c d e", outputs[1], outputs[2]}, references).score < bleu.score);  // case matters
}

TEST_CASE("words are separated by the white space of Unicode, and by no other character") {
  // Those for which str.isspace() of Python 3.11 is true.
  const std::set<char32_t> spaces = {0x9,    0xA,    0xB,    0xC,    0xD,    0x1C,   0x1D,   0x1E,   0x1F,   0x20,
                                     0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
                                     0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (char32_t c = 1; c < 0x3100; ++c) {
    std::string line = "a";
    append_utf8(line, c);
    line += "b";
    CAPTURE(static_cast<std::uint32_t>(c));
    REQUIRE(bleu_of({line}, {line}).output_words == (spaces.contains(c) ? 2 : 1));
  }
}

TEST_CASE("BLEU of different numbers of lines, or of none, is refused") {
  REQUIRE_THROWS_WITH(bleu_of({"a", "b"}, {"a"}), ContainsSubstring("got 1 and 2"));
  REQUIRE_THROWS_AS(bleu_of({}, {}), Error);
  REQUIRE(bleu_of({""}, {""}).score == 0);
  REQUIRE(bleu_of({""}, {""}).brevity_penalty == 1);
}
