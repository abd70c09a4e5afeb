#include "data/text/corpus_file.h"

#include <algorithm>
#include <utility>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"
#include "data/text/encoding.h"
#include "data/text/file_signature.h"

namespace maki {
namespace {

// If a larger share of the bytes is invalid, the file is probably in another encoding or not text at all: damage is
// rare, while another encoding spoils every letter beyond ASCII.
constexpr double kMaxReplacedShare = 0.01;

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}
bool is_utf8(const std::string& encoding) { return upper(encoding) == "UTF-8" || upper(encoding) == "UTF8"; }

// A file that is being read.
struct Arriving {
  Arriving(const std::string& given_path, const CorpusOptions& given_options)
      : path(given_path), name(given_path == "-" ? "standard input" : given_path), options(given_options) {}

  bool from_input() const { return path == "-"; }
  std::string word() const { return from_input() ? "FILE" : shell_quote(path); }

  const std::string& path;
  std::string name;  // for messages
  const CorpusOptions& options;
  std::size_t bytes = 0, invalid = 0;   // checked so far: all, and those that are not UTF-8
  std::optional<std::string> encoding;  // the encoding that was recognised
};

// Refuses files that are recognised by their first bytes and are not text.
void check_signature(const Arriving& file, std::string_view bytes) {
  const std::string other = describe_other_file(bytes, file.word());
  check<CorpusError>(other.empty(), "{}: {}", file.name, other);
  const Compression* const format = detect_compression(bytes);
  if (format == nullptr) return;
  fail<CorpusError>("{}: is compressed ({}); unpack it with: {} {}, or pipe its text in: {} {} | maki train -",
                    file.name, format->name, format->unpack, file.word(), format->print, file.word());
}

// The end of an error message for a file whose encoding was recognised: what to do.
std::string remedy(const Arriving& file, const std::string& encoding) {
  return fmt::format(
      "it seems to be {0}; convert it with: iconv -f {0} -t UTF-8 {1} > {2}, or read it as it is with `encoding` {0}",
      encoding, file.word(), file.from_input() ? "TEXT" : shell_quote(file.path + ".utf8"));
}

// The first block, or a block with invalid bytes, shows whether the text has another encoding.
void recognise(Arriving& file, std::string_view block, std::optional<std::size_t> bad) {
  if (!file.options.encoding.empty() || (file.bytes > 0 && !bad)) return;
  file.encoding = detect_encoding(block, /*is_beginning=*/file.bytes == 0);
  if (!file.encoding) return;
  const bool certain = file.encoding->starts_with("UTF-") || file.encoding->starts_with("ISO-2022");
  if (certain || file.options.invalid == InvalidUtf8::error)
    fail<CorpusError>("{}: text must be UTF-8{}; {}", file.name,
                      bad ? fmt::format(" (byte {} is not)", file.bytes + *bad) : "", remedy(file, *file.encoding));
}

// Replaces the invalid bytes of text[begin, …), which follows what was checked before, or throws.
void check_utf8(Arriving& file, std::string& text, std::size_t begin) {
  const std::string_view block = std::string_view(text).substr(begin);
  const auto bad = invalid_utf8(block);
  recognise(file, block, bad);
  const std::size_t before = std::exchange(file.bytes, file.bytes + block.size());
  if (!bad) return;
  const char* const advice = is_binary(block)
                                 ? "it has zero bytes as well, so it is probably no text: name a file of text"
                                 : "convert the file, specify its encoding with `encoding`, or replace such bytes with "
                                   "`invalid_utf8` replace";
  check<CorpusError>(file.options.invalid == InvalidUtf8::replace, "{}: text must be UTF-8; byte {} is not; {}",
                     file.name, before + *bad, advice);
  file.invalid += count_invalid_utf8(block);
  const std::string replaced = replace_invalid_utf8(block);
  text.replace(begin, std::string::npos, replaced);
}

void finish_utf8(const Arriving& file, std::vector<std::string>& notes) {
  if (file.invalid == 0) return;
  check<CorpusError>(
      static_cast<double>(file.invalid) <= kMaxReplacedShare * static_cast<double>(file.bytes),
      "{}: text must be UTF-8; {} of its {} bytes are not, and `invalid_utf8` replace accepts at most 1 %; {}",
      file.name, file.invalid, file.bytes,
      file.encoding ? remedy(file, *file.encoding) : "specify its encoding with `encoding`");
  notes.push_back(fmt::format("{}: replaced {} of {} bytes, which were not UTF-8, with U+FFFD", file.name, file.invalid,
                              file.bytes));
}

void read_decoded(const Arriving& file, std::string& text, std::vector<std::string>& notes,
                  const std::function<void()>& after) {
  Decoder decoder(file.options.encoding, file.name, file.options.invalid);
  read_input(file.path, [&](std::string_view bytes) {
    if (decoder.bytes() == 0) check_signature(file, bytes);
    decoder.push(bytes, text);
    after();
  });
  decoder.finish(text);
  if (decoder.replaced() == 0) return;
  check<CorpusError>(
      static_cast<double>(decoder.replaced()) <= kMaxReplacedShare * static_cast<double>(decoder.bytes()),
      "{}: {} of its {} bytes are not {}, and `invalid_utf8` replace accepts at most 1 %; choose another `encoding`",
      file.name, decoder.replaced(), decoder.bytes(), file.options.encoding);
  notes.push_back(fmt::format("{}: replaced {} of {} bytes, which were not {}, with U+FFFD", file.name,
                              decoder.replaced(), decoder.bytes(), file.options.encoding));
}

bool is_decoded(const CorpusOptions& options) { return !options.encoding.empty() && !is_utf8(options.encoding); }

// The size of the beginning of the text that certainly ends with a whole character.
std::size_t whole_characters(std::string_view text) {
  constexpr std::size_t kMaxContinuations = 3;  // bytes of a character of UTF-8 after its first
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < kMaxContinuations && is_continuation(text[end - 1])) --end;
  return end > 0 && static_cast<unsigned char>(text[end - 1]) >= 0xC0 ? end - 1 : text.size();
}

