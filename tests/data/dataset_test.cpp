// The split is exact, a part that is too short is named, and the best possible loss is that of the validation tokens.
#include "data/dataset/dataset.h"

#include <cmath>

#include "data/io/hash.h"
#include "data/io/utf8.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "tests/catch.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using maki::tests::require_refused;
using maki::tests::TemporaryFolder;

namespace {

Corpus corpus_of(const std::string& text) {
  Corpus corpus;
  corpus.sources = {"text.txt"};
  corpus.text = text;
  corpus.hash = hash128_hex(text);
  corpus.characters = count_code_points(text);
  return corpus;
}

}  // namespace

TEST_CASE("both parts together are the text, split at a character") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 3 == 0 ? "猫" : i % 3 == 1 ? "é" : "x";
  for (const char* const kind : {"byte", "char"}) {
    const Dataset data = make_dataset(corpus_of(text), 0.2, 8, kind);
    REQUIRE(data.tokenizer->kind() == kind);
    REQUIRE(data.tokenizer->decode(data.train) + data.tokenizer->decode(data.val) == text);
    REQUIRE(count_code_points(data.tokenizer->decode(data.val)) == 20);
    REQUIRE(data.corpus_hash == hash128_hex(text));
    REQUIRE(data.characters == 100);
    REQUIRE_FALSE(data.best_possible_loss);
  }
  REQUIRE(make_dataset(corpus_of(text), 0, 8, "char").val.empty());
  REQUIRE(make_dataset(corpus_of(text), 0, 8, "char").train.size() == 100);
}

TEST_CASE("the split is at the start of a story that the fraction falls on, or else at the next one") {
  Corpus corpus = corpus_of(std::string(10, 'a') + std::string(10, 'b') + std::string(10, 'c') + std::string(10, 'd'));
  corpus.story_starts = {0, 10, 20, 30};
  const auto train = [&](double val_fraction) { return make_dataset(corpus, val_fraction, 4, "byte").train.size(); };
  REQUIRE(train(0.25) == 30);
  REQUIRE(train(0.5) == 20);
  REQUIRE(train(0.475) == 30);
  REQUIRE(train(0.525) == 20);
  REQUIRE(train(0.75) == 10);
}

TEST_CASE("the character vocabulary covers the whole text") {
  const std::string text = std::string(90, 'a') + std::string(9, 'b') + "猫";
  const Dataset data = make_dataset(corpus_of(text), 0.1, 4, "char");
  REQUIRE(data.tokenizer->vocab_size() == 3);
  REQUIRE(data.val.ids().back() == 2);
}

TEST_CASE("words are learned from the training text alone, of one file or several") {
  const TemporaryFolder folder;
  const std::string first = folder.write("1", "cat cat cat cat cat cat dog dog "),
                    second = folder.write("2", "emu emu emu emu owl owl ");
  for (const auto& [files, words] : {std::pair{std::vector{first}, std::vector{" cat"}},
                                     {std::vector{first, second}, std::vector{" cat", " emu"}}}) {
    const Dataset data = make_dataset(load_corpus(files), 0.35, 1, "word");
    for (const std::string word : words) REQUIRE(data.tokenizer->encode(word).size() == 1);
    REQUIRE(data.tokenizer->encode(" dog").size() == 4);
    REQUIRE(data.tokenizer->unknown("dog").empty());
  }
}

TEST_CASE("every file gives its share to validation, and many short files do so together") {
  const auto corpus_of_files = [](const std::vector<std::string>& files) {
    Corpus corpus = corpus_of("");
    for (const std::string& file : files) {
      if (!corpus.text.empty()) corpus.joins.push_back(corpus.text.size());
      corpus.text += file;
    }
    corpus.characters = count_code_points(corpus.text);
    return corpus;
  };
  std::string japanese;
  for (int i = 0; i < 40; ++i) japanese += "猫";
  const Corpus corpus = corpus_of_files({std::string(60, 'a') + std::string(20, 'b'), japanese, "xyz"});
  const SplitText split = split_text(corpus, 0.25);
  REQUIRE(split.train == std::vector<std::string_view>{std::string_view(corpus.text).substr(0, 60),
                                                       std::string_view(japanese).substr(0, 90), "xy"});
  REQUIRE(split.val ==
          std::vector<std::string_view>{std::string(20, 'b'), std::string_view(japanese).substr(0, 30), "z"});
  REQUIRE(split_text(corpus, 0).train == file_texts(corpus));
  REQUIRE(split_text(corpus, 0).val.empty());
  const Dataset data = make_dataset(corpus, 0.25, 8, "char");
  REQUIRE(data.train.size() == 92);
  REQUIRE(data.val.size() == 31);
  const auto joins = data.train.view().joins();
  REQUIRE(std::vector<std::int64_t>(joins.begin(), joins.end()) == std::vector<std::int64_t>{60, 90});

  const Corpus poems = corpus_of_files(std::vector<std::string>(1000, "ab猫"));
  std::size_t validating = 0;
  for (const std::string_view piece : split_text(poems, 0.1).val)
    validating += static_cast<std::size_t>(count_code_points(piece));
  REQUIRE(validating == 300);
}

