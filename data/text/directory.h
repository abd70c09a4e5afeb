// Lists the text files below a directory, and knows one that is a model instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace maki {

/// Why an entry of a directory is skipped; see list_directory().
enum class SkipReason : std::uint8_t { hidden, binary, compressed, excluded, run, link, tokenizer, special };
inline constexpr std::size_t kSkipReasonCount = 8;

struct DirectoryFilter {
  /// Glob patterns (data/text/glob.h). A pattern without a / is matched against the file name, a pattern with one
  /// against the path relative to the directory; a / at its end does not count, and ./ is left out. An empty `include`
  /// accepts every file. `exclude` takes precedence and applies to directories as well.
  std::vector<std::string> include = {}, exclude = {};
  bool zero_bytes = false;  ///< also accept files with zero bytes, for encodings whose text contains them
};

/// A pattern after the name of its option, include or exclude.
using PatternOption = std::pair<std::string, std::string>;

struct DirectoryListing {
  std::vector<std::string> files;                       ///< paths, in byte order
  std::array<std::size_t, kSkipReasonCount> skipped{};  ///< number of entries skipped for each reason
  std::vector<PatternOption> idle;                      ///< patterns that match no entry

  /// A list such as "2 hidden, 1 directory of runs"; empty if nothing was skipped.
  std::string describe_skipped() const;
};

/// Lists the text files below a directory at any depth, including symbolic links to files, and files that cannot be
/// read. Skips and counts hidden entries (whose names begin with "."); files that are binary or compressed according to
/// their first 16 KiB; saved tokenizers (kOwnTokenizerFile); directories named `runs` and run directories of maki
/// (those with a *.maki in `checkpoints`); symbolic links to directories, because they could form loops, and broken
/// links; pipes and devices; and what the filter excludes. A directory that is skipped counts once. The given directory
/// itself is never skipped. Throws CorpusError if a directory cannot be listed or no file is left.
DirectoryListing list_directory(const std::string& directory, const DirectoryFilter& filter = {});

/// Throws Error, naming `maki import`, for a directory with a model of Hugging Face (config.json and its weights),
/// which is neither a text nor a run. Other paths need not exist.
void refuse_hugging_face(const std::string& directory);

}  // namespace maki
