// Labelled text: its lines, labels and errors.
#include "data/dataset/labelled.h"

#include "data/io/error.h"
#include "tests/catch.h"

using namespace maki;

namespace {

Corpus labelled_corpus(const std::string& text) {
  Corpus corpus;
  corpus.sources = {"reviews.tsv"};
  corpus.text = text;
  corpus.characters = std::ssize(text);
  return corpus;
}

std::string message_of(const std::string& text, const LabelledOptions& options) {
  try {
    make_labelled_dataset(labelled_corpus(text), options);
  } catch (const CorpusError& error) {
    return error.what();
  }
  return "";
}

const std::string kReviews = "fine\tgood\nawful\tbad\nso so\tfair\nnice\tgood\n";

}  // namespace

TEST_CASE("labels are sorted, and texts keep their order") {
  const LabelledDataset data = make_labelled_dataset(labelled_corpus(kReviews), {.val_fraction = 0, .max_tokens = 5});
  REQUIRE(data.labels == std::vector<std::string>{"bad", "fair", "good"});
  REQUIRE(data.train.size() == 4);
  REQUIRE(data.val.size() == 0);
  REQUIRE(data.tokenizer->decode_line(data.train.source(2)) == "so so");
  REQUIRE(data.train.target(0) == std::vector<std::int32_t>{2});
  REQUIRE(data.train.target(1) == std::vector<std::int32_t>{0});
  REQUIRE(data.train.target(2) == std::vector<std::int32_t>{1});
  REQUIRE(data.train.target(3) == std::vector<std::int32_t>{2});
}

TEST_CASE("lines for validation have every label, whether labels are sorted or alternate") {
  for (const bool sorted : {true, false}) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += (sorted ? i < 100 : i % 2 == 0) ? "awful\tbad\n" : "fine\tgood\n";
    for (const double fraction : {0.1, 0.25, 0.5}) {
      const LabelledDataset data =
          make_labelled_dataset(labelled_corpus(text), {.val_fraction = fraction, .max_tokens = 5});
      const auto rows = static_cast<std::int64_t>(std::lround(200 * fraction));
      REQUIRE(data.val.size() == rows);
      REQUIRE(data.train.size() == 200 - rows);
      std::int64_t bad = 0;
      for (std::int64_t i = 0; i < rows; ++i) bad += data.val.target(i)[0] == 0 ? 1 : 0;
      if (sorted) REQUIRE(2 * bad == rows);
      REQUIRE(bad >= rows / 4);
      REQUIRE(bad <= rows - rows / 4);
    }
  }
}

TEST_CASE("an existing model's tokenizer and labels are kept") {
  const LabelledDataset data = make_labelled_dataset(labelled_corpus(kReviews), {.val_fraction = 0, .max_tokens = 5});
  LabelledOptions options{.val_fraction = 0, .max_tokens = 5, .tokenizer = data.tokenizer, .labels = data.labels};
  const LabelledDataset other = make_labelled_dataset(labelled_corpus("line\tgood\n"), options);
  REQUIRE(other.tokenizer == data.tokenizer);
  REQUIRE(other.train.target(0) == std::vector<std::int32_t>{2});
  REQUIRE_THAT(message_of("fine\tgood\nline\tgold\n", options), ContainsSubstring("line 2: its label must be one of"));
  REQUIRE_THAT(message_of("fine\tgood\nfizz\tgood\n", options), ContainsSubstring("line 2: tokenizer"));
}

TEST_CASE("labels are normalized as the texts are") {
  const std::string composed = "caf\u00e9", parts = "cafe\u0301";
  const std::string text = "one\t" + composed + "\ntwo\t" + parts + "\nsix\ttea\n";
  LabelledOptions options{.val_fraction = 0, .max_tokens = 5};
  REQUIRE(make_labelled_dataset(labelled_corpus(text), options).labels.size() == 3);
  options.tokenizer_options.normalization = Normalization::nfc;
  const LabelledDataset data = make_labelled_dataset(labelled_corpus(text), options);
  REQUIRE(data.labels == std::vector<std::string>{composed, "tea"});
  REQUIRE(data.train.target(1) == std::vector<std::int32_t>{0});
  options.labels = {"cafe", composed};
  REQUIRE(make_labelled_dataset(labelled_corpus("one\t" + parts + "\n"), options).train.target(0)[0] == 1);
}

