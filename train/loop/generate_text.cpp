#include "train/loop/generate_text.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "data/io/utf8.h"

namespace maki {

// The text of tokens as whole characters, without what may turn out to be the beginning of a stop string. Stop strings
// are searched in the bytes, before those that are not UTF-8 are replaced.
class GrowingText::Held {
 public:
  explicit Held(const std::vector<std::string>& stop) : stop_(stop) {}

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

GrowingText::GrowingText(const Tokenizer& tokenizer, const TextOptions& options)
    : tokenizer_(tokenizer), options_(options), ends_(tokenizer.ends()), held_(std::make_unique<Held>(options.stop)) {}
GrowingText::~GrowingText() = default;
GrowingText::GrowingText(GrowingText&&) noexcept = default;

bool GrowingText::add(std::int32_t token, const Tensor& logits, const StopRequest& interrupt) {
  if (options_.log_probabilities)
    how_.log_probabilities.push_back(log_probabilities(logits, token, *options_.log_probabilities));
  if (std::ranges::find(ends_, token) != ends_.end()) {
    how_.end = TextEnd::end_of_text;  // its bytes are not part of the text
  } else if (!held_->push(tokenizer_.bytes(token), ready_)) {
    how_.end = TextEnd::stop_string;
  } else if (interrupt.requested()) {
    how_.end = TextEnd::interrupt;
  }
  return how_.end == TextEnd::length;
}

void GrowingText::end(const Generated& result) {
  ended_ = true;
  how_.tokens = result.tokens;
  if (result.reason == StopReason::context_full) how_.end = TextEnd::window;
  // It was stopped, although it would have gone on.
  if (result.reason == StopReason::stopped && how_.end == TextEnd::length) how_.end = TextEnd::interrupt;
  if (how_.end != TextEnd::stop_string) held_->finish(ready_);
}

std::string GrowingText::take() { return std::exchange(ready_, {}); }

namespace {

// Writes texts that are generated at the same time one after the other.
class TextsInOrder {
 public:
  using Write = std::function<void(std::size_t, std::string_view)>;
  using Ended = std::function<void(std::size_t, const GeneratedText&)>;

  TextsInOrder(const Write& write, const Ended& ended) : write_(write), ended_(ended) {}

  /// Expects one more text, whose index follows that of the text before it.
  void expect(GrowingText text) { waiting_.push_back(std::move(text)); }
  /// The next token of text i. Returns false if the text ends here.
  bool add(std::size_t i, std::int32_t token, const Tensor& logits, const StopRequest& interrupt) {
    const bool goes_on = waiting_[i - current_].add(token, logits, interrupt);
    if (i == current_ && !interrupted_) write_ready();
    return goes_on;
  }
  void end(std::size_t i, const Generated& result) {
    waiting_[i - current_].end(result);
    while (!interrupted_ && !waiting_.empty()) {
      write_ready();
      if (!waiting_.front().ended()) return;
      ended_(current_, waiting_.front().how());
      interrupted_ = waiting_.front().how().end == TextEnd::interrupt;
      waiting_.pop_front();
      ++current_;
    }
  }
  /// Whether the last text that was written was interrupted.
  bool interrupted() const { return interrupted_; }

 private:
  void write_ready() {
    if (const std::string ready = waiting_.front().take(); !ready.empty()) write_(current_, ready);
  }

  const Write& write_;
  const Ended& ended_;
  std::deque<GrowingText> waiting_;  // the first one is being written
  std::size_t current_ = 0;          // its index
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
  TextsInOrder written(write, ended);
  const GenerateOptions& how = options.generate;
  while (first < texts.size() && !written.interrupted()) {
    const std::span batch = texts.subspan(first, batch_size(model, texts.subspan(first)));
    for (std::size_t i = 0; i < batch.size(); ++i) written.expect(GrowingText(tokenizer, options));
    GenerateOptions generating = how;
    std::vector<bool> goes_on(batch.size());
    generating.watch = [&](std::size_t i, std::int32_t token, const Tensor& logits) {
      if (how.watch) how.watch(first + i, token, logits);
      goes_on[i] = written.add(first + i, token, logits, interrupt);
    };
    const auto use = [&](std::size_t i, std::int32_t) { return goes_on[i]; };
    const auto end = [&](std::size_t i, const Generated& result) { written.end(first + i, result); };
    generate_batch(model, batch, generating, use, end, interrupt);
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