// Appends the text of a file to `text` and finds its documents in it.
void append_text(Arriving& file, std::string& text, std::vector<std::string>& notes) {
  if (is_decoded(file.options)) return read_decoded(file, text, notes, [] {});
  const std::size_t begin = text.size();
  append_input(file.path, text);
  check_signature(file, std::string_view(text).substr(begin));
  check_utf8(file, text, begin);
  finish_utf8(file, notes);
}

// Replaces the text from `begin` on with that of the documents in it. Returns the number of separators.
std::int64_t find_documents(Corpus& corpus, const Arriving& file, std::size_t begin) {
  const std::string text = corpus.text.substr(begin);
  corpus.text.resize(begin);
  std::size_t start = begin;
  DocumentReader reader(
      file.options.documents, file.name, [&](std::string_view part) { corpus.text += part; },
      [&] {
        if (corpus.text.size() > start) corpus.documents.push_back(start);
        start = corpus.text.size();
      });
  reader.push(text);
  reader.finish();
  return reader.separators();
}

}  // namespace

void read_corpus_file(const std::string& path, const CorpusOptions& options, std::size_t block_size,
                      const std::function<void(std::string_view)>& block, std::vector<std::string>& notes) {
  Arriving file(path, options);
  std::string text;
  const auto give = [&](std::size_t size) {
    if (size > 0) block(std::string_view(text).substr(0, size));
    text.erase(0, size);
  };
  if (is_decoded(options)) {
    read_decoded(file, text, notes, [&] {
      if (text.size() >= block_size) give(text.size());
    });
    return give(text.size());
  }
  std::string arrived;
  const auto check_arrived = [&](std::size_t size) {
    if (file.bytes == 0) check_signature(file, arrived);
    text.assign(arrived, 0, size);
    arrived.erase(0, size);
    check_utf8(file, text, 0);
    give(text.size());
  };
  read_input(file.path, [&](std::string_view bytes) {
    arrived += bytes;
    if (arrived.size() >= block_size) check_arrived(whole_characters(arrived));
  });
  check_arrived(arrived.size());
  finish_utf8(file, notes);
}

std::int64_t append_corpus_file(Corpus& corpus, const std::string& path, const CorpusOptions& options) {
  const std::size_t begin = corpus.text.size();
  Arriving file(path, options);
  append_text(file, corpus.text, corpus.notes);
  const std::int64_t separators = options.documents.any() ? find_documents(corpus, file, begin) : 0;
  if (begin > 0 && corpus.text.size() > begin) corpus.joins.push_back(begin);
  if (corpus.text.size() > begin) corpus.files.push_back(file.name);
  return separators;
}

bool has_zero_bytes(const std::string& encoding) { return !encoding.empty() && unit_bytes(encoding) > 1; }

}  // namespace maki
