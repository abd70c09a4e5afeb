#include "data/dataset/token_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/dataset/file_tokens.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"

namespace maki {
namespace {

constexpr std::array<char, 8> kMagic = {'\x89', 'm', 'a', 'k', 'i', 't', '\n', '\x1a'};
constexpr std::uint32_t kFormatVersion = 1;  // of token files; the only one so far

using Hash = std::array<std::uint8_t, 16>;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, width;
  std::uint64_t tokenizer_bytes, vocab_size, train_tokens, val_tokens, train_joins, val_joins;
  std::uint64_t documents, bytes, val_bytes, characters, val_characters;
  double val_fraction, best_possible_loss;
  Hash tokenizer_hash, corpus_hash, data_hash;
  std::uint64_t vocab_limit;
  std::array<std::uint8_t, 64> reserved;
  Hash hash;  // of everything before it
};
static_assert(sizeof(Header) == TokenFileLayout::kHeaderBytes && std::is_trivially_copyable_v<Header>);

Hash hash_of(const Header& header) {
  return hash128(bytes_text(std::as_bytes(std::span(&header, 1)).first(sizeof(Header) - sizeof(Hash))));
}

// Where a section is in the file.
struct Section {
  std::uint64_t offset, bytes;
};

std::string read_section(const StableFile& file, const Section& section) {
  std::string bytes(section.bytes, '\0');
  file.read(section.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Finds the sections of a file one after the other. Nothing overflows: every size is compared with what is left.
class Sections {
 public:
  explicit Sections(const StableFile& file) : file_(file) {}

  Section take(std::uint64_t count, std::uint64_t width, const char* what) {
    const std::uint64_t left = file_.size() - at_;
    check<CorpusError>(
        count <= left / width,
        "{}: is a token file that ends too early: {} need {} times {} bytes at byte {}, but {} are left; "
        "the file is damaged or incomplete; prepare it again",
        file_.path(), what, count, width, at_, left);
    const Section section{at_, count * width};
    at_ += section.bytes;
    return section;
  }
  void skip_padding() {
    const std::string padding = read_section(file_, take(token_file_padding(at_), 1, "zeros between sections"));
    check<CorpusError>(padding.find_first_not_of('\0') == std::string::npos,
                       "{}: the bytes between two sections of a token file must be zeros; the file is damaged",
                       file_.path());
  }
  void finish() const {
    check<CorpusError>(at_ == file_.size(), "{}: is a token file of {} bytes, but {} follow; the file is damaged",
                       file_.path(), at_, file_.size() - at_);
  }

 private:
  const StableFile& file_;
  std::uint64_t at_ = 0;
};

// Counts below 2^56 leave room for the sums over several files in 64 bits.
void check_header(const Header& h, const std::string& path) {
  check<CorpusError>(h.magic == kMagic, "{}: is not a token file of maki", path);
  check<CorpusError>(h.version == kFormatVersion,
                     "{}: is a token file of version {}, and this version of maki reads version {}; prepare it again",
                     path, h.version, kFormatVersion);
  const auto require = [&](bool good, const char* what) {
    check<CorpusError>(good, "{}: is a damaged token file: {}; prepare it again", path, what);
  };
  require(hash_of(h) == h.hash, "checksum mismatch of its header");
  require(h.reserved == decltype(h.reserved){}, "its reserved bytes are not zeros");
  constexpr std::uint64_t kMaxVocabulary = std::uint64_t{1} << 31;  // ids are int32
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 56;       // sizes that follow from counts fit into 64 bits
  require(h.vocab_size >= 1 && h.vocab_size < kMaxVocabulary, "the size of its vocabulary is impossible");
  require(h.vocab_limit == 0 || (h.vocab_limit > h.vocab_size && h.vocab_limit < kMaxVocabulary),
          "the size that its vocabulary was to have is impossible");
  require(h.width == token_width(static_cast<std::int64_t>(h.vocab_size)), "its ids have the wrong width");
  for (const std::uint64_t count : {h.train_tokens, h.val_tokens, h.documents, h.bytes, h.characters})
    require(count < kMaxCount, "one of its counts is impossible");
  require(h.val_bytes <= h.bytes && h.val_characters <= h.characters && h.characters <= h.bytes &&
              h.val_characters <= h.val_bytes,
          "its counts of bytes and characters contradict each other");
  require(h.val_fraction >= 0 && h.val_fraction < 1, "its fraction of validation text is not in [0, 1)");
  require(std::isfinite(h.best_possible_loss) && h.best_possible_loss >= 0, "its best possible loss is impossible");
}

TokenFileFacts facts_of(const Header& h) {
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  return {.tokenizer_hash = to_hex(h.tokenizer_hash),
          .corpus_hash = to_hex(h.corpus_hash),
          .vocab_size = number(h.vocab_size),
          .vocab_limit = number(h.vocab_limit),
          .train_tokens = number(h.train_tokens),
          .val_tokens = number(h.val_tokens),
          .train_joins = number(h.train_joins),
          .val_joins = number(h.val_joins),
          .documents = number(h.documents),
          .bytes = number(h.bytes),
          .val_bytes = number(h.val_bytes),
          .characters = number(h.characters),
          .val_characters = number(h.val_characters),
          .val_fraction = h.val_fraction,
          .best_possible_loss = h.best_possible_loss > 0 ? std::optional(h.best_possible_loss) : std::nullopt};
}

std::shared_ptr<const Tokenizer> tokenizer_of(std::string_view saved, const TokenFileFacts& facts,
                                              const std::string& path) {
  check<CorpusError>(hash128_hex(saved) == facts.tokenizer_hash,
                     "{}: is a damaged token file: checksum mismatch of its tokenizer; prepare it again", path);
  std::shared_ptr<const Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(saved);
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: {}", path, error.what());
  }
  check<CorpusError>(tokenizer->vocab_size() == facts.vocab_size,
                     "{}: is a damaged token file: its tokenizer has {} tokens, but its header says {}", path,
                     tokenizer->vocab_size(), facts.vocab_size);
  return tokenizer;
}

std::vector<std::int64_t> joins_in(const StableFile& file, const Section& section, std::int64_t tokens) {
  std::vector<std::int64_t> joins(section.bytes / sizeof(std::int64_t));
  file.read(section.offset, std::as_writable_bytes(std::span(joins)));
  std::int64_t before = 0;
  for (const std::int64_t join : joins) {
    check<CorpusError>(
        join > before && join < tokens,
        "{}: is a damaged token file: the boundaries of its pieces must be ascending and below {}; got {} "
        "after {}",
        file.path(), tokens, join, before);
    before = join;
  }
  return joins;
}

Header header_of(const StableFile& file) {
  Header header;
  check<CorpusError>(file.size() >= sizeof(header),
                     "{}: is too short for a token file: its header has {} bytes, and the file {}", file.path(),
                     sizeof(header), file.size());
  file.read(0, std::as_writable_bytes(std::span(&header, 1)));
  check_header(header, file.path());
  return header;
}

std::shared_ptr<const TokenFile> token_file_in(const std::shared_ptr<const StableFile>& bytes) {
  auto file = std::make_shared<TokenFile>();
  file->files = {bytes};
  const std::string& path = file->path = bytes->path();
  const Header header = header_of(*bytes);
  file->facts = facts_of(header);
  const TokenFileFacts& facts = file->facts;
  Sections sections(*bytes);
  sections.take(sizeof(Header), 1, "the header");
  const Section tokenizer = sections.take(header.tokenizer_bytes, 1, "the tokenizer");
  sections.skip_padding();
  const Section train = sections.take(header.train_tokens, header.width, "the training tokens");
  sections.skip_padding();
  const Section val = sections.take(header.val_tokens, header.width, "the validation tokens");
  sections.skip_padding();
  const Section train_joins = sections.take(header.train_joins, sizeof(std::int64_t), "the boundaries of its pieces");
  const Section val_joins = sections.take(header.val_joins, sizeof(std::int64_t), "the boundaries of its pieces");
  sections.finish();
  file->tokenizer = tokenizer_of(read_section(*bytes, tokenizer), facts, path);
  const auto view = [&](const Section& ids, const Section& joins, std::int64_t tokens) {
    const IdSection section{ids.offset, static_cast<std::uint64_t>(tokens), header.width};
    file->sources.push_back(std::make_shared<const FileTokens>(bytes, section, joins_in(*bytes, joins, tokens)));
    return TokenSpan(*file->sources.back(), facts.vocab_size);
  };
  file->train = view(train, train_joins, facts.train_tokens);
  file->val = view(val, val_joins, facts.val_tokens);
  return file;
}

void verify_hash(const StableFile& file) {
  constexpr std::uint64_t kBlockBytes = 1 << 16;  // per read: few calls, little memory
  Hash128 hash;
  for (std::uint64_t at = sizeof(Header); at < file.size(); at += kBlockBytes)
    hash.add(read_section(file, {at, std::min(kBlockBytes, file.size() - at)}));
  check<CorpusError>(hash.value() == header_of(file).data_hash,
                     "{}: is a damaged token file: checksum mismatch of its data; prepare it again", file.path());
}

void verify_ids(TokenSpan tokens, const std::string& path) {
  constexpr std::size_t kBlockTokens = 1 << 16;  // per read: few calls, 256 KiB of memory
  std::vector<std::int32_t> ids(kBlockTokens);
  try {
    for (std::size_t at = 0; at < tokens.size(); at += kBlockTokens)
      tokens.copy(static_cast<std::int64_t>(at), std::span(ids).first(std::min(kBlockTokens, tokens.size() - at)));
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: {}", path, error.what());
  }
}

}  // namespace

std::uint32_t token_width(std::int64_t vocab_size) {
  if (vocab_size <= 1 << 8) return 1;
  return vocab_size <= 1 << 16 ? 2 : 4;
}

std::uint64_t token_file_padding(std::uint64_t offset) {
  return (TokenFileLayout::kAlignment - offset % TokenFileLayout::kAlignment) % TokenFileLayout::kAlignment;
}

std::string token_file_header(const TokenFileFacts& facts, const TokenFileLayout& layout) {
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  Header h{.magic = kMagic,
           .version = kFormatVersion,
           .width = layout.width,
           .tokenizer_bytes = layout.tokenizer_bytes,
           .vocab_size = number(facts.vocab_size),
           .train_tokens = number(facts.train_tokens),
           .val_tokens = number(facts.val_tokens),
           .train_joins = number(facts.train_joins),
           .val_joins = number(facts.val_joins),
           .documents = number(facts.documents),
           .bytes = number(facts.bytes),
           .val_bytes = number(facts.val_bytes),
           .characters = number(facts.characters),
           .val_characters = number(facts.val_characters),
           .val_fraction = facts.val_fraction,
           .best_possible_loss = facts.best_possible_loss.value_or(0),
           .tokenizer_hash = hash_of_hex(facts.tokenizer_hash),
           .corpus_hash = hash_of_hex(facts.corpus_hash),
           .data_hash = layout.data_hash,
           .vocab_limit = number(facts.vocab_limit),
           .reserved = {},
           .hash = {}};
  h.hash = hash_of(h);
  return std::string(bytes_text(std::as_bytes(std::span(&h, 1))));
}

bool is_token_file(const std::string& path) {
  return read_beginning(path, kMagic.size()) == std::string_view(kMagic.data(), kMagic.size());
}

std::shared_ptr<const TokenFile> open_token_file(const std::string& path) {
  return token_file_in(std::make_shared<const StableFile>(path));
}

void verify_token_file(const TokenFile& file) {
  for (const std::shared_ptr<const StableFile>& bytes : file.files) {
    verify_hash(*bytes);
    const std::shared_ptr<const TokenFile> part = token_file_in(bytes);
    for (const TokenSpan& tokens : {part->train, part->val}) verify_ids(tokens, part->path);
  }
}

}  // namespace maki
