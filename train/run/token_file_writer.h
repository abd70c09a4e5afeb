// Writes a token file (data/dataset/token_file.h) in one pass, while the text is encoded.
#pragma once

#include <string>
#include <vector>

#include "data/dataset/token_file.h"
#include "data/io/atomic_file.h"

namespace maki {

/// Receives the tokens of a corpus: those for training, then those for validation. All functions throw CheckpointError
/// if a file cannot be written. Without a call of commit(), the destructor leaves the files of before.
class TokenWriter {
 public:
  virtual ~TokenWriter() = default;
  /// The next tokens. A piece begins at each of their joins; a join at their end means that the tokens which follow are
  /// those of another piece. Requires: the ids are below the size of the vocabulary.
  virtual void append(TokenSpan ids) = 0;
  /// What follows is validation text. Called at most once; without a call there is none.
  virtual void begin_validation() = 0;
  /// Ends and replaces the files. Numbers of tokens and joins, and what describes the tokenizer, are filled in.
  virtual void commit(const TokenFileFacts& facts) = 0;
};

class TokenFileWriter final : public TokenWriter {
 public:
  TokenFileWriter(FileSystem& fs, const OutputPath& out, const Tokenizer& tokenizer);

  void append(TokenSpan ids) override;
  void begin_validation() override;
  void commit(const TokenFileFacts& facts) override;

 private:
  struct Part {
    std::int64_t tokens = 0;
    std::vector<std::int64_t> joins;
    bool begins_piece = false;  // the next token is the first of a piece
  };
  void pad();
  void add_join(Part& part, std::int64_t at);

  AtomicFile file_;
  std::int64_t vocab_size_;
  std::string tokenizer_hash_;
  TokenFileLayout layout_;
  Part train_, val_;
  Part* part_ = &train_;
};

/// Appends ids as little-endian numbers of this width. Requires: width is 1, 2 or 4, and enough for the ids.
void append_tokens(AtomicFile& file, TokenSpan ids, std::uint32_t width);

}  // namespace maki
