#include "data/dataset/foreign_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "data/text/error.h"
#include "data/text/file.h"
#include "data/text/hash.h"
#include "data/text/utf8.h"

namespace maki {
namespace {

constexpr std::size_t kHeaderNumbers = 256, kHeaderBytes = kHeaderNumbers * sizeof(std::int32_t);

// llm.c, dev/data/data_common.py: the magic number says how wide the ids are.
struct Magic {
  std::int32_t magic, version;
  std::size_t width;
};
constexpr Magic kMagics[] = {{20240520, 1, 2}, {20240801, 7, 4}};

template <class Id>
TokenSpan span_of(std::span<const std::byte> bytes) {
  return TokenSpan(TokenSpan::Ids<Id>(reinterpret_cast<const Id*>(bytes.data()), bytes.size() / sizeof(Id)), {});
}

TokenSpan ids_after_header(std::span<const std::byte> bytes, const std::array<std::int32_t, 3>& header,
                           const Magic& magic, const std::string& path) {
  const auto [name, version, tokens] = header;
  check<CorpusError>(version == magic.version,
                     "{}: is a token file of llm.c with magic number {} and version {}; maki reads version {} of it",
                     path, name, version, magic.version);
  check<CorpusError>(
      bytes.size() >= kHeaderBytes && tokens >= 0 &&
          (bytes.size() - kHeaderBytes) / magic.width == static_cast<std::size_t>(tokens) &&
          (bytes.size() - kHeaderBytes) % magic.width == 0,
      "{}: is a token file of llm.c with {} tokens of {} bytes, which must have {} bytes after its header "
      "of {}; the file has {} in total; it is damaged or incomplete",
      path, tokens, magic.width, static_cast<std::int64_t>(tokens) * static_cast<std::int64_t>(magic.width),
      kHeaderBytes, bytes.size());
  const auto data = bytes.subspan(kHeaderBytes);
  return magic.width == 2 ? span_of<std::uint16_t>(data) : span_of<std::int32_t>(data);
}

TokenSpan ids_of(std::span<const std::byte> bytes, const std::string& path) {
  std::array<std::int32_t, 3> header{};
  if (bytes.size() >= sizeof(header)) std::memcpy(header.data(), bytes.data(), sizeof(header));
  for (const Magic& magic : kMagics) {
    if (header[0] == magic.magic) return ids_after_header(bytes, header, magic, path);
  }
  check<CorpusError>(
      bytes.size() % sizeof(std::uint16_t) == 0,
      "{}: a token file of nanoGPT has 2 bytes per token, and one of llm.c begins with its magic number; "
      "this file has {} bytes and another beginning",
      path, bytes.size());
  return span_of<std::uint16_t>(bytes);
}

TokenSpan map_tokens(TokenFile& file, const std::string& path) {
  const auto& mapping = *file.files.emplace_back(std::make_shared<const FileMapping>(path));
  return ids_of(mapping.bytes(), path);
}

struct TextSize {
  std::int64_t bytes = 0, characters = 0;
  std::int64_t documents = 0;  // tokens that end one
};

// Counts how often each token occurs, and from that the size of the text.
TextSize measure(TokenSpan tokens, const Tokenizer& tokenizer, const std::string& path) {
  constexpr std::size_t kBlockTokens = 1 << 20;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::vector<std::int32_t> block(kBlockTokens);
  for (std::size_t at = 0; at < tokens.size(); at += kBlockTokens) {
    const std::span ids = std::span(block).first(std::min(kBlockTokens, tokens.size() - at));
    tokens.copy(static_cast<std::int64_t>(at), ids);
    for (const std::int32_t id : ids) {
      check<CorpusError>(
          id >= 0 && id < tokenizer.vocab_size(),
          "{}: contains the id {}, but the tokenizer has {} tokens; name the tokenizer that made the file "
          "with --tokenizer-file",
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

}  // namespace

std::optional<ForeignTokenPaths> foreign_token_paths(const std::vector<std::string>& sources) {
  const auto is_bin = [](const std::string& path) { return path.ends_with(".bin") && !is_token_file(path); };
  if (sources.size() == 1 && is_directory(sources[0])) {
    const std::filesystem::path folder = sources[0];
    std::error_code ignored;
    const ForeignTokenPaths paths{(folder / "train.bin").string(), (folder / "val.bin").string()};
    const bool both =
        std::filesystem::is_regular_file(paths.train, ignored) && std::filesystem::is_regular_file(paths.val, ignored);
    return both ? std::optional(paths) : std::nullopt;
  }
  if (sources.empty() || sources.size() > 2 || !std::ranges::all_of(sources, is_bin)) return std::nullopt;
  return ForeignTokenPaths{sources[0], sources.size() == 2 ? sources[1] : ""};
}

std::shared_ptr<const TokenFile> open_foreign_tokens(const ForeignTokenPaths& paths) {
  auto file = std::make_shared<TokenFile>();
  file->path = paths.train;
  file->train = map_tokens(*file, paths.train);
  if (!paths.val.empty()) file->val = map_tokens(*file, paths.val);
  Hash128 hash;
  for (const auto& mapping : file->files) {
    hash.add({reinterpret_cast<const char*>(mapping->bytes().data()), mapping->bytes().size()});
    hash.add(fmt::format(" {} ", mapping->bytes().size()));
  }
  file->facts.corpus_hash = to_hex(hash.value());
  file->facts.train_tokens = static_cast<std::int64_t>(file->train.size());
  file->facts.val_tokens = static_cast<std::int64_t>(file->val.size());
  return file;
}

std::shared_ptr<const TokenFile> with_tokenizer(const TokenFile& file, std::shared_ptr<const Tokenizer> tokenizer,
                                                double val_fraction) {
  auto known = std::make_shared<TokenFile>(file);
  TokenFileFacts& facts = known->facts;
  if (file.files.size() == 1) {
    facts.val_tokens = std::llround(static_cast<double>(file.train.size()) * val_fraction);
    facts.train_tokens = static_cast<std::int64_t>(file.train.size()) - facts.val_tokens;
    known->train = file.train.first(static_cast<std::size_t>(facts.train_tokens));
    known->val = file.train.last(static_cast<std::size_t>(facts.val_tokens));
  }
  const TextSize train = measure(known->train, *tokenizer, file.path), val = measure(known->val, *tokenizer, file.path);
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
