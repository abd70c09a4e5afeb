// Parallel text: what is read from one file or two, and the errors, which name file, line, pair and remedy.
#include "data/dataset/pairs.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include "tests/catch.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Pair = std::pair<std::string, std::string>;
using Pairs = std::vector<Pair>;

// Text of files that are not read from a disk.
Corpus pair_corpus(const std::vector<std::string>& texts) {
  Corpus corpus;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    corpus.sources.push_back(i == 0 ? "first.txt" : i == 1 ? "second.txt" : "third.txt");
    if (!corpus.text.empty() && !texts[i].empty()) corpus.joins.push_back(corpus.text.size());
    corpus.text += texts[i];
  }
  return corpus;
}

Pairs pairs_in(const std::vector<std::string>& texts) {
  const Corpus corpus = pair_corpus(texts);
  Pairs pairs;
  for (const LinePair& pair : read_pairs(corpus)) pairs.emplace_back(pair.source, pair.target);
  return pairs;
}

const Pairs kTwo = {{"猫", "the cat"}, {"犬 だ", "a dog"}};

PairOptions options_for(double val_fraction, std::int64_t max_tokens, const std::string& tokenizer = "char") {
  return {.val_fraction = val_fraction, .max_tokens = max_tokens, .tokenizer = tokenizer};
}

PairTokenizers tokenizers_of(const Corpus& corpus, const std::string& kind, bool shared) {
  const std::vector<LinePair> pairs = read_pairs(corpus);
  return make_pair_tokenizers(pairs, pairs.size(), kind, shared);
}

}  // namespace

TEST_CASE("pairs are read from one file with tabs or from two files, whatever their lines end with") {
  REQUIRE(pairs_in({"猫\tthe cat\n犬 だ\ta dog\n"}) == kTwo);
  REQUIRE(pairs_in({"猫\tthe cat\n犬 だ\ta dog"}) == kTwo);
  REQUIRE(pairs_in({"猫\tthe cat\r\n犬 だ\ta dog\r\n"}) == kTwo);
  REQUIRE(pairs_in({"猫\tthe cat\r\n犬 だ\ta dog"}) == kTwo);
  for (const std::string first : {"猫\n犬 だ\n", "猫\n犬 だ", "猫\r\n犬 だ\r\n"}) {
    for (const std::string second : {"the cat\na dog\n", "the cat\na dog", "the cat\r\na dog"})
      REQUIRE(pairs_in({first, second}) == kTwo);
  }
  // In two files a tab is a character; so are other line breaks of Unicode, and spaces are kept.
  REQUIRE(pairs_in({"a\tb\n", "c\n"}) == Pairs{{"a\tb", "c"}});
  REQUIRE(pairs_in({" a \u2028b\t c\u0085 \n"}) == Pairs{{" a \u2028b", " c\u0085 "}});
  REQUIRE(pairs_in({"a\rb\tc\n"}) == Pairs{{"a\rb", "c"}});
}

TEST_CASE("pairs of files on a disk, and of one file in a directory") {
  const TemporaryFolder folder;
  const std::string ja = folder.write("a.ja", "猫\n犬 だ"), en = folder.write("a.en", "the cat\na dog");
  const Corpus two = load_corpus({ja, en});
  REQUIRE(read_pairs(two).size() == 2);
  REQUIRE(read_pairs(two)[1].target == "a dog");
  folder.write("d/pairs.tsv", "猫\tthe cat\n");
  const Corpus directory = load_corpus({folder / "d"});
  REQUIRE(read_pairs(directory).at(0).source == "猫");
  // The order of the files of a directory is that of their names, which says nothing about source and target.
  folder.write("e/a.en", "the cat\n");
  folder.write("e/a.ja", "猫\n");
  require_refused([&] { read_pairs(load_corpus({folder / "e"})); }, {folder / "e", "directory", "2 files"});
  require_refused([&] { read_pairs(load_corpus({ja, folder / "e"})); }, {"3 files"});
  const std::string empty = folder.write("empty", "");
  require_refused([&] { read_pairs(load_corpus({ja, empty})); }, {ja, empty, "empty"});
  require_refused([&] { read_pairs(load_corpus({empty, en})); }, {en, empty, "empty"});
}