TEST_CASE("a header, swapped columns, and labels that differ in spaces alone are refused") {
  const LabelledOptions options{.val_fraction = 0, .max_tokens = 20};
  REQUIRE_THAT(message_of("Sentence\tstars\n" + kReviews, options), ContainsSubstring("line 1 reads like a header"));
  REQUIRE_THAT(message_of("my text\tlabel\n" + kReviews, options), ContainsSubstring("line 1 reads like a header"));
  REQUIRE(message_of("text\tgood\n" + kReviews, options).empty());  // the label occurs elsewhere
  std::string swapped;
  for (int i = 0; i < 50; ++i) swapped += (i % 2 == 0 ? "good\tline " : "bad\tline ") + std::to_string(i % 49) + "\n";
  REQUIRE_THAT(message_of(swapped, options), ContainsSubstring("they seem to be swapped") &&
                                                 ContainsSubstring("{print $2, $1}' reviews.tsv > reviews.tsv.new"));
  for (const char* const again : {"good ", " good", "  good "}) {
    REQUIRE_THAT(message_of("fine\tgood\nawful\tbad\nnice\t" + std::string(again) + "\n", options),
                 ContainsSubstring("there are several of \"good\"; remove the spaces"));
  }
  REQUIRE_THAT(message_of("fine\t \nawful\t  \n", options), ContainsSubstring("there are several of \"\""));
}

TEST_CASE("bad labelled text is refused with the line") {
  const LabelledOptions options{.val_fraction = 0, .max_tokens = 4};
  REQUIRE_THAT(message_of("fine\tgood\nnice\tgood\n", options), ContainsSubstring("at least two different labels"));
  REQUIRE_THAT(message_of("fine\tgood\nawful\tbad\n", options), ContainsSubstring("line 2: a text may have at most 4"));
  REQUIRE_THAT(message_of("fine\tgood\nbad\n", options),
               ContainsSubstring("line 2 must have a text, one tab and its label"));
  REQUIRE_THAT(message_of("fine\tgood\nbad\t\n", options),
               ContainsSubstring("line 2 has an empty label; every line needs a text and its label"));
  REQUIRE_THAT(message_of("fine\tgood\n\tbad\n", options), ContainsSubstring("line 2 has an empty text"));
  LabelledOptions one_line = options;
  one_line.val_fraction = 0.5;
  REQUIRE_THAT(message_of("fine\tgood\n", one_line), ContainsSubstring("with 1 of 1 lines for validation"));
}

TEST_CASE("a bad line of several files is named by its own file, and by its number there") {
  Corpus corpus = labelled_corpus("fine\tgood\nawful\tbad\nnice\tgood\n" + kReviews);
  corpus.files = {"one.tsv", "two.tsv"};
  corpus.joins = {corpus.text.size() - kReviews.size()};
  const auto refusal = [&](const LabelledOptions& options) {
    try {
      make_labelled_dataset(corpus, options);
    } catch (const CorpusError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE_THAT(refusal({.val_fraction = 0, .max_tokens = 20, .labels = {"bad", "good"}}),
               ContainsSubstring("two.tsv: line 3: its label must be one of the 2 that the model knows; got fair"));
  REQUIRE_THAT(refusal({.val_fraction = 0, .max_tokens = 4}), ContainsSubstring("one.tsv: line 2: a text may have"));
  const std::shared_ptr<const Tokenizer> letters = make_tokenizer("char", "finewulc a");
  REQUIRE_THAT(refusal({.val_fraction = 0, .max_tokens = 20, .tokenizer = letters}),
               ContainsSubstring("two.tsv: line 3: tokenizer: the vocabulary"));
}

TEST_CASE("saved labels are restored, and no other form is accepted") {
  const std::vector<std::string> labels = {"bad", "good", "\xe7\x8c\xab"};
  REQUIRE(save_labels(labels) == "bad\ngood\n\xe7\x8c\xab\n");
  REQUIRE(load_labels(save_labels(labels)) == labels);
  for (const char* const saved : {"", "bad\n", "bad\ngood", "good\nbad\n", "bad\nbad\n", "bad\n\ngood\n", "\nbad\n"}) {
    INFO(saved);
    REQUIRE_THROWS_AS(load_labels(saved), CorpusError);
  }
}
