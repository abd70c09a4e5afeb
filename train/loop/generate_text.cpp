#include "train/loop/generate_text.h"

#include <algorithm>

#include "data/text/utf8.h"
#include "nn/generate/kv_cache.h"

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

Tensor ids_tensor(std::span<const std::int32_t> ids) { return tensor(ids, {1, static_cast<std::int64_t>(ids.size())}); }

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

std::vector<std::int32_t> start_of_text(const Tokenizer& tokenizer) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes(id) == "\n") return {id};
  }
  return {0};
}

GeneratedText generate_text(const Gpt& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write,
                            const std::function<bool()>& interrupted) {
  const std::int64_t block_size = model.config.block_size;
  Sampler sampler(options.sampling);
  TextWriter writer(options.stop, write);
  KvCache cache = model.make_cache(1);
  // `ids` is what the model reads next, `window` everything that it has read since the cache was last empty.
  const auto read = prompt.last(std::min(prompt.size(), static_cast<std::size_t>(block_size)));
  std::vector<std::int32_t> ids(read.begin(), read.end()), window;
  GeneratedText text;
  for (; text.tokens < options.max_tokens; ++text.tokens) {
    if (interrupted && interrupted()) {
      text.end = TextEnd::interrupt;
      break;
    }
    window.insert(window.end(), ids.begin(), ids.end());
    if (static_cast<std::int64_t>(window.size()) > block_size) {
      if (!options.recompute) {
        text.end = TextEnd::window;
        break;
      }
      window.erase(window.begin(), window.end() - std::max<std::int64_t>(1, block_size / 2));
      cache.clear();
      ids = window;
    }
    const Tensor logits = model.next_logits(ids_tensor(ids), cache);
    ids = {sampler(logits, sample, static_cast<std::uint64_t>(text.tokens))};
    if (!writer.push(tokenizer.bytes(ids.front()))) return {text.tokens + 1, TextEnd::stop_string};
  }
  writer.finish();
  return text;
}

}  // namespace maki
