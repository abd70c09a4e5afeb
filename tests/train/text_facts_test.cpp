// What a plan is told of a text.
#include "train/loop/plan/text_facts.h"

#include <cmath>
#include <fmt/format.h>

#include "data/io/utf8.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/catch.h"
#include "tests/train/prepared.h"
#include "train/loop/plan/data_facts.h"
#include "train/loop/plan/shape_table.h"
#include "train/loop/plan/shapes.h"

using namespace maki;
using namespace maki::tests;

namespace {

Corpus corpus_of(std::string text) {
  Corpus corpus;
  corpus.text = std::move(text);
  corpus.characters = count_code_points(corpus.text);
  return corpus;
}

// Sentences that are all different, and consist of the same few parts. There are no spaces between words.
std::string repeated_sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("第{}回のあとに{}番の{}歳の猫がないた\n", i % 97, i % 89, i % 83);
  return text;
}

}  // namespace

TEST_CASE("text facts tell how much of the end of a text is new") {
  Corpus corpus;
  for (int i = 0; i < 1000; ++i) corpus.text += "吾輩は猫である。";
  corpus.characters = 8000;
  REQUIRE(text_facts(corpus).new_ngrams == 0);
  const std::size_t repeated = corpus.text.size();
  while (corpus.text.size() < repeated * 10 / 9)
    append_utf8(corpus.text, static_cast<char32_t>(0x4E00 + corpus.characters++ % 5000));
  const double share = text_facts(corpus).new_ngrams;
  REQUIRE(share > 0.95);
  REQUIRE(share <= 1);
  corpus.text = "short";
  REQUIRE(text_facts(corpus).new_ngrams == 1);
}

TEST_CASE("data that were prepared are as large as their text, and ids without a tokenizer as a byte for each") {
  const TemporaryFolder folder;
  const std::string text = words(3000, 1), path = folder.write("text", text);
  const std::int64_t characters = count_code_points(text);  // each is a token
  REQUIRE(characters < std::ssize(text));
  prepare({path}, folder / "own");
  prepare({path}, folder / "ids", {.sources = {}, .out = {}, .format = "nanogpt"});
  Config config;
  config.model = "encoder";
  config.task = "masked";
  REQUIRE(data_facts(prepared_corpus({folder / "own"}).value(), config).bytes == std::ssize(text));
  REQUIRE(data_facts(prepared_corpus({folder / "ids"}).value(), config).bytes == characters);
}

TEST_CASE("a plan knows the tokens of every tokenizer, and takes others for characters") {
  for (const std::string& name : tokenizer_names()) REQUIRE(planned_tokens(name).name == name);
  REQUIRE(planned_tokens("new").name == std::string("char"));
}

