// Token files: a corpus that `maki prepare` has encoded, with its tokenizer, its split and its boundaries. Its ids are
// read when they are needed, so training from one begins at once, whatever its size. docs/formats.md describes the
// format.
//
// Thread safety: a token file may be read on several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/io/stable_file.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// What the header of a token file says about its text.
struct TokenFileFacts {
  std::string tokenizer_hash = {}, corpus_hash = {};  ///< Tokenizer::hash(), Corpus::hash
  std::int64_t vocab_size = 0;
  std::int64_t vocab_limit = 0;  ///< the size that a new vocabulary was to have and did not reach; else 0
  std::int64_t train_tokens = 0, val_tokens = 0;
  std::int64_t train_joins = 0, val_joins = 0;  ///< boundaries of pieces, see TokenSpan::joins()
  std::int64_t documents = 0;                   ///< if the text consists of documents; else 0
  std::int64_t bytes = 0, val_bytes = 0;        ///< of the whole text, and of the validation text
  std::int64_t characters = 0, val_characters = 0;
  double val_fraction = 0;
  std::optional<double> best_possible_loss = {};  ///< Dataset::best_possible_loss
};

struct TokenFile {
  /// For messages; of several files that of the first, "and … more". The second is that of the files for validation, if
  /// they are files of another program.
  std::string path, val_path;
  TokenFileFacts facts;
  TokenSpan train, val;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null: the file is one of another program, which does not say
  std::vector<std::shared_ptr<const StableFile>> files;
  bool has_validation = true;  ///< false: of a file of another program, a part of the training tokens is for validation
  std::vector<std::shared_ptr<const TokenSource>> sources = {};  ///< keep what `train` and `val` view
};

/// Whether a regular file begins like a token file.
bool is_token_file(const std::string& path);
/// Opens a token file and checks everything but the ids, which are checked when they are read, and the hash of the
/// data. Takes memory in proportion to the tokenizer and the boundaries. Throws CorpusError, naming the file, if it
/// cannot be read, is damaged, or has another version of the format.
std::shared_ptr<const TokenFile> open_token_file(const std::string& path);
/// Reads the whole file, or each of several, and checks the hash of the data and every id. Throws CorpusError, naming
/// the file. Requires: `file` is from open_token_file() or open_token_files().
void verify_token_file(const TokenFile& file);

/// The layout of a token file: what writers and readers share.
struct TokenFileLayout {
  static constexpr std::uint64_t kHeaderBytes = 256;  ///< four cache lines: what is known today, and reserved zeros
  static constexpr std::uint64_t kAlignment = 64;     ///< of sections, in bytes: a cache line
  std::uint64_t tokenizer_bytes = 0;
  std::uint32_t width = 0;                   ///< bytes per id
  std::array<std::uint8_t, 16> data_hash{};  ///< XXH3-128 of all bytes after the header
};
/// Bytes per id that a vocabulary needs: 1, 2 or 4.
std::uint32_t token_width(std::int64_t vocab_size);
/// The zeros that follow a section which ends at this offset.
std::uint64_t token_file_padding(std::uint64_t offset);
/// The bytes of the header. The other sections follow in this order, each padded to a multiple of 64 bytes except the
/// last: the tokenizer as it is saved; the ids for training; those for validation; the joins of both, as 64-bit
/// numbers.
std::string token_file_header(const TokenFileFacts& facts, const TokenFileLayout& layout);

}  // namespace maki