TEST_CASE("files in which every line has one tab are parts of one table, however many there are") {
  REQUIRE(pairs_in({"猫\tthe cat\n", "犬 だ\ta dog\n"}) == kTwo);
  REQUIRE(pairs_in({"a\tx\nb\ty", "c\tz\n", "d\tw\r\n"}) == Pairs{{"a", "x"}, {"b", "y"}, {"c", "z"}, {"d", "w"}});
  const TemporaryFolder folder;
  folder.write("d/1.tsv", "猫\tthe cat\n");
  folder.write("d/2.tsv", "犬 だ\ta dog\n");
  REQUIRE(read_pairs(load_corpus({folder / "d"})).size() == 2);
  // Messages name the file and its line.
  require_refused([] { pairs_in({"a\tx\n", "b\ty\n\tz\n"}); }, {"second.txt: line 2 has an empty source"});
}

TEST_CASE("columns that were hardly meant as they are: a header, JSON lines and CSV") {
  for (const std::string mark : {"", "\uFEFF"}) {
    INFO(mark.size());
    require_refused([&] { pairs_in({mark + "Source\ttarget\na\tx\n"}); },
                    {"first.txt: line 1 reads like a header (Source, target)", "tail -n +2 first.txt > first.txt.new"});
    require_refused(
        [&] {
          pairs_in({mark + "source\na\n", mark + "target\nx\n"});
        },
        {"reads like a header (source, t"});
    REQUIRE(pairs_in({mark + "source\tsource\na\tx\n"}).size() == 2);
    REQUIRE(pairs_in({mark + "source\na\n", "source\nx\n"}).size() == 2);
    REQUIRE(pairs_in({mark + "text\tTexto\na\tx\n"}).size() == 2);
    require_refused([&] { pairs_in({mark + "{\"source\": \"a\"}\n"}); }, {"line 1", "0 tabs", "jq -r", ".source"});
  }
}

TEST_CASE("what turns JSON lines or CSV into columns says which columns it takes, and writes another file") {
  const auto refused = [](const std::string& text, const std::string& name, PairKind kind,
                          const std::vector<std::string>& words) {
    Corpus corpus = pair_corpus({text});
    corpus.files = {name};
    require_refused([&] { read_pairs(corpus, kind); }, words);
  };
  refused(
      "a,x\nb,y\n", "my pairs.csv", PairKind::translation,
      {"my pairs.csv: line 1", "from CSV, if the source and its target are columns 0 and 1, counted from 0 (of a,x;",
       "print(row[0], row[1], sep='\\t')", "< 'my pairs.csv' > 'my pairs.csv'.new"});
  refused("id,\"Text\",label\n1,fine,good\n", "rows.csv", PairKind::labels,
          {"if the text and its label are columns 1 and 2, counted from 0 (of id,\"Text\",label;", "row[1], row[2]"});
  refused("id,stars\n1,2\n", "rows.csv", PairKind::labels, {"columns 0 and 1", "row[0], row[1]"});
  refused(R"({"id": 1, "review": "fine", "tag": "good"})", "rows", PairKind::labels,
          {"if the text and its label are review and tag (of id, review, tag; else name others)",
           "jq -r '[.review, .tag] | @tsv' rows > rows.new"});
  refused(R"({"en": "a", "1st": 1, "a b": 2, "it's": 3, "de": "b"})", "rows", PairKind::translation,
          {"source and its target are en and de (of en, de;", "'[.en, .de] | @tsv'"});
  for (const char* const line : {"{", R"({"one": 1})"})
    refused(line, "rows", PairKind::labels, {"'[.text, .label] | @tsv'"});
}

TEST_CASE("a header is found in each of several files, of which all may have the same") {
  const auto count = [](const std::vector<std::string>& texts, PairKind kind) {
    return read_pairs(pair_corpus(texts), kind).size();
  };
  const std::string rows = "fine\tgood\nawful\tbad\n", header = "text\tlabel\n", table = header + rows;
  const auto labels = [&](const std::vector<std::string>& texts) { return count(texts, PairKind::labels); };
  require_refused([&] { labels({table, table}); }, {"first.txt: line 1 reads like a header (text, label)"});
  require_refused([&] { labels({table, rows}); }, {"first.txt: line 1 reads like a header"});
  require_refused([&] { labels({rows, table}); }, {"second.txt: line 1 reads like a header", "tail -n +2"});
  require_refused([&] { labels({rows, rows, table}); }, {"third.txt: line 1 reads like a header"});
  require_refused([&] { labels({"review\tlabel\n", table}); }, {"first.txt: line 1", "(review, label)"});
  require_refused([&] { labels({"\uFEFF" + table, table}); }, {"first.txt: line 1 reads like a header (text, label)"});
  require_refused([&] { labels({rows, "\uFEFF" + table}); }, {"second.txt: line 1 reads like a header"});
  // The label of another line is none of a header, and a header is the first line of its file.
  REQUIRE(labels({table, table + "so so\tlabel\n"}) == 7);
  REQUIRE(labels({"text\tgood\n", "fine\tgood\n"}) == 2);
  REQUIRE(labels({rows + header, rows}) == 5);

  const auto pairs = [&](const std::vector<std::string>& texts) { return count(texts, PairKind::translation); };
  const std::string columns = "source\ttarget\na\tx\n";
  require_refused([&] { pairs({columns, columns}); }, {"first.txt: line 1 reads like a header (source, target)"});
  require_refused([&] { pairs({"b\ty\n", columns}); }, {"second.txt: line 1 reads like a header"});
  REQUIRE(pairs({"b\ty\nsource\ttarget\n", "a\tx\n"}) == 3);
}

