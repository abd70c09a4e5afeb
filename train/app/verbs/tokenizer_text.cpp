// maki tokenizer encode TOKENIZER [FILE…]      maki tokenizer decode TOKENIZER [FILE…]
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "train/app/flags.h"
#include "train/app/verbs/tokenizer.h"

namespace maki {
namespace {

struct TextOptions {
  std::string tokenizer;
  std::vector<std::string> files;
  std::int64_t threads = 0;
  bool lines = false, special = false, json = false;
};

void write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
    throw std::system_error(errno, std::generic_category());
}

void read_sources(const std::vector<std::string>& files, const ByteSink& sink) {
  if (files.empty()) return read_input("-", sink);
  for (const std::string& file : files) read_input(file, sink);
}

// A line without the carriage return at its end, which Windows puts before the newline.
std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Encodes bytes as they arrive and prints the ids: of the whole text in one line, or of each of its lines.
class IdPrinter {
 public:
  IdPrinter(const Tokenizer& tokenizer, const TextOptions& options) : tokenizer_(tokenizer), options_(options) {}

  void push(std::string_view bytes) {
    bytes_ += static_cast<std::int64_t>(bytes.size());
    text_ += bytes;
    if (options_.lines) {
      push_lines();
    } else if (!options_.special && text_.size() >= next_try_) {
      push_part();
    }
  }
  void finish() {
    if (!options_.lines || !text_.empty()) print(options_.lines ? without_return(text_) : text_);
    if (options_.json) {
      fmt::print("{}\n", nlohmann::ordered_json{{"bytes", bytes_}, {"tokens", count_}, {"ids", ids_}}.dump());
    } else if (!options_.lines) {
      write("\n");
    }
  }

 private:
  void push_lines() {
    std::size_t begin = 0;
    for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
      print(without_return(std::string_view(text_).substr(begin, end - begin)));
    text_.erase(0, begin);
  }
  // A special token could stand across the cut, so with --special the text is encoded as a whole.
  void push_part() {
    const std::size_t cut = tokenizer_.next_cut(text_, text_.size() / 2);
    next_try_ = 2 * text_.size();
    if (cut == text_.size()) return;  // perhaps only because the text ends here
    print(std::string_view(text_).substr(0, cut));
    text_.erase(0, cut);
    next_try_ = text_.size() + kPartBytes;
  }
  void print(std::string_view text) {
    Tokens ids(tokenizer_.vocab_size());
    if (options_.special) {
      ids.append(tokenizer_.encode_with_specials(text));
    } else {
      tokenizer_.encode(text, ids);
    }
    count_ += static_cast<std::int64_t>(ids.size());
    if (options_.json) {
      const std::vector<std::int32_t> more = ids.ids();
      ids_.insert(ids_.end(), more.begin(), more.end());
      return;
    }
    std::string out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (std::exchange(separate_, true)) out += ' ';
      out += fmt::format_int(ids[i]).c_str();
    }
    if (options_.lines) {
      out += '\n';
      separate_ = false;
    }
    write(out);
  }

  static constexpr std::size_t kPartBytes = 1 << 22;  // that arrive before a part is encoded; not measured
  const Tokenizer& tokenizer_;
  const TextOptions& options_;
  std::string text_;  // not yet encoded
  std::size_t next_try_ = kPartBytes;
  std::int64_t bytes_ = 0, count_ = 0;
  bool separate_ = false;
  std::vector<std::int32_t> ids_;
};

// Prints the bytes of ids that are separated by white space.
class TextPrinter {
 public:
  explicit TextPrinter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void push(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        finish_id();
      } else {
        id_ += c;
        check<CorpusError>(id_.size() <= 20, "tokenizer: ids must be whole numbers; got {}", truncate_for_message(id_));
      }
    }
    write(std::exchange(text_, {}));
  }
  void finish() {
    finish_id();
    write(text_);
  }

 private:
  void finish_id() {
    if (id_.empty()) return;
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(id_.data(), id_.data() + id_.size(), id);
    check<CorpusError>(error == std::errc() && end == id_.data() + id_.size(),
                       "tokenizer: ids must be whole numbers in [0, {}); got {}", tokenizer_.vocab_size(),
                       truncate_for_message(id_));
    text_ += tokenizer_.bytes(id);
    id_.clear();
  }

  const Tokenizer& tokenizer_;
  std::string id_, text_;
};

int encode(const TextOptions& o) {
  check(!o.lines || !o.json,
        "tokenizer: --lines prints one line per line of text, and --json a single object; use one");
  if (o.threads != 0) set_threads(o.threads);
  const auto tokenizer = open_tokenizer(o.tokenizer);
  IdPrinter printer(*tokenizer, o);
  read_sources(o.files, [&](std::string_view bytes) { printer.push(bytes); });
  printer.finish();
  return 0;
}

int decode(const TextOptions& o) {
  const auto tokenizer = open_tokenizer(o.tokenizer);
  TextPrinter printer(*tokenizer);
  read_sources(o.files, [&](std::string_view bytes) { printer.push(bytes); });
  printer.finish();
  return 0;
}

std::shared_ptr<TextOptions> add_sources(const Command& command, const char* what) {
  const auto o = std::make_shared<TextOptions>();
  command.add_argument("TOKENIZER", o->tokenizer, "tokenizer file or directory, run directory, or .maki file")
      .require();
  command.add_argument("FILE", o->files, fmt::format("files with {}, read as one; - or none: standard input", what));
  return o;
}

}  // namespace

void add_tokenizer_encode(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("encode", "Print the ids of a text");
  const auto o = add_sources(command, "text");
  command.add_flag("--lines", o->lines,
                   "encode each line by itself, without its end, and print one line of ids for it");
  command.add_flag("--special", o->special,
                   "read special tokens that are written in the text, such as <|endoftext|>, as these tokens");
  command.add_flag("--json", o->json, "print the number of bytes and tokens, and the ids, as JSON");
  add_threads_option(command, o->threads);
  command.set_action([o] { return encode(*o); });
}

void add_tokenizer_decode(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("decode", "Print the text of ids that are separated by white space");
  const auto o = add_sources(command, "ids");
  command.set_action([o] { return decode(*o); });
}

}  // namespace maki
