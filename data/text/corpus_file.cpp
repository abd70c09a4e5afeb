#include "data/text/corpus_file.h"

#include <algorithm>
#include <array>

#include "data/text/encoding.h"
#include "data/text/error.h"
#include "data/text/file.h"
#include "data/text/file_signature.h"
#include "data/text/shell_quote.h"
#include "data/text/utf8.h"

namespace maki {
namespace {

// If a larger share of the bytes is invalid, the file is probably in another encoding or not text at all.
constexpr double kMaxReplacedShare = 0.01;

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}
bool is_utf8(const std::string& encoding) { return upper(encoding) == "UTF-8" || upper(encoding) == "UTF8"; }

// A file that is being appended to the corpus. Its bytes are those of corpus.text from `begin` on.
struct Arriving {
  const std::string& path;
  std::string name;  // for messages
  const CorpusOptions& options;
  std::size_t begin;

  bool from_input() const { return path == "-"; }
  std::string word() const { return from_input() ? "FILE" : shell_quote(path); }
};

void check_compression(const Arriving& file, std::string_view bytes) {
  const Compression* const format = detect_compression(bytes);
  if (format == nullptr) return;
  fail<CorpusError>("{}: is compressed ({}); unpack it with: {} {}, or pipe its text in: {} {} | maki train -",
                    file.name, format->name, format->unpack, file.word(), format->print, file.word());
}

// The end of an error message for a file whose encoding was recognised: what to do.
std::string remedy(const Arriving& file, const std::string& encoding) {
  return fmt::format(
      "it seems to be {0}; convert it with: iconv -f {0} -t UTF-8 {1} > {2}, or read it as it is with --encoding {0}",
      encoding, file.word(), file.from_input() ? "TEXT" : shell_quote(file.path + ".utf8"));
}

// Throws unless the bytes are UTF-8, or few enough of them are invalid and the options allow replacing them.
void check_utf8(Corpus& corpus, const Arriving& file) {
  const std::string_view bytes = std::string_view(corpus.text).substr(file.begin);
  const auto bad = invalid_utf8(bytes);
  const std::string expected =
      fmt::format("{}: text must be UTF-8{}; ", file.name, bad ? fmt::format(" (byte {} is not)", *bad) : "");
  const auto encoding = file.options.encoding.empty() ? detect_encoding(bytes) : std::nullopt;
  const bool certain = encoding && (encoding->starts_with("UTF-") || encoding->starts_with("ISO-2022"));
  if (encoding && (certain || file.options.invalid == InvalidUtf8::error))
    fail<CorpusError>("{}{}", expected, remedy(file, *encoding));
  if (!bad) return;
  check<CorpusError>(
      file.options.invalid == InvalidUtf8::replace,
      "{}: text must be UTF-8; byte {} is not; convert the file, specify its encoding with --encoding, or "
      "replace such bytes with --invalid-utf8 replace",
      file.name, *bad);
  const std::size_t count = count_invalid_utf8(bytes);
  check<CorpusError>(static_cast<double>(count) <= kMaxReplacedShare * static_cast<double>(bytes.size()),
                     "{}: text must be UTF-8; {} of its {} bytes are not, and --invalid-utf8 replace accepts at most "
                     "1 %; {}",
                     file.name, count, bytes.size(),
                     encoding ? remedy(file, *encoding) : "specify its encoding with --encoding");
  corpus.notes.push_back(
      fmt::format("{}: replaced {} of {} bytes, which were not UTF-8, with U+FFFD", file.name, count, bytes.size()));
  const std::string replaced = replace_invalid_utf8(bytes);
  corpus.text.replace(file.begin, std::string::npos, replaced);
}

void read_decoded(Corpus& corpus, const Arriving& file) {
  Decoder decoder(file.options.encoding, file.name, file.options.invalid);
  const auto push = [&](std::string_view bytes) {
    if (decoder.bytes() == 0) check_compression(file, bytes);
    decoder.push(bytes, corpus.text);
  };
  if (file.from_input()) {
    read_standard_input(push);
  } else {
    read_file(file.path, push);
  }
  decoder.finish(corpus.text);
  if (decoder.replaced() == 0) return;
  check<CorpusError>(
      static_cast<double>(decoder.replaced()) <= kMaxReplacedShare * static_cast<double>(decoder.bytes()),
      "{}: {} of its {} bytes are not {}, and --invalid-utf8 replace accepts at most 1 %; choose another --encoding",
      file.name, decoder.replaced(), decoder.bytes(), file.options.encoding);
  corpus.notes.push_back(fmt::format("{}: replaced {} of {} bytes, which were not {}, with U+FFFD", file.name,
                                     decoder.replaced(), decoder.bytes(), file.options.encoding));
}

void read_utf8(Corpus& corpus, const Arriving& file) {
  if (file.from_input()) {
    append_standard_input(corpus.text);
  } else {
    append_file(file.path, corpus.text);
  }
  check_compression(file, std::string_view(corpus.text).substr(file.begin));
  check_utf8(corpus, file);
}

}  // namespace

void append_corpus_file(Corpus& corpus, const std::string& path, const CorpusOptions& options) {
  const std::size_t begin = corpus.text.size();
  const Arriving file{path, path == "-" ? "standard input" : path, options, begin};
  if (options.encoding.empty() || is_utf8(options.encoding)) {
    read_utf8(corpus, file);
  } else {
    read_decoded(corpus, file);
  }
  if (begin > 0 && corpus.text.size() > begin) corpus.joins.push_back(begin);
  if (corpus.text.size() > begin) corpus.files.push_back(file.name);
}

bool has_zero_bytes(const std::string& encoding) {
  const std::string name = upper(encoding);
  return std::ranges::any_of(std::array{"UTF-16", "UTF16", "UTF-32", "UTF32", "UCS", "UNICODE"},
                             [&](const char* prefix) { return name.starts_with(prefix); });
}

}  // namespace maki
