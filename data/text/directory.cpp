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

// A pattern that contains a / before its end is matched against a path, else against a name.
struct Pattern {
  explicit Pattern(const std::string& given) : text(given) {
    is_path = given.find('/') < given.find_last_not_of('/');
    glob = fs::path(given).lexically_normal().string();  // without ./, as the paths to match are
    if (glob.ends_with('/')) glob.pop_back();
  }

  std::string text, glob;
  bool is_path, matched = false;  // any entry so far
};

struct Patterns {
  explicit Patterns(const DirectoryFilter& filter)
      : include(filter.include.begin(), filter.include.end()), exclude(filter.exclude.begin(), filter.exclude.end()) {}

  // What has matched no entry so far.
  std::vector<PatternOption> idle() const {
    std::vector<PatternOption> unmatched;
    for (const Pattern& pattern : include)
      if (!pattern.matched) unmatched.emplace_back("include", pattern.text);
    for (const Pattern& pattern : exclude)
      if (!pattern.matched) unmatched.emplace_back("exclude", pattern.text);
    return unmatched;
  }

  std::vector<Pattern> include, exclude;
};

bool holds_checkpoints(const fs::path& directory) {
  const fs::path checkpoints = directory / "checkpoints";
  std::error_code error, ignored;
  for (fs::directory_iterator at(checkpoints, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".maki") return true;
  }
  const bool known = !error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  check<CorpusError>(known, "{}: cannot be listed: {}",
                     (fs::exists(checkpoints, ignored) ? checkpoints : directory).string(), error.message());
  return false;
}

bool any_matches(std::vector<Pattern>& patterns, const fs::path& relative) {
  bool any = false;
  for (Pattern& pattern : patterns) {
    const fs::path name = pattern.is_path ? relative : relative.filename();
    if (matches_glob(pattern.glob, name.string())) any = pattern.matched = true;
  }
  return any;
}

// Why an entry is skipped; nullopt if it is a file to be read or a directory to descend into.
std::optional<SkipReason> why_skipped(const fs::directory_entry& entry, const fs::path& relative, Patterns& patterns,
                                      bool zero_bytes) {
  const bool excluded = any_matches(patterns.exclude, relative);
  if (relative.filename().string().starts_with(".")) return SkipReason::hidden;
  if (excluded) return SkipReason::excluded;
  const bool link = entry_kind(entry.path().string()) == fs::file_type::symlink;
  const fs::file_type kind = file_kind(entry.path().string());
  if (kind == fs::file_type::directory) {
    if (link) return SkipReason::link;
    const bool runs = relative.filename() == "runs" || holds_checkpoints(entry.path());
    return runs ? std::optional(SkipReason::run) : std::nullopt;
  }
  if (kind != fs::file_type::regular) return link ? SkipReason::link : SkipReason::special;
  if (!patterns.include.empty() && !any_matches(patterns.include, relative)) return SkipReason::excluded;
  if (relative.filename().string().ends_with(kOwnTokenizerFile)) return SkipReason::tokenizer;
  const std::string beginning = read_beginning(entry.path().string(), kBeginningBytes);
  if (detect_compression(beginning) != nullptr) return SkipReason::compressed;
  if (zero_bytes ? is_known_binary(beginning) : is_binary(beginning)) return SkipReason::binary;
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
  Patterns patterns(filter);
  std::error_code error;
  fs::path path = directory;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    path = at->path();
    const auto why = why_skipped(*at, path.lexically_relative(directory), patterns, filter.zero_bytes);
    if (why) {
      at.disable_recursion_pending();
      ++listing.skipped[static_cast<std::size_t>(*why)];
    } else if (!is_directory(path.string())) {
      listing.files.push_back(path.string());
    }
  }
  check<CorpusError>(!error, "{}: cannot be listed: {}", path.string(), error.message());
  const std::string skipped = listing.describe_skipped();
  const bool excluded = listing.skipped[static_cast<std::size_t>(SkipReason::excluded)] > 0;
  check<CorpusError>(!listing.files.empty(),
                     "{}: contains no text files to read{}; choose a directory that contains some{}", directory,
                     skipped.empty() ? "" : " (skipped: " + skipped + ")",
                     excluded ? ", or other patterns to include and exclude" : "");
  std::ranges::sort(listing.files);
  listing.idle = patterns.idle();
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
