#include "train/loop/generate_text.h"

#include <algorithm>
#include <array>
#include <deque>

#include "data/io/utf8.h"

namespace maki {
namespace {

// The text of tokens as whole characters, without what may turn out to be the beginning of a stop string. Stop strings
// are searched in the bytes, before those that are not UTF-8 are replaced.
class HeldText {
 public:
  explicit HeldText(const std::vector<std::string>& stop) : stop_(stop) {}

  /// Appends to `text` what is certain. Returns false if a stop string was reached; the text before it has been
  /// appended.
  bool push(std::string_view bytes, std::string& text) {
    held_ += bytes;
    const std::size_t end = find_stop();
    release(end == std::string::npos ? held_.size() - longest_beginning() : end, text);
    if (end != std::string::npos) text += characters_.finish();
    return end == std::string::npos;
  }
  void finish(std::string& text) {
    release(held_.size(), text);
    text += characters_.finish();
  }

 private:
  std::size_t find_stop() const {
    std::size_t first = std::string::npos;
    for (const std::string& text : stop_) first = std::min(first, held_.find(text));
    return first;
  }
  // Length of the longest end of the held text that is the beginning of a stop string.
  std::size_t longest_beginning() const {
    std::size_t longest = 0;
    for (const std::string& text : stop_) {
      for (std::size_t n = std::min(text.size() - 1, held_.size()); n > longest; --n) {
        if (held_.ends_with(std::string_view(text).substr(0, n))) longest = n;
      }
    }
    return longest;
  }
  void release(std::size_t n, std::string& text) {
    text += characters_.push(std::string_view(held_).substr(0, n));
    held_.erase(0, n);
  }

  const std::vector<std::string>& stop_;
  std::string held_;
  Utf8Stream characters_;  // what was released
};

// Writes texts that are generated at the same time one after the other.
class TextsInOrder {
 public:
  using Write = std::function<void(std::size_t, std::string_view)>;
  using Ended = std::function<void(std::size_t, const GeneratedText&)>;

  TextsInOrder(const std::vector<std::string>& stop, const Write& write, const Ended& ended)
      : stop_(stop), write_(write), ended_(ended) {}

  /// Expects `count` more texts. Their indices follow those of the texts before them.
  void add(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) waiting_.emplace_back(stop_);
  }
  /// The next bytes of text i. Returns false if the text ends here.
  bool push(std::size_t i, std::string_view bytes, const StopRequest& interrupt) {
    Text& text = waiting_[i - current_];
    if (!text.held.push(bytes, text.ready)) {
      text.how.end = TextEnd::stop_string;
    } else if (interrupt.requested()) {
      text.how.end = TextEnd::interrupt;
    }
    if (i == current_) write_ready();
    return text.how.end == TextEnd::length;
  }
  /// Text i ends here with the token for that, whose bytes are not part of it. Returns false.
  bool push_end(std::size_t i) {
    waiting_[i - current_].how.end = TextEnd::end_of_text;
    return false;
  }
  void note(std::size_t i, TokenLogProbabilities token) {
    waiting_[i - current_].how.log_probabilities.push_back(std::move(token));
  }
  void end(std::size_t i, const Generated& result) {
    Text& text = waiting_[i - current_];
    text.ended = true;
    text.how.tokens = result.tokens;
    if (result.reason == StopReason::context_full) text.how.end = TextEnd::window;
    if (text.how.end != TextEnd::stop_string) text.held.finish(text.ready);
    while (!interrupted_ && !waiting_.empty()) {
      write_ready();
      if (!waiting_.front().ended) return;
      ended_(current_, waiting_.front().how);
      interrupted_ = waiting_.front().how.end == TextEnd::interrupt;
      waiting_.pop_front();
      ++current_;
    }
  }
  /// Whether the last text that was written was interrupted.
  bool interrupted() const { return interrupted_; }

 private:
  struct Text {
    explicit Text(const std::vector<std::string>& stop) : held(stop) {}
    HeldText held;
    std::string ready;  // certain, but not yet written
    bool ended = false;
    GeneratedText how;
  };
  void write_ready() {
    std::string& ready = waiting_.front().ready;
    if (!ready.empty()) write_(current_, ready);
    ready.clear();
  }

  const std::vector<std::string>& stop_;
  const Write& write_;
  const Ended& ended_;
  std::deque<Text> waiting_;  // the first one is being written
  std::size_t current_ = 0;   // its index
  bool interrupted_ = false;
};

// How many of the texts are generated together next: at most kTextsAtOnce, and only those with a prompt of the same
// length if the bits of a text would otherwise depend on the others.
std::size_t batch_size(const Generator& model, std::span<const TextStart> texts) {
  constexpr std::size_t kTextsAtOnce = 16;  // which costs little more time than one text
  std::size_t count = 1;
  while (count < std::min(kTextsAtOnce, texts.size()) &&
         (model.same_bits_stepwise() || texts[count].prompt.size() == texts[0].prompt.size()))
    ++count;
  return count;
}

}  // namespace

const char* to_string(TextEnd end) {
  switch (end) {
    case TextEnd::length:
      return "length";
    case TextEnd::stop_string:
      return "stop string";
    case TextEnd::end_of_text:
      return "end of text";
    case TextEnd::window:
      return "window";
    case TextEnd::interrupt:
      break;
  }
  return "interrupt";
}

std::vector<std::int32_t> default_prompt(const Tokenizer& tokenizer, bool separated) {
  const std::optional<std::int32_t> begin = tokenizer.use().begin ? tokenizer.use().begin : tokenizer.end_of_text();
  if (begin && separated) return {*begin};
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes(id) == "\n") return {id};
  }
  return {0};
}

void generate_texts(const Generator& model, const Tokenizer& tokenizer, std::span<const TextStart> texts,
                    const TextOptions& options, const std::function<void(std::size_t, std::string_view)>& write,
                    const std::function<void(std::size_t, const GeneratedText&)>& ended, const StopRequest& interrupt) {
  std::size_t first = 0;
  TextsInOrder written(options.stop, write, ended);
  GenerateOptions generating = options.generate;
  if (options.log_probabilities) {
    generating.watch = [&](std::size_t i, std::int32_t token, const Tensor& logits) {
      written.note(first + i, log_probabilities(logits, token, *options.log_probabilities));
    };
  }
  const std::vector<std::int32_t> ends = tokenizer.ends();
  while (first < texts.size() && !written.interrupted()) {
    const std::span batch = texts.subspan(first, batch_size(model, texts.subspan(first)));
    written.add(batch.size());
    const auto use = [&](std::size_t i, std::int32_t token) {
      if (std::ranges::find(ends, token) != ends.end()) return written.push_end(first + i);
      return written.push(first + i, tokenizer.bytes(token), interrupt);
    };
    const auto end = [&](std::size_t i, const Generated& result) { written.end(first + i, result); };
    generate_batch(model, batch, generating, use, end);
    first += batch.size();
  }
}

GeneratedText generate_text(const Generator& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write, const StopRequest& interrupt) {
  GeneratedText generated;
  generate_texts(
      model, tokenizer, std::array{TextStart{prompt, sample}}, options,
      [&](std::size_t, std::string_view piece) { write(piece); },
      [&](std::size_t, const GeneratedText& text) { generated = text; }, interrupt);
  return generated;
}

}  // namespace maki
