// A corpus: one text, from files, directories, standard input or the built-in stories, and where it is split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

enum class InvalidUtf8 : std::uint8_t { error, replace };

struct Corpus {
  std::vector<std::string> sources;  ///< as given
  std::string text;                  ///< well-formed UTF-8; the sources in order, joined by nothing
  std::string hash;                  ///< XXH3-128 of the text, in hexadecimal
  std::int64_t characters = 0;
  std::vector<std::size_t> story_starts;   ///< of the built-in stories: byte offsets; empty for other texts
  std::optional<double> entropy_per_char;  ///< nats, of the built-in stories: the best possible loss a character
};

/// Sources are files, directories (all files below, by the bytes of their paths), "-" for standard input, and
/// "@stories[:CHARS]" or "@stories-ja[:CHARS]" alone. Throws CorpusError for one that is missing, unreadable or not
/// UTF-8 (naming the byte), and for an empty text. Nothing is stripped or normalised, a byte-order mark neither.
Corpus load_corpus(const std::vector<std::string>& sources, InvalidUtf8 invalid = InvalidUtf8::error);

/// Byte offset where the validation text begins: the last val_fraction of the characters, of stories whole ones. The
/// size of the text when val_fraction is 0. Throws Error unless val_fraction is in [0, 1).
std::size_t split_offset(const Corpus& corpus, double val_fraction);

}  // namespace maki
