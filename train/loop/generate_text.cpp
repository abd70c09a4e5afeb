#include "train/loop/generate_text.h"

#include <algorithm>

#include "data/text/utf8.h"

namespace maki {
namespace {

// Writes bytes as whole characters, and holds back what may turn out to be the beginning of a stop string.
class TextWriter {
 public:
  TextWriter(const std::vector<std::string>& stop, const std::function<void(std::string_view)>& write)
      : stop_(stop), write_(write) {}

  /// Returns false if a stop string was reached; the text before it has been written.
  bool push(std::string_view bytes) {
    held_ += characters_.push(bytes);
    const std::size_t end = find_stop();
    write(end == std::string::npos ? held_.size() - longest_beginning() : end);
    return end == std::string::npos;
  }
  void finish() {
    held_ += characters_.finish();
    write(std::min(held_.size(), find_stop()));
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
  void write(std::size_t n) {
    if (n > 0) write_(std::string_view(held_).substr(0, n));
    held_.erase(0, n);
  }

  const std::vector<std::string>& stop_;
  const std::function<void(std::string_view)>& write_;
  Utf8Stream characters_;
  std::string held_;
};

}  // namespace

const char* to_string(TextEnd end) {
  switch (end) {
    case TextEnd::length:
      return "length";
    case TextEnd::stop_string:
      return "stop string";
    case TextEnd::window:
      return "window";
    case TextEnd::interrupt:
      break;
  }
  return "interrupt";
}

std::vector<std::int32_t> default_prompt(const Tokenizer& tokenizer) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes(id) == "\n") return {id};
  }
  return {0};
}

GeneratedText generate_text(const Generator& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write,
                            const std::function<bool()>& interrupted) {
  TextWriter writer(options.stop, write);
  TextEnd stopped = TextEnd::length;
  const Generated generated = generate(model, prompt, options.generate, sample, [&](std::int32_t token) {
    if (!writer.push(tokenizer.bytes(token))) {
      stopped = TextEnd::stop_string;
    } else if (interrupted && interrupted()) {
      stopped = TextEnd::interrupt;
    }
    return stopped == TextEnd::length;
  });
  if (stopped == TextEnd::stop_string) return {generated.tokens, stopped};
  writer.finish();
  return {generated.tokens, generated.reason == StopReason::context_full ? TextEnd::window : stopped};
}

}  // namespace maki
