// How a text ends: stop strings in bytes that tokens divide in any way, the token that ends a text, and interrupts. The
// model of this test predicts what a script says.
#include "train/loop/generate_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/catch.h"

using namespace maki;

namespace {

class CountingState final : public State {
 public:
  explicit CountingState(std::int64_t batch) : rows(batch) {}
  std::int64_t batch() const override { return rows; }
  std::int64_t length() const override { return read; }
  std::int64_t capacity() const override { return 1000; }
  void clear() override { read = 0; }
  void reorder(std::span<const std::int32_t> kept) override { rows = std::ssize(kept); }
  std::vector<std::pair<std::string, Tensor*>> tensors() override { return {}; }
  std::int64_t rows, read = 0;
};

// Predicts script[n − 1] after n tokens, for a prompt of one token.
class Scripted final : public Generator {
 public:
  Scripted(std::vector<std::int32_t> script, std::int64_t vocabulary) : script_(std::move(script)), size_(vocabulary) {}
  const char* kind() const override { return "scripted"; }
  Tensor loss(const Batch&, const CrossEntropy&, State*) const override { return {}; }
  double attention_flop(std::int64_t) const override { return 0; }
  std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 0; }
  std::unique_ptr<State> start(std::int64_t batch, const Tensor&, const Tensor&) const override {
    return std::make_unique<CountingState>(batch);
  }
  Tensor next_logits(const Tensor& ids, State& state) const override {
    auto& counting = dynamic_cast<CountingState&>(state);
    counting.read += ids.shape()[1];
    most_read = std::max(most_read, counting.read);
    std::vector<double> logits(static_cast<std::size_t>(counting.rows * size_));
    const auto next = static_cast<std::size_t>(counting.read - 1);
    const std::int64_t id = script_[std::min(next, script_.size() - 1)];
    for (std::int64_t row = 0; row < counting.rows; ++row) logits[static_cast<std::size_t>(row * size_ + id)] = 1;
    return tensor<double>(logits, {counting.rows, size_});
  }
  mutable std::int64_t most_read = 0;  // tokens of one text

 private:
  std::vector<std::int32_t> script_;
  std::int64_t size_;
};

// Token i is the i-th of the given pieces of bytes. The last one ends a text.
class Pieces final : public Tokenizer {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::string kind() const override { return "pieces"; }
  std::int64_t vocab_size() const override { return std::ssize(pieces_); }
  std::size_t token_bound(std::string_view text) const override { return text.size(); }
  std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  std::string_view bytes(std::int32_t id) const override { return pieces_.at(static_cast<std::size_t>(id)); }
  std::string save_encoding() const override { return {}; }
  std::optional<std::int32_t> named_end() const override { return static_cast<std::int32_t>(pieces_.size()) - 1; }

 private:
  std::vector<std::string> pieces_;
};

struct Result {
  std::string text;
  GeneratedText how;
};

// The text that a model writes with these pieces, one after the other, and then the token that ends a text.
Result write(const std::vector<std::string>& pieces, const std::vector<std::string>& stop,
             std::optional<std::int64_t> log_probabilities = {}) {
  std::vector<std::string> all = pieces;
  all.emplace_back("<end>");
  std::vector<std::int32_t> script;
  for (std::size_t i = 0; i < all.size(); ++i) script.push_back(static_cast<std::int32_t>(i));
  const Scripted model(script, std::ssize(all));
  const Pieces tokenizer(all);
  TextOptions options;
  options.generate.max_tokens = std::ssize(all) + 5;
  options.generate.sampling.temperature = 0;
  options.stop = stop;
  options.log_probabilities = log_probabilities;
  Result result;
  result.how = generate_text(model, tokenizer, std::array<std::int32_t, 1>{0}, options, 0,
                             [&](std::string_view piece) { result.text += piece; });
  return result;
}

// All ways to cut a text into pieces.
std::vector<std::vector<std::string>> cuts(const std::string& text) {
  std::vector<std::vector<std::string>> list;
  for (std::uint32_t mask = 0; mask < (1U << (text.size() - 1)); ++mask) {
    std::vector<std::string> pieces(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      pieces.back() += text[i];
      if (i + 1 < text.size() && (mask >> i & 1U) != 0) pieces.emplace_back();
    }
    list.push_back(std::move(pieces));
  }
  return list;
}

}  // namespace