TEST_CASE("parallel files with different numbers of lines are both named, with both numbers") {
  require_refused(
      [] {
        pairs_in({"a\nb\nc\n", "x\ny\n"});
      },
      {"first.txt and second.txt", "same number of lines", "3 and 2"});
  require_refused([] { pairs_in({"a\n", "x\ny"}); }, {"first.txt and second.txt", "1 and 2"});
  require_refused([] { pairs_in({"a\nb", "x\ny\n\n"}); }, {"2 and 3"});  // an empty line is a line
  require_refused([] { pairs_in({"a\n", "x\n", "y\n"}); }, {"two files", "got 3 files"});
}

TEST_CASE("an empty line is refused, naming file and line") {
  require_refused([] { pairs_in({"a\n\nc\n", "x\ny\nz\n"}); }, {"first.txt: line 2 is empty"});
  require_refused([] { pairs_in({"a\nb\nc\n", "x\ny\n\r\n"}); }, {"second.txt: line 3 is empty"});
  require_refused([] { pairs_in({"\n", "\n"}); }, {"first.txt: line 1 is empty"});
  require_refused([] { pairs_in({"a\tx\n\nb\ty\n"}); }, {"first.txt: line 2 is empty"});
  require_refused([] { pairs_in({"a\tx\n\n"}); }, {"first.txt: line 2 is empty"});
  require_refused([] { pairs_in({"\r\n"}); }, {"first.txt: line 1 is empty"});
}

TEST_CASE("a line without exactly one tab is refused, naming file, line and number of tabs") {
  require_refused([] { pairs_in({"a\tx\nb y\n"}); }, {"first.txt: line 2", "one tab", "it has 0 tabs", "two files"});
  require_refused([] { pairs_in({"a\tx\ty\n"}); }, {"first.txt: line 1", "it has 2 tabs"});
  require_refused([] { pairs_in({"a\tx\nb\ty\n\t\tz\t\n"}); }, {"first.txt: line 3", "it has 3 tabs"});
  require_refused([] { pairs_in({"a\tx\n\ty\n"}); }, {"first.txt: line 2 has an empty source"});
  require_refused([] { pairs_in({"a\t\n"}); }, {"first.txt: line 1 has an empty target"});
  require_refused([] { pairs_in({"a\t\r\n"}); }, {"first.txt: line 1 has an empty target"});
  require_refused([] { pairs_in({"\t\n"}); }, {"first.txt: line 1 has an empty source"});
}

TEST_CASE("a sequence that is too long is refused: pair, side, limit, length and remedy") {
  const auto make = [](const std::string& text, std::int64_t most, const std::string& tokenizer = "char") {
    make_pair_dataset(pair_corpus({text}), options_for(0, most, tokenizer));
  };
  make("abc\tx\n", 3);
  make("x\tabc\n", 3);
  require_refused([&] { make("ab\tx\nabcd\tx\n", 3); },
                  {"pair 2, source: ", "at most 3 tokens", "it has 4", "`block_size`", "remove the pair"});
  require_refused([&] { make("a\txyz\n", 2); }, {"pair 1, target: ", "at most 2 tokens", "it has 3"});
  require_refused([&] { make("a\tx\n", 0); }, {"pair 1", "at most 0 tokens", "`block_size`"});
  // Words count as one token each, and the word that occurs once is spelled: a space and three letters.
  make("the the\tthe the\n", 2, "word");
  require_refused([&] { make("the the\tthe\nthe cat\tx\n", 4, "word"); }, {"pair 2", "at most 4 tokens", "it has 5"});
}

TEST_CASE("a pair of several files is named by its own file, and by its number there") {
  const auto refuse = [](const std::vector<std::string>& texts, const std::string& words) {
    require_refused([&] { make_pair_dataset(pair_corpus(texts), options_for(0, 3)); },
                    {words + ": may have at most 3"});
  };
  refuse({"a\tx\nb\ty\n", "a\tx\r\nabcd\tx\r\n"}, "second.txt: pair 2, source");
  refuse({"a\tx\nb\ty\n", "a\tx\n", "a\tabcd"}, "third.txt: pair 1, target");
  refuse({"a\tx\nabcd\ty\n", "a\tx\n"}, "first.txt: pair 2, source");
  refuse({"a\nb\nc\n", "x\ny\nabcd\n"}, "second.txt: pair 3, target");  // parallel files
}

