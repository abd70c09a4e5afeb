#include "data/dataset/token_shards.h"

#include <algorithm>
#include <filesystem>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/text/directory.h"
#include "data/tokenizer/nanogpt_meta.h"
#include "data/tokenizer/tokenizer_files.h"

namespace maki {
namespace {

namespace fs = std::filesystem;

bool is_tokenizer(const fs::path& path) {
  return path.filename() == kOwnTokenizerFile || path.filename() == kNanoGptMetaFile;
}

// The visible files of a directory, in byte order of their names; empty if it contains anything else but token files
// and, if it `may_have_tokenizer`, the tokenizer that made them.
std::vector<std::string> only_token_files(const fs::path& folder, bool may_have_tokenizer) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(".")) continue;
    if (may_have_tokenizer && is_tokenizer(entry->path())) continue;
    std::error_code unknown;
    const std::string path = entry->path().string();
    if (!entry->is_regular_file(unknown) || !(path.ends_with(".bin") || is_token_file(path))) return {};
    files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

// A file whose name says that a directory is one of tokens; null if there is none. Of such a directory nothing must be
// taken for a text: not the tokenizer, and not what nanoGPT made the tokens from.
const char* token_name_in(const fs::path& folder) {
  for (const char* const name : {"train.bin", "val.bin", kOwnTokenizerFile}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return name;
  }
  return nullptr;
}

// Empty if the directory contains no tokens.
std::vector<std::string> files_in(const fs::path& folder) {
  const std::string train = (folder / "train.bin").string(), val = (folder / "val.bin").string();
  std::error_code ignored;
  const bool has_train = fs::is_regular_file(train, ignored), has_val = fs::is_regular_file(val, ignored);
  if (has_train && has_val) return {train, val};
  refuse_hugging_face(folder.string());
  // train.bin or val.bin alone is a dataset, but beside a tokenizer one half of what was written together.
  std::vector<std::string> files = only_token_files(folder, !has_train && !has_val);
  const char* const there = files.empty() ? token_name_in(folder) : nullptr;
  check<CorpusError>(there == nullptr,
                     "{}: contains {}, as a directory of tokens does, but no {}; prepare it again, or name the files "
                     "that are to be read",
                     folder.string(), there == nullptr ? "" : there,
                     has_train ? "val.bin"
                     : has_val ? "train.bin"
                               : "train.bin and val.bin");
  return files;
}

void add_facts(const TokenFileFacts& part, TokenFileFacts& sum) {
  constexpr std::int64_t TokenFileFacts::*kCounts[] = {&TokenFileFacts::train_tokens,  &TokenFileFacts::val_tokens,
                                                       &TokenFileFacts::documents,     &TokenFileFacts::bytes,
                                                       &TokenFileFacts::val_bytes,     &TokenFileFacts::characters,
                                                       &TokenFileFacts::val_characters};
  for (std::int64_t TokenFileFacts::*const count : kCounts) sum.*count += part.*count;
}

void check_alike(const TokenFile& first, const TokenFile& other) {
  check<CorpusError>(
      other.facts.tokenizer_hash == first.facts.tokenizer_hash,
      "{}: must have the same tokenizer as {}; got {} and {}; prepare one text with the tokenizer of the "
      "other as `tokenizer_file`",
      other.path, first.path, other.facts.tokenizer_hash, first.facts.tokenizer_hash);
  check<CorpusError>(other.facts.val_fraction == first.facts.val_fraction,
                     "{}: must have been prepared with the same `val_fraction` as {}; got {} and {}; prepare one again",
                     other.path, first.path, other.facts.val_fraction, first.facts.val_fraction);
}

// Throws for a directory that cannot be one of several sources.
void refuse_beside_others(const std::string& source) {
  refuse_hugging_face(source);
  const char* const there = token_name_in(source);
  check<CorpusError>(
      there == nullptr,
      "{}: contains {}, as a directory of tokens does, which is read alone; name the files that are to be read", source,
      there == nullptr ? "" : there);
}

}  // namespace

std::optional<std::vector<std::string>> token_file_paths(const std::vector<std::string>& sources) {
  check(!sources.empty(), "corpus: must name at least one file or directory; got none; name the text to be read");
  std::vector<std::string> files = sources;
  if (sources.size() == 1 && is_directory(sources[0])) {
    files = files_in(sources[0]);
    if (files.empty()) return std::nullopt;
  }
  if (sources.size() > 1) std::ranges::for_each(sources, refuse_beside_others);
  const auto is_bin = [](const std::string& path) { return path.ends_with(".bin"); };
  const auto own = std::ranges::find_if(files, is_token_file);
  if (own == files.end()) return std::ranges::all_of(files, is_bin) ? std::optional(files) : std::nullopt;
  const auto other = std::ranges::find_if_not(files, is_token_file);
  check<CorpusError>(other == files.end(),
                     "{}: a token file can be used with other token files alone; got {}; prepare all texts", *own,
                     other == files.end() ? "" : *other);
  return files;
}

TokenSpan join_parts(TokenFile& file, std::vector<TokenSpan> parts, TokenChain::Border border) {
  if (parts.size() == 1) return parts[0];
  file.sources.push_back(std::make_shared<const TokenChain>(std::move(parts), border));
  return *file.sources.back();
}

std::shared_ptr<const TokenFile> open_token_files(const std::vector<std::string>& paths) {
  const std::shared_ptr<const TokenFile> first = open_token_file(paths.at(0));
  if (paths.size() == 1) return first;
  auto all = std::make_shared<TokenFile>(*first);
  all->path += fmt::format(" and {} more", paths.size() - 1);
  all->facts.best_possible_loss = std::nullopt;
  std::vector<TokenSpan> train = {first->train}, val = {first->val};
  std::string hashes = first->facts.corpus_hash;
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const std::shared_ptr<const TokenFile> next = open_token_file(paths[i]);
    check_alike(*first, *next);
    add_facts(next->facts, all->facts);
    hashes += next->facts.corpus_hash;
    train.push_back(next->train);
    val.push_back(next->val);
    all->files.insert(all->files.end(), next->files.begin(), next->files.end());
    all->sources.insert(all->sources.end(), next->sources.begin(), next->sources.end());
  }
  all->facts.corpus_hash = hash128_hex(hashes);
  all->train = join_parts(*all, std::move(train), TokenChain::Border::piece);
  all->val = join_parts(*all, std::move(val), TokenChain::Border::piece);
  all->facts.train_joins = std::ssize(all->train.joins());
  all->facts.val_joins = std::ssize(all->val.joins());
  return all;
}

}  // namespace maki
