// The text of a corpus that does not have to fit into memory: it is read once, written to a temporary file without a
// name, and mapped from there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/file_system.h"
#include "data/io/mapping.h"
#include "data/text/corpus.h"
#include "data/tokenizer/normalization.h"

namespace maki {

/// A part of a text, in bytes.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

struct SpooledText {
  std::shared_ptr<const Mapping> mapping;  ///< null if the text is empty
  std::string_view text;                   ///< the same as Corpus::text
  std::vector<TextRange> train, val;       ///< the pieces of split_text()
  std::int64_t characters = 0, val_characters = 0;
  std::int64_t documents = 0;              ///< if the options say what a document is; else 0
  std::string hash;                        ///< Corpus::hash
  std::optional<double> entropy_per_char;  ///< Corpus::entropy_per_char
  /// How often every character occurs in normalized pieces.
  std::map<std::string, std::int64_t> alphabet;
  /// How often every character occurs in the text, if pieces are normalized; else empty.
  std::map<char32_t, std::int64_t> written;
  std::vector<std::string> notes;
};

/// Reads a corpus as load_corpus() and split_text() do, with the same result, and accepts an empty one. The temporary
/// file is in the directory of `path` and needs as much space as the text; nothing remains of it, however this process
/// ends. Throws what those throw, and CheckpointError if the file cannot be written or mapped, or cannot be removed
/// while it is open.
SpooledText spool_text(FileSystem& fs, const std::string& path, const std::vector<std::string>& sources,
                       const CorpusOptions& options, double val_fraction, Normalization normalization);

}  // namespace maki
