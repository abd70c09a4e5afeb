// A corpus: the text of files, directories, standard input or the built-in stories, and its split into training and
// validation text. "Character" means Unicode code point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/encoding.h"

namespace maki {

struct CorpusOptions {
  /// What to do with invalid bytes; `replace` accepts them in up to 1 % of the bytes of a file.
  InvalidUtf8 invalid = InvalidUtf8::error;
  /// Encoding of files and standard input, by its name in iconv. Empty: UTF-8; text that is recognised to be in another
  /// encoding is rejected with an error that names it.
  std::string encoding = {};
  std::vector<std::string> include = {}, exclude = {};  ///< patterns for directories, see DirectoryFilter
};

struct Corpus {
  std::vector<std::string> sources;  ///< as given by the caller
  std::string text;                  ///< well-formed UTF-8: the texts of all files, concatenated without separators
  std::vector<std::size_t> joins;    ///< byte offsets in `text` at which a file ends and the next non-empty one begins
  std::vector<std::string> files;    ///< the names of the files between the joins
  /// Identifies the corpus: XXH3-128 in hexadecimal. For one file it is the hash of the text; for several files it also
  /// covers the joins, because they determine what is validation text.
  std::string hash;
  std::string text_hash;  ///< XXH3-128 of the text alone, in hexadecimal
  std::int64_t characters = 0;
  std::vector<std::size_t> story_starts;   ///< byte offset of each built-in story; empty for other texts
  std::optional<double> entropy_per_char;  ///< for the built-in stories: nats per character, the best possible loss
  std::vector<std::string> notes;          ///< messages for the user: files skipped, bytes replaced
};

/// Loads a corpus. Sources are files, directories (the text files below them in byte order of their paths, see
/// list_directory()) and "-" for standard input, in any combination, or else one built-in corpus: "@stories[:CHARS]" or
/// "@stories-ja[:CHARS]" (data/builtin/stories.h), "@copy[:LETTERS]", "@reverse[:LETTERS]", "@addition[:DIGITS]" or
/// "@addition-backwards[:DIGITS]" (data/builtin/exercises.h). Nothing is stripped or normalised, not even a UTF-8
/// byte-order mark.
///
/// Throws CorpusError if a source is missing, unreadable, compressed or not UTF-8 (with the offset of the first invalid
/// byte and the encoding, if it is recognised), or if the text is empty; Error if iconv does not know the encoding, or
/// if one is given for the built-in stories.
Corpus load_corpus(const std::vector<std::string>& sources, const CorpusOptions& options = {});

/// The names of the built-in corpora, for a user: "@stories, … (a size may follow, as in @stories:1000000)".
std::string builtin_corpora();

/// The text of each file, as views of corpus.text, which must outlive them.
std::vector<std::string_view> file_texts(const Corpus& corpus);

/// Training and validation text: one piece per file, in order, without empty pieces.
struct SplitText {
  std::vector<std::string_view> train, val;  ///< views of Corpus::text
};

/// Splits every file: the last val_fraction of its characters are validation text. Built-in stories are kept whole.
/// Fractions of a character are carried over to the next file, so that many short files contribute their share as well.
/// Throws Error unless val_fraction is in [0, 1). The corpus must outlive the result.
SplitText split_text(const Corpus& corpus, double val_fraction);

/// For runs of earlier versions, which treated all files as one text with the validation part at its end and identified
/// it by the hash of the text: if `hash` is that hash, removes the joins from the corpus, so that the run keeps its
/// split.
void join_files_if_known_as(Corpus& corpus, const std::string& hash);

}  // namespace maki