TEST_CASE("byte pairs are the tokens of a text whose parts repeat themselves in new words") {
  REQUIRE(text_facts(corpus_of(repeated_sentences(5'000))).tokenizer == "char");  // too short
  const Corpus corpus = corpus_of(repeated_sentences(60'000));
  const TextFacts facts = text_facts(corpus);
  REQUIRE(facts.new_words > 0.5);
  REQUIRE(facts.new_ngrams < kFewNewNgrams);
  REQUIRE(facts.tokenizer == "bpe");
  const auto pairs = make_tokenizer("bpe", corpus.text, {.vocab_size = 4096});
  REQUIRE(facts.vocabulary == pairs->vocab_size());
  REQUIRE(facts.tokens == std::ssize(pairs->encode(corpus.text)));
  const auto fixed = make_tokenizer("char", corpus.text);
  REQUIRE(text_facts(corpus, fixed.get()).tokenizer == "char");
}

TEST_CASE("the byte pairs of a long text are counted at its end") {
  constexpr std::size_t kSample = std::size_t{4} << 20;
  std::string text = repeated_sentences(1000);
  while (text.size() < kSample / 2) text += fmt::format("{:x}\n", text.size() * 2654435761U % 1000003);
  const std::string end = repeated_sentences(60'000);
  REQUIRE(end.size() > kSample / 4);
  const std::size_t before = text.size();
  while (text.size() < before + kSample) text += end;
  const TextFacts facts = text_facts(corpus_of(text));
  REQUIRE(facts.tokenizer == "bpe");
  const auto pairs = make_tokenizer("bpe", end, {.vocab_size = facts.vocabulary});
  const double per_byte = static_cast<double>(pairs->encode(end).size()) / static_cast<double>(end.size());
  REQUIRE(static_cast<double>(facts.tokens) == Approx(per_byte * static_cast<double>(facts.bytes)).epsilon(0.01));
}

TEST_CASE("a long text of few characters has byte pairs, and a short one characters") {
  const auto tokenizer = [](std::size_t characters, char32_t alphabet, double share = 1) {
    std::string text;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < characters; ++i) {
      state = state * 1664525 + 1013904223;
      const double drawn = static_cast<double>(i % 1000) / 1000;  // of every thousand characters, a share is rare
      append_utf8(text, i % 6 == 5 ? U' ' : U'a' + (state >> 8) % (drawn < share ? alphabet : 26));
    }
    return text_facts(corpus_of(text));
  };
  REQUIRE(tokenizer(900'000, 26).tokenizer == "char");
  const TextFacts long_text = tokenizer(1'100'000, 26), longer_text = tokenizer(2'100'000, 26);
  REQUIRE(long_text.new_ngrams > kFewNewNgrams);
  REQUIRE(long_text.tokenizer == "bpe");
  REQUIRE(long_text.vocabulary == 512);
  REQUIRE(longer_text.vocabulary == 1024);
  REQUIRE(tokenizer(1'100'000, 3000).tokenizer == "char");
  REQUIRE(tokenizer(1'100'000, 3000, 0.01).tokenizer == "bpe");
  REQUIRE(tokenizer(1'100'000, 3000, 0.1).tokenizer == "char");
  REQUIRE(tokenizer(5'000, 2000).tokenizer == "byte");
}

TEST_CASE("tables are expected to learn less of rare n-grams and of short texts, other models are not") {
  for (const Recipe recipe : {Recipe::tables, Recipe::network, Recipe::network_with_tables, Recipe::prior}) {
    const ModelShape shape{
        .recipe = recipe, .n_layer = 1, .n_head = 1, .n_embd = 64, .block_size = 64, .curve = {1, 2}};
    const auto loss = [&](std::int64_t vocabulary, double train_tokens) {
      return shape.expected_loss(1e6, vocabulary, train_tokens);
    };
    const bool has_tables = recipe == Recipe::tables || recipe == Recipe::network_with_tables;
    INFO(static_cast<int>(recipe));
    REQUIRE((loss(kManyTokens + 1, 1e6) > loss(kManyTokens, 1e6)) == has_tables);
    REQUIRE((loss(64, kShortText - 1) > loss(64, kShortText)) == (recipe == Recipe::tables));
  }
}

TEST_CASE(
    "losses of words follow the length of the text, and those of a small network on a prior fall up to some tokens") {
  const ModelShape shape{.recipe = Recipe::prior,
                         .n_layer = 1,
                         .n_head = 1,
                         .n_embd = 64,
                         .block_size = 64,
                         .curve = {.floor = 2, .slope = -0.5, .exponent = 1, .most = 0.4, .longer = -0.25}};
  const double usual = 348'000;  // to which the curves were fitted
  REQUIRE(shape.expected_loss(1e5, 64, usual) == Approx(2 - 0.05));
  REQUIRE(shape.expected_loss(1e5, 64, usual * std::exp(2)) == Approx(2 - 0.05 - 0.5));
  REQUIRE(shape.expected_loss(4e5, 64, usual) == Approx(2 - 0.2));
  REQUIRE(shape.expected_loss(5e5, 64, usual) == shape.expected_loss(4e5, 64, usual));
}

TEST_CASE(
    "a network reads a text many times, half as many if it is short, twice as many if it is taught, and tables hardly "
    "more than once") {
  const auto passes = [](Recipe recipe, double train_tokens, bool taught = false) {
    const ModelShape shape{
        .recipe = recipe, .n_layer = 4, .n_head = 4, .n_embd = 128, .block_size = 64, .curve = {1, 2}};
    return shape.most_passes(train_tokens, taught);
  };
  for (const Recipe recipe : {Recipe::network, Recipe::prior}) {
    REQUIRE(passes(recipe, kShortText - 1) == 10);
    REQUIRE(passes(recipe, kShortText) == 20);
  }
  REQUIRE(passes(Recipe::prior, kShortText, /*taught=*/true) == 40);
  REQUIRE(passes(Recipe::prior, kShortText - 1, /*taught=*/true) == 10);
  REQUIRE(passes(Recipe::tables, kShortText - 1) == 1.3);
  REQUIRE(passes(Recipe::tables, kShortText) == 1);
  REQUIRE(passes(Recipe::network_with_tables, kShortText) == 1.2);
}

TEST_CASE("the windows of a text that is learned by heart leave as little of it out as half of the longest allow") {
  REQUIRE(block_by_heart(100, 64) == 25);  // of 25 to 49: two windows must fit, and 100 = 4 · 25
  REQUIRE(block_by_heart(100, 30) == 25);
  REQUIRE(block_by_heart(1000, 24) == 20);
  REQUIRE(block_by_heart(3, 64) == 1);
  REQUIRE(block_by_heart(1, 64) == 1);
}