TEST_CASE("characters that a given vocabulary lacks are refused: pair, side and character") {
  PairOptions options = options_for(0, 10);
  const Corpus known = pair_corpus({"abc\txyz\n"}), other = pair_corpus({"abc\txyz\nab\txq\n"}),
               source = pair_corpus({"xyz\txyz\n"});
  options.tokenizers = tokenizers_of(known, "char", false);
  const PairDataset data = make_pair_dataset(known, options);
  REQUIRE(data.tokenizers.source == options.tokenizers.source);
  REQUIRE(data.tokenizers.target == options.tokenizers.target);
  require_refused([&] { make_pair_dataset(other, options); }, {"pair 2, target: ", "q (U+0071)"});
  require_refused([&] { make_pair_dataset(source, options); }, {"pair 1, source: ", "x (U+0078)"});
  // Nobody who trains can choose another policy.
  REQUIRE_THAT(error_message<CorpusError>([&] { make_pair_dataset(other, options); }),
               Catch::Matchers::EndsWith("q (U+0071); leave them out"));
}

TEST_CASE("characters that a vocabulary lacks are left out or replaced on request, and counted") {
  PairOptions options = options_for(0.5, 10);
  options.tokenizers = tokenizers_of(pair_corpus({"abc\txyz\n"}), "char", false);
  const Corpus corpus = pair_corpus({"aQb\tx\nQQ\tyQz\n"});
  options.unknown = Unknown::skip;
  const PairDataset skipped = make_pair_dataset(corpus, options);
  REQUIRE(skipped.unknown == 4);
  REQUIRE(skipped.tokenizers.source->decode(skipped.train.source(0)) == "ab");
  REQUIRE(skipped.val.source(0).empty());  // nothing is left of the line
  REQUIRE(skipped.tokenizers.target->decode(skipped.val.target(0)) == "yz");
  REQUIRE(skipped.val_targets == std::vector<std::string>{"yQz"});  // as it is in the corpus
  options.unknown = Unknown::replace;
  const PairDataset replaced = make_pair_dataset(corpus, options);
  REQUIRE(replaced.unknown == 4);
  REQUIRE(replaced.tokenizers.source->decode(replaced.val.source(0)) == "  ");
  std::int64_t unknown = 5;
  const Tokenizer& tokenizer = *options.tokenizers.source;
  REQUIRE(encode_line(tokenizer, "aQbQ", Unknown::skip, unknown) == tokenizer.encode("ab"));
  REQUIRE(unknown == 7);
  REQUIRE(encode_line(tokenizer, "abc", Unknown::error, unknown) == tokenizer.encode("abc"));
  REQUIRE(unknown == 7);
}

TEST_CASE("the tokenizers of both sides: separate, or one for both") {
  const Corpus corpus = pair_corpus({"aab\txxy\nab\txy\n"});
  for (const std::string kind : {"char", "word"}) {
    const PairTokenizers separate = tokenizers_of(corpus, kind, false);
    REQUIRE(separate.source != separate.target);
    REQUIRE(separate.source->kind() == kind);
    REQUIRE(separate.source->unknown("xyab").size() == 2);
    REQUIRE(separate.target->unknown("xyab").size() == 2);
    const PairTokenizers shared = tokenizers_of(corpus, kind, true);
    REQUIRE(shared.source == shared.target);
    REQUIRE(shared.source->unknown("xyab").empty());
  }
  // The first word of a line counts as one with a space before it, and no word spans lines.
  const Corpus words = pair_corpus({"the cat\tx\nthe dog\tx\ncat cat\tx\n"});
  const PairTokenizers tokenizers = tokenizers_of(words, "word", false);
  REQUIRE(tokenizers.source->encode_line("the cat").size() == 2);
  REQUIRE(tokenizers.source->encode_line("cat the").size() == 2);
  REQUIRE(tokenizers.target->encode_line("x x").size() == 2);
}

TEST_CASE("words are learned from the training pairs alone, characters from all") {
  PairOptions options = options_for(0.5, 20);
  options.tokenizer = "word";
  const PairDataset data = make_pair_dataset(pair_corpus({"cat cat\tx\ndog dog\tq\n"}), options);
  REQUIRE(data.tokenizers.source->encode_line("cat").size() == 1);
  REQUIRE(data.tokenizers.source->encode_line("dog").size() == 4);
  REQUIRE(data.tokenizers.target->unknown("xq").empty());
}

