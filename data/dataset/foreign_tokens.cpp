#include "data/dataset/foreign_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "data/dataset/file_tokens.h"
#include "data/dataset/token_shards.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/io/shell_quote.h"
#include "data/io/utf8.h"
#include "data/text/file_signature.h"

namespace maki {
namespace {

// llm.c, dev/data/data_common.py: a header of 256 numbers, the first of which says how wide the ids are.
constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);
struct Magic {
  std::int32_t magic, version;
  std::uint32_t width;
};
constexpr Magic kMagics[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// 0 if the file is shorter.
std::int32_t first_number(const StableFile& file) {
  std::int32_t number = 0;
  if (file.size() >= sizeof(number)) file.read(0, std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

// The format of llm.c whose magic number the file begins with, or null.
const Magic* magic_of(const StableFile& file) {
  const auto* const found = std::ranges::find(kMagics, first_number(file), &Magic::magic);
  return found == std::end(kMagics) ? nullptr : found;
}

IdSection ids_after_header(const StableFile& file, const Magic& magic) {
  const std::string& path = file.path();
  check<CorpusError>(
      file.size() >= kHeaderBytes,
      "{}: is a token file of llm.c, which begins with a header of {} bytes; the file has {} in total; it "
      "is damaged or incomplete",
      path, kHeaderBytes, file.size());
  std::array<std::int32_t, 3> header;
  file.read(0, std::as_writable_bytes(std::span(header)));
  const auto [name, version, tokens] = header;
  check<CorpusError>(version == magic.version,
                     "{}: is a token file of llm.c with magic number {} and version {}; maki reads version {} of it",
                     path, name, version, magic.version);
  const std::uint64_t data = file.size() - kHeaderBytes;
  check<CorpusError>(
      tokens >= 0 && data / magic.width == static_cast<std::uint64_t>(tokens) && data % magic.width == 0,
      "{}: is a token file of llm.c with {} tokens of {} bytes, which must have {} bytes after its header "
      "of {}; the file has {} in total; it is damaged or incomplete",
      path, tokens, magic.width, std::int64_t{tokens} * magic.width, kHeaderBytes, file.size());
  return {kHeaderBytes, static_cast<std::uint64_t>(tokens), magic.width};
}

IdSection ids_of(const StableFile& file) {
  if (const Magic* const magic = magic_of(file)) return ids_after_header(file, *magic);
  check<CorpusError>(first_number(file) != kLlmCModelMagic,
                     "{}: is a checkpoint of llm.c, not a run or tokens; make a run of it with: maki import {}",
                     file.path(), shell_quote(file.path()));
  constexpr std::uint32_t kWidth = sizeof(std::uint16_t);  // of the ids of nanoGPT
  check<CorpusError>(
      file.size() % kWidth == 0,
      "{}: a token file of nanoGPT has 2 bytes per token, and one of llm.c begins with its magic number; "
      "this file has {} bytes and another beginning",
      file.path(), file.size());
  return {0, file.size() / kWidth, kWidth};
}

// Adds the bytes that a single file with the ids of all these would have, and their number.
void add_to_hash(std::span<const std::shared_ptr<const StableFile>> files, std::size_t tokens, Hash128& hash) {
  constexpr std::uint64_t kBlockBytes = 1 << 16;  // per read: few calls, little memory
  const std::uint64_t header = magic_of(*files[0]) != nullptr ? kHeaderBytes : 0;
  std::vector<std::byte> bytes(header);
  files[0]->read(0, bytes);
  if (header > 0 && files.size() > 1) {
    const auto count = static_cast<std::uint32_t>(tokens);
    std::memcpy(bytes.data() + 2 * sizeof(count), &count, sizeof(count));
  }
  hash.add(bytes);
  std::uint64_t size = header;
  for (const auto& file : files) {
    for (std::uint64_t at = header; at < file->size(); at += kBlockBytes) {
      bytes.resize(std::min(kBlockBytes, file->size() - at));
      file->read(at, bytes);
      hash.add(bytes);
    }
    size += file->size() - header;
  }
  hash.add(fmt::format(" {} ", size));
}

// Ids can be read from any file. What is certainly text is named instead; bytes of other kinds may as well be ids.
void refuse_text(const StableFile& file) {
  constexpr std::uint64_t kExaminedBytes = 512;  // enough for signatures, and to tell text from ids
  std::string beginning(std::min(file.size(), kExaminedBytes), 0);
  file.read(0, std::as_writable_bytes(std::span(beginning)));
  const std::string other = is_binary(beginning) ? "" : describe_other_file(beginning, shell_quote(file.path()));
  check<CorpusError>(other.empty(), "{}: must be a token file; it {}", file.path(), other);
}

// Opens the files, adds them to `file` and their bytes to the hash, and returns their ids.
TokenSpan open_tokens(TokenFile& file, const std::vector<std::string>& paths, Hash128& hash) {
  std::vector<TokenSpan> parts;
  const std::size_t before = file.files.size();
  for (const std::string& path : paths) {
    const auto bytes = file.files.emplace_back(std::make_shared<const StableFile>(path));
    refuse_text(*bytes);
    check<CorpusError>(magic_of(*bytes) == magic_of(*file.files[before]),
                       "{}: must have the format of {}, because both are parts of one text", path, paths[0]);
    parts.push_back(*file.sources.emplace_back(std::make_shared<const FileTokens>(bytes, ids_of(*bytes))));
  }
  if (parts.empty()) return {};
  const TokenSpan all = join_parts(file, std::move(parts), TokenChain::Border::none);
  add_to_hash(std::span(file.files).subspan(before), all.size(), hash);
  return all;
}

struct TextSize {
  std::int64_t bytes = 0, characters = 0;
  std::int64_t documents = 0;  // tokens that end one
};

// Counts how often each token occurs, and from that the size of the text.
TextSize measure(TokenSpan tokens, const Tokenizer& tokenizer, const std::string& path) {
  constexpr std::size_t kBlockTokens = 1 << 16;  // per read: few calls, 256 KiB of memory
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::vector<std::int32_t> block(kBlockTokens);
  for (std::size_t at = 0; at < tokens.size(); at += kBlockTokens) {
    const std::span ids = std::span(block).first(std::min(kBlockTokens, tokens.size() - at));
    tokens.copy(static_cast<std::int64_t>(at), ids);
    for (const std::int32_t id : ids) {
      check<CorpusError>(
          id >= 0 && id < tokenizer.vocab_size(),
          "{}: contains the id {}, but the tokenizer has {} tokens; name the tokenizer that made the file "
          "with `tokenizer_file`",
          path, static_cast<std::uint32_t>(id), tokenizer.vocab_size());
      ++counts[static_cast<std::size_t>(id)];
    }
  }
  TextSize size;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.bytes(id);
    const std::int64_t count = counts[static_cast<std::size_t>(id)];
    const auto continuations = std::ranges::count_if(bytes, is_continuation);
    size.bytes += count * static_cast<std::int64_t>(bytes.size());
    size.characters += count * (static_cast<std::int64_t>(bytes.size()) - continuations);
    if (id == tokenizer.end_of_text()) size.documents = count;
  }
  return size;
}

enum class Purpose : std::uint8_t { unsaid, train, validation, test };

// The words of a name: letters between other characters, in lower case.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words = {""};
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z')) {
      words.back() += upper ? static_cast<char>(c + 32) : c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

Purpose purpose_of(const std::string& path, const std::string& name) {
  constexpr std::pair<std::string_view, Purpose> kWords[] = {
      {"train", Purpose::train},      {"training", Purpose::train},        {"val", Purpose::validation},
      {"valid", Purpose::validation}, {"validation", Purpose::validation}, {"test", Purpose::test}};
  Purpose purpose = Purpose::unsaid;
  for (const std::string& word : words_of(name)) {
    const auto* const known = std::ranges::find(kWords, word, &std::pair<std::string_view, Purpose>::first);
    if (known == std::end(kWords)) continue;
    check<CorpusError>(purpose == Purpose::unsaid || purpose == known->second,
                       "{}: its name must say one purpose, train, val or test; it says several; rename it, or name the "
                       "files for training and then one for validation, without such words",
                       path);
    purpose = known->second;
  }
  return purpose;
}

std::vector<Purpose> purposes_of(const std::vector<std::string>& files, bool of_folders) {
  std::vector<Purpose> purposes;
  for (const std::string& file : files) {
    const std::filesystem::path path(file);
    purposes.push_back(purpose_of(file, (of_folders ? path.parent_path().filename() : path.stem()).string()));
  }
  return purposes;
}

// What the names of the files say, or if none says anything, those of their folders, if one is for training.
std::vector<Purpose> purposes_of(const std::vector<std::string>& files) {
  std::vector<Purpose> purposes = purposes_of(files, /*of_folders=*/false);
  if (std::ranges::any_of(purposes, [](Purpose purpose) { return purpose != Purpose::unsaid; })) return purposes;
  const std::vector<Purpose> folders = purposes_of(files, /*of_folders=*/true);
  return std::ranges::find(folders, Purpose::train) != folders.end() ? folders : purposes;
}

// What the files are for that have no word for it, if others have.
Purpose purpose_of_others(const std::vector<Purpose>& purposes) {
  const bool beside_train = purposes.size() == 2 && std::ranges::count(purposes, Purpose::train) == 1;
  return beside_train ? Purpose::validation : Purpose::train;
}

}  // namespace

std::optional<ForeignTokenPaths> foreign_token_paths(const std::vector<std::string>& files) {
  const auto is_bin = [](const std::string& path) { return path.ends_with(".bin") && !is_token_file(path); };
  if (files.empty() || !std::ranges::all_of(files, is_bin)) return std::nullopt;
  ForeignTokenPaths paths;
  if (files.size() == 1) {
    paths.train = files;
    return paths;
  }
  std::vector<Purpose> purposes = purposes_of(files);
  const auto said = [&](Purpose purpose) { return std::ranges::find(purposes, purpose) != purposes.end(); };
  if (files.size() == 2 && purposes == std::vector{Purpose::unsaid, Purpose::unsaid})
    purposes = {Purpose::train, Purpose::validation};
  const Purpose others = purpose_of_others(purposes);
  std::ranges::replace(purposes, Purpose::unsaid, others);
  const bool tests_validate = !said(Purpose::validation);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (purposes[i] == Purpose::test) {
      paths.notes.push_back(fmt::format(
          "{}: {}", files[i],
          tests_validate ? "is for testing, as its name says, and is used for validation, because no other file is"
                         : "is for testing, as its name says, and is not read"));
      if (!tests_validate) continue;
    }
    (purposes[i] == Purpose::train ? paths.train : paths.val).push_back(files[i]);
  }
  check<CorpusError>(!paths.train.empty(),
                     "{}: none of the files is for training, as their names say; name some for training", files[0]);
  return paths;
}

std::shared_ptr<const TokenFile> open_foreign_tokens(const ForeignTokenPaths& paths) {
  auto file = std::make_shared<TokenFile>();
  const std::size_t others = paths.train.size() + paths.val.size() - 1;
  file->path = paths.train[0];
  if (paths.train.size() > 1) file->path += fmt::format(" and {} more", others);
  if (!paths.val.empty()) file->val_path = paths.val[0];
  if (paths.val.size() > 1) file->val_path += fmt::format(" and {} more", paths.val.size() - 1);
  Hash128 hash;
  file->train = open_tokens(*file, paths.train, hash);
  file->val = open_tokens(*file, paths.val, hash);
  file->has_validation = !file->val.empty();  // `maki prepare` writes an empty val.bin where nothing is held back
  file->facts.corpus_hash = to_hex(hash.value());
  file->facts.train_tokens = static_cast<std::int64_t>(file->train.size());
  file->facts.val_tokens = static_cast<std::int64_t>(file->val.size());
  return file;
}

std::shared_ptr<const TokenFile> with_tokenizer(const TokenFile& file, std::shared_ptr<const Tokenizer> tokenizer,
                                                double val_fraction) {
  auto known = std::make_shared<TokenFile>(file);
  TokenFileFacts& facts = known->facts;
  if (!file.has_validation) {
    facts.val_tokens = std::llround(static_cast<double>(file.train.size()) * val_fraction);
    facts.train_tokens = static_cast<std::int64_t>(file.train.size()) - facts.val_tokens;
    known->train = file.train.first(static_cast<std::size_t>(facts.train_tokens));
    known->val = file.train.last(static_cast<std::size_t>(facts.val_tokens));
  }
  const TextSize train = measure(known->train, *tokenizer, file.path),
                 val = measure(known->val, *tokenizer, file.has_validation ? file.val_path : file.path);
  facts.vocab_size = tokenizer->vocab_size();
  facts.tokenizer_hash = tokenizer->hash();
  facts.bytes = train.bytes + val.bytes;
  facts.val_bytes = val.bytes;
  facts.documents = train.documents + val.documents;
  // Where many tokens are parts of characters, no more tokens are said to be in a character than it can have bytes.
  const auto at_least = [](std::int64_t characters, std::int64_t tokens) {
    return std::max(characters, tokens / 4 + 1);
  };
  facts.val_characters = facts.val_tokens == 0 ? 0 : at_least(val.characters, facts.val_tokens);
  facts.characters = at_least(train.characters, facts.train_tokens) + facts.val_characters;
  facts.val_fraction = val_fraction;
  known->tokenizer = std::move(tokenizer);
  return known;
}

}  // namespace maki
