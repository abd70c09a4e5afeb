// A corpus: one text, from files, directories, standard input or the built-in stories, and where it is split.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/encoding.h"

namespace maki {

struct CorpusOptions {
  InvalidUtf8 invalid = InvalidUtf8::error;  ///< replace: up to 1 % of the bytes of a file
  /// Of files and standard input, as iconv names it; empty: UTF-8, and another that is recognised is refused by name.
  std::string encoding = {};
  std::vector<std::string> include = {}, exclude = {};  ///< of directories: see DirectoryFilter
};

struct Corpus {
  std::vector<std::string> sources;  ///< as given
  std::string text;                  ///< well-formed UTF-8; the files in order, joined by nothing
  std::vector<std::size_t> joins;    ///< byte offsets at which a file ends and the next begins; none are empty
  /// What the corpus is known by: XXH3-128 in hexadecimal. Of one file that of its text; of several that of the text
  /// together with the joins, because they decide what is validation text.
  std::string hash;
  std::string text_hash;  ///< of the text alone
  std::int64_t characters = 0;
  std::vector<std::size_t> story_starts;   ///< of the built-in stories: byte offsets; empty for other texts
  std::optional<double> entropy_per_char;  ///< nats, of the built-in stories: the best possible loss a character
  std::vector<std::string> notes;          ///< what a person should know: files skipped, bytes replaced
};

/// Sources are files, directories (the text files below, by the bytes of their paths: list_directory()), "-" for
/// standard input, and "@stories[:CHARS]" or "@stories-ja[:CHARS]" alone. Throws CorpusError for one that is missing,
/// unreadable, compressed or not UTF-8 (naming the byte and, where it is recognised, the encoding), and for an empty
/// text. Nothing is stripped or normalised, a byte-order mark in UTF-8 neither.
Corpus load_corpus(const std::vector<std::string>& sources, const CorpusOptions& options = {});

/// The texts of the files, as views of corpus.text.
std::vector<std::string_view> file_texts(const Corpus& corpus);

/// What is learned from and what is kept for validation: a piece of every file, in their order, except where it would
/// be empty.
struct SplitText {
  std::vector<std::string_view> train, val;  ///< views of Corpus::text
};

/// The last val_fraction of the characters of every file validate, of stories whole ones; fractions of a character are
/// carried over to the next file, so that many short files give their share, too. Throws Error unless val_fraction is
/// in [0, 1).
SplitText split_text(const Corpus& corpus, double val_fraction);

/// Earlier versions took all files as one text, with its validation part at the end, and knew it by the hash of the
/// text. Makes the corpus such a text where `hash` says that it was one: a run of theirs keeps its split.
void join_files_if_known_as(Corpus& corpus, const std::string& hash);

}  // namespace maki