TEST_CASE("the last pairs are for validation: at least one, and never all") {
  REQUIRE(val_pair_count(100, 0) == 0);
  REQUIRE(val_pair_count(100, 0.1) == 10);
  REQUIRE(val_pair_count(100, 0.014) == 1);
  REQUIRE(val_pair_count(100, 0.016) == 2);
  REQUIRE(val_pair_count(1000, 0.0001) == 1);
  REQUIRE(val_pair_count(2, 0.1) == 1);
  require_refused([] { val_pair_count(1, 0.1); }, {"1 of 1 pairs", "`val_fraction`"});
  require_refused([] { val_pair_count(10, 0.99); }, {"10 of 10 pairs"});
  REQUIRE_THROWS_AS(val_pair_count(10, 1), Error);
  REQUIRE_THROWS_AS(val_pair_count(10, -0.1), Error);
  const PairDataset data = make_pair_dataset(pair_corpus({"a\tw\nb\tx\nc\ty\nd\tz\n"}), options_for(0.25, 5));
  REQUIRE(data.train.size() == 3);
  REQUIRE(data.val.size() == 1);
  REQUIRE(data.tokenizers.source->decode(data.train.source(2)) == "c");
  REQUIRE(data.tokenizers.target->decode(data.val.target(0)) == "z");
  REQUIRE(make_pair_dataset(pair_corpus({"a\tw\n"}), options_for(0, 5)).val.size() == 0);
  PairOptions all = options_for(0.25, 5);
  all.validate_all = true;
  const PairDataset whole = make_pair_dataset(pair_corpus({"a\tw\nb\tx y\n"}), all);
  REQUIRE(whole.train.size() == 0);
  REQUIRE(whole.val.size() == 2);
  REQUIRE(whole.val_targets == std::vector<std::string>{"w", "x y"});
}

TEST_CASE("the targets that translations are compared with are normalized, because a model can write no others") {
  const std::string written = "cafe\u0301 \uFB01", normalized = "caf\u00e9 fi";
  const Corpus corpus = pair_corpus({fmt::format("a\tx\nb\t{}\n", written)});
  PairOptions options = options_for(0.5, 10);
  REQUIRE(make_pair_dataset(corpus, options).val_targets == std::vector{written});
  options.tokenizer_options.normalization = Normalization::nfkc;
  const PairDataset data = make_pair_dataset(corpus, options);
  REQUIRE(data.val_targets == std::vector{normalized});
  REQUIRE(data.tokenizers.target->decode_line(data.val.target(0)) == normalized);
  // What counts is the tokenizer of the model, as where it is evaluated on another text.
  PairOptions whole = options_for(0, 10);
  whole.validate_all = true;
  whole.tokenizers = data.tokenizers;
  REQUIRE(make_pair_dataset(corpus, whole).val_targets == std::vector<std::string>{"x", normalized});
}

TEST_CASE("a dataset gives back every line that it was made from") {
  REQUIRE(rc::check("lines of words", [](const std::vector<std::vector<std::uint8_t>>& lines) {
    const std::vector<std::string> parts = {" ", "the", "cat", "猫", "\u3000", "x", "\v"};
    Pairs expected;
    std::string text;
    for (const std::vector<std::uint8_t>& picks : lines) {
      std::string source = "s", target = "t";
      for (const std::uint8_t pick : picks) (pick % 2 == 0 ? source : target) += parts[pick / 2 % parts.size()];
      expected.emplace_back(source, target);
      text += source + '\t' + target + '\n';
    }
    if (text.empty()) return;
    for (const std::string kind : {"char", "byte", "word"}) {
      for (const bool shared : {false, true}) {
        PairOptions options = options_for(0, 10'000, kind);
        options.shared_vocabulary = shared;
        const PairDataset data = make_pair_dataset(pair_corpus({text}), options);
        RC_ASSERT(data.train.size() == std::ssize(expected));
        std::int64_t tokens = 0;
        for (std::int64_t i = 0; i < data.train.size(); ++i) {
          const Pair pair(data.tokenizers.source->decode_line(data.train.source(i)),
                          data.tokenizers.target->decode_line(data.train.target(i)));
          RC_ASSERT(pair == expected[static_cast<std::size_t>(i)]);
          RC_ASSERT(std::ssize(data.train.source(i)) == data.train.source_length(i));
          tokens += data.train.source_length(i) + data.train.target_length(i);
        }
        RC_ASSERT(tokens == data.train.token_count());
      }
    }
  }));
}
