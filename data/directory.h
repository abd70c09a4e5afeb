// The text files of a directory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace maki {

/// Why something in a directory is not read.
enum class Skipped : std::uint8_t { hidden, binary, compressed, excluded, run, link, special };
inline constexpr std::size_t kSkippedKinds = 7;

struct DirectoryFilter {
  /// Patterns (data/glob.h). One without a / is compared with the name, another with the path below the directory.
  /// Without `include` every file is wanted; `exclude` goes for directories, too.
  std::vector<std::string> include = {}, exclude = {};
  bool binary = false;  ///< files with zero bytes are wanted, too
};

struct DirectoryListing {
  std::vector<std::string> files;  ///< paths, sorted by their bytes
  std::array<std::size_t, kSkippedKinds> skipped{};

  /// "2 hidden, 1 run of maki"; empty when nothing was skipped.
  std::string describe_skipped() const;
};

/// The text files below a directory at any depth, and links to such files. Skipped, and counted: what is hidden (".…");
/// what is binary or compressed by its first bytes; directories called `runs` and run directories of maki; links to
/// directories (so that no loop is followed) and links that lead nowhere; pipes and devices; what the filter leaves
/// out. Throws CorpusError for a directory that cannot be listed, and when no file is left.
DirectoryListing list_directory(const std::string& directory, const DirectoryFilter& filter = {});

}  // namespace maki