TEST_CASE("a stop string ends the text before it, however tokens divide its bytes") {
  // 巻物 is six bytes.
  for (const std::vector<std::string>& pieces : cuts("a巻物b")) {
    for (const std::string stop : {"巻", "物", "巻物", "物b", "a"}) {
      const Result result = write(pieces, {"never", stop});
      INFO(pieces.size() << " tokens, " << stop);
      REQUIRE(result.text == std::string("a巻物b").substr(0, std::string("a巻物b").find(stop)));
      REQUIRE(result.how.end == TextEnd::stop_string);
    }
    REQUIRE(write(pieces, {"巻c", "bb"}).text == "a巻物b");
  }
}

TEST_CASE("a stop string may be in a text that is not UTF-8, and may be no UTF-8 itself") {
  for (const std::vector<std::string>& pieces : cuts("a\xFF\xE5\xB7stop")) {
    REQUIRE(write(pieces, {"stop"}).text == "a\uFFFD\uFFFD");
    REQUIRE(write(pieces, {"\xE5\xB7s"}).text == "a\uFFFD");
    REQUIRE(write(pieces, {"\xB7"}).text == "a\uFFFD\uFFFD");
    REQUIRE(write(pieces, {"\xFE"}).text == "a\uFFFD\uFFFDstop");
  }
}

TEST_CASE("zero bytes are text like others, also in a stop string") {
  const std::string text("a\0\0b", 4);
  for (const std::vector<std::string>& pieces : cuts(text)) {
    REQUIRE(write(pieces, {}).text == text);
    REQUIRE(write(pieces, {std::string("\0c", 2)}).text == text);
    REQUIRE(write(pieces, {std::string("\0b", 2)}).text == text.substr(0, 2));
  }
}

TEST_CASE("the token that ends a text ends it, and its bytes are not written") {
  const Result result = write({"ab", "c", "<en"}, {});
  REQUIRE(result.text == "abc<en");
  REQUIRE(result.how.end == TextEnd::end_of_text);
  REQUIRE(std::string(to_string(result.how.end)) == "end of text");
  REQUIRE(result.how.tokens == 4);
  // What may have been the beginning of a stop string is written.
  REQUIRE(write({"ab", "c"}, {"cd"}).text == "abc");
  REQUIRE(write({"ab", "\xE5"}, {}).text == "ab\uFFFD");
}

TEST_CASE("log-probabilities are those of all tokens drawn, with the end of the text") {
  const Result result = write({"ab", "c"}, {}, 2);
  REQUIRE(result.how.log_probabilities.size() == 3);
  for (std::int32_t i = 0; i < 3; ++i) {
    const TokenLogProbabilities& token = result.how.log_probabilities[static_cast<std::size_t>(i)];
    REQUIRE(token.drawn.id == i);
    REQUIRE(token.drawn.value == Approx(1 - std::log(std::exp(1.0) + 2)));
    REQUIRE(token.top.size() == 2);
    REQUIRE(token.top[0].id == i);
  }
  REQUIRE(write({"ab", "c"}, {}).how.log_probabilities.empty());
}

TEST_CASE("an interrupt ends the text that is being written, and nothing of the next ones is written") {
  using Events = std::vector<std::pair<std::size_t, std::string>>;
  const Scripted model({0, 1, 2}, 3);
  const Pieces tokenizer({"ab", "c", "<end>"});
  TextOptions options;
  options.generate.sampling.temperature = 0;
  const auto interrupted = [&](std::size_t prompt_tokens, int asked_before, std::int64_t drawn) {
    const std::vector<std::int32_t> prompt(prompt_tokens, 0);
    Events written;
    std::size_t ends = 0;
    int asked = 0;
    generate_texts(
        model, tokenizer, std::vector<TextStart>(3, TextStart{prompt}), options,
        [&](std::size_t i, std::string_view piece) { written.emplace_back(i, piece); },
        [&](std::size_t i, const GeneratedText& text) {
          REQUIRE(i == ends++);
          REQUIRE(text.end == TextEnd::interrupt);
          REQUIRE(text.tokens == drawn);
        },
        StopRequest([&] { return ++asked > asked_before; }));
    REQUIRE(ends == 1);
    return written;
  };
  REQUIRE(interrupted(1, 0, 1) == Events{{0, "ab"}});
  REQUIRE(interrupted(1, 1, 1) == Events{{0, "ab"}});  // first noticed by the second text
  REQUIRE(model.most_read == 1);
  REQUIRE(interrupted(900, 0, 0).empty());
  REQUIRE(model.most_read == GenerationBatch::kMaxReadTokens);
}