TEST_CASE("a given tokenizer is used, and characters that it lacks are an error") {
  const auto tokenizer = std::make_shared<CharTokenizer>("abcdef");
  const Dataset data = make_dataset(corpus_of(std::string(50, 'b')), 0.2, 4, "char", tokenizer);
  REQUIRE(data.tokenizer == tokenizer);
  REQUIRE(data.train.ids() == std::vector<std::int32_t>(40, 1));
  require_refused([&] { make_dataset(corpus_of(std::string(50, 'z')), 0.2, 4, "char", tokenizer); },
                  {"z (U+007A) 50 times"});
}

TEST_CASE("the error for a part that is too short names the part, both numbers, and what to do") {
  const std::string text(100, 'a');
  require_refused([&] { make_dataset(corpus_of(text), 0.1, 16, "char"); },
                  {"text.txt", "validation", "17 tokens", "10 of 100", "`block_size`", "`val_fraction`"});
  require_refused([&] { make_dataset(corpus_of(text), 0.9, 16, "char"); }, {"training", "17 tokens", "10 of 100"});
  require_refused([&] { make_dataset(corpus_of(text), 0, 100, "char"); },
                  {"training", "101 tokens", "it has 100; use more"});
  require_refused([&] { make_dataset(corpus_of("x"), 0.1, 1, "byte"); }, {"training", "2 tokens", "it has 1;"});
  require_refused([&] { make_dataset(corpus_of("xyz"), 0.1, 1, "byte"); }, {"validation", "2 tokens", "0 of 3"});
  // There is no smaller block than one of 1, which documents of any length need.
  const std::string tiny = "text.txt: the training text must have at least 2 tokens; it has 1; use more text";
  require_refused([&] { make_dataset(corpus_of("x"), 0.1, 1, "byte"); }, {tiny + ", or another `val_fraction`"});
  // No other fraction for validation leaves more than 0 does.
  REQUIRE(maki::tests::error_message<CorpusError>([&] { make_dataset(corpus_of("x"), 0, 1, "byte"); }) == tiny);
  // Exactly enough tokens in each part.
  REQUIRE(make_dataset(corpus_of(text), 0.17, 16, "char").val.size() == 17);
  REQUIRE(make_dataset(corpus_of(text), 0.83, 16, "char").train.size() == 17);
  REQUIRE(make_dataset(corpus_of(text), 0, 99, "char").train.size() == 100);
}

TEST_CASE("the best possible loss is in nats per token of the validation part") {
  const Corpus stories = load_corpus({"@stories-ja:5000"});
  const double entropy = stories.entropy_per_char.value();
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-12 * b; };
  REQUIRE(close(make_dataset(stories, 0.3, 8, "char").best_possible_loss.value(), entropy));
  REQUIRE(close(make_dataset(stories, 0, 8, "char").best_possible_loss.value(), entropy));
  const Dataset bytes = make_dataset(stories, 0.3, 8, "byte");
  const std::string val = bytes.tokenizer->decode(bytes.val);
  REQUIRE(close(bytes.best_possible_loss.value() * static_cast<double>(val.size()),
                entropy * static_cast<double>(count_code_points(val))));
  REQUIRE(bytes.best_possible_loss.value() < 0.6 * entropy);  // most characters are three bytes
}

TEST_CASE("an id that the tokenizer lacks is refused with the name of its file, for training or for validation") {
  const TemporaryFolder folder;
  const std::string good(20, '\0'), bad = good + std::string("\7\0", 2);  // ids of two bytes
  const std::shared_ptr<const Tokenizer> letters = make_tokenizer("char", "abc");
  const auto refuse = [&](const std::vector<std::string>& paths, const std::string& name) {
    require_refused([&] { make_dataset(prepared_corpus(paths).value(), 0.5, 1, "", letters); },
                    {name + ": contains the id 7, but the tokenizer has 3 tokens"});
  };
  const std::string train = folder.write("train.bin", good), val = folder.write("val.bin", bad);
  refuse({train, val}, val);
  refuse({train, val, folder.write("val_2.bin", good)}, val + " and 1 more");
  const std::string bad_train = folder.write("bad/train.bin", bad), single = folder.write("one/x.bin", bad);
  refuse({bad_train, folder.write("bad/val.bin", good)}, bad_train);
  refuse({single}, single);
}
