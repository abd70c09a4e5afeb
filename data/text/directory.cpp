#include "data/text/directory.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <optional>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/shell_quote.h"
#include "data/text/file_signature.h"
#include "data/text/glob.h"
#include "data/tokenizer/tokenizer_files.h"

namespace maki {
namespace {

namespace fs = std::filesystem;

// The number of bytes at the beginning of a file that decide whether it is text. Like git, which looks at 8,000, maki
// does not read large files only to reject them.
constexpr std::size_t kBeginningBytes = 1 << 14;

struct Words {
  const char *one, *many;
};
constexpr std::array<Words, kSkipReasonCount> kSkipReasonWords = {{{"hidden", "hidden"},
                                                                   {"binary", "binary"},
                                                                   {"compressed", "compressed"},
                                                                   {"excluded", "excluded"},
                                                                   {"directory of runs", "directories of runs"},
                                                                   {"link", "links"},
                                                                   {"tokenizer", "tokenizers"},
                                                                   {"pipe or device", "pipes or devices"}}};

bool holds_checkpoints(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator at(directory / "checkpoints", error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".maki") return true;
  }
  const bool known = !error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  check<CorpusError>(known, "{}: cannot be listed: {}", (directory / "checkpoints").string(), error.message());
  return false;
}

bool any_matches(const std::vector<std::string>& patterns, const fs::path& relative) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    const bool path = pattern.find('/') != std::string::npos;
    return matches_glob(pattern, path ? relative.string() : relative.filename().string());
  });
}

// Why an entry is skipped; nullopt if it is a file to be read or a directory to descend into.
std::optional<SkipReason> why_skipped(const fs::directory_entry& entry, const fs::path& relative,
                                      const DirectoryFilter& filter) {
  if (relative.filename().string().starts_with(".")) return SkipReason::hidden;
  if (any_matches(filter.exclude, relative)) return SkipReason::excluded;
  const bool link = entry_kind(entry.path().string()) == fs::file_type::symlink;
  const fs::file_type kind = file_kind(entry.path().string());
  if (kind == fs::file_type::directory) {
    if (link) return SkipReason::link;
    const bool runs = relative.filename() == "runs" || holds_checkpoints(entry.path());
    return runs ? std::optional(SkipReason::run) : std::nullopt;
  }
  if (kind != fs::file_type::regular) return link ? SkipReason::link : SkipReason::special;
  if (!filter.include.empty() && !any_matches(filter.include, relative)) return SkipReason::excluded;
  if (relative.filename().string().ends_with(kOwnTokenizerFile)) return SkipReason::tokenizer;
  const std::string beginning = read_beginning(entry.path().string(), kBeginningBytes);
  if (detect_compression(beginning) != nullptr) return SkipReason::compressed;
  if (filter.zero_bytes ? is_known_binary(beginning) : is_binary(beginning)) return SkipReason::binary;
  return std::nullopt;
}

}  // namespace

std::string DirectoryListing::describe_skipped() const {
  std::vector<std::string> parts;
  for (std::size_t kind = 0; kind < kSkipReasonCount; ++kind) {
    if (skipped[kind] > 0)
      parts.push_back(fmt::format("{} {}", skipped[kind],
                                  skipped[kind] == 1 ? kSkipReasonWords[kind].one : kSkipReasonWords[kind].many));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

DirectoryListing list_directory(const std::string& directory, const DirectoryFilter& filter) {
  DirectoryListing listing;
  std::error_code error;
  fs::path path = directory;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    path = at->path();
    const auto why = why_skipped(*at, path.lexically_relative(directory), filter);
    if (why) {
      at.disable_recursion_pending();
      ++listing.skipped[static_cast<std::size_t>(*why)];
    } else if (!is_directory(path.string())) {
      listing.files.push_back(path.string());
    }
  }
  check<CorpusError>(!error, "{}: cannot be listed: {}", path.string(), error.message());
  const std::string skipped = listing.describe_skipped();
  check<CorpusError>(!listing.files.empty(),
                     "{}: contains no text files to read{}; choose a directory that contains some", directory,
                     skipped.empty() ? "" : " (skipped: " + skipped + ")");
  std::ranges::sort(listing.files);
  return listing;
}

void refuse_hugging_face(const std::string& directory) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::is_regular_file(fs::path(directory) / name, ignored); };
  const bool weights = has("model.safetensors") || has("model.safetensors.index.json") || has("pytorch_model.bin");
  check(!weights || !has("config.json"),
        "{}: is a model of Hugging Face, not a run or a text; make a run of it with: maki import {}", directory,
        shell_quote(directory));
}

}  // namespace maki
