// Prepares a corpus for training: splits it, encodes it and writes the tokens. The text is never in memory as a whole.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"
#include "data/io/output.h"
#include "data/text/corpus.h"

namespace maki {

struct PrepareOptions {
  std::vector<std::string> sources;
  CorpusOptions corpus = {};
  double val_fraction = 0.1;
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  ///< null: a new one
  std::string tokenizer_kind = "char";                   ///< of a new tokenizer
  TokenizerOptions tokenizer_options = {};               ///< of a new tokenizer
  OutputPath out;                                        ///< a file; a directory for formats of other programs
  std::string format = "maki";                           ///< one of token_formats()
  /// Receives messages for a user as soon as they are known, because they may explain an error that follows.
  std::function<void(const std::vector<std::string>&)> on_notes = {};
};

/// "maki", "nanogpt" and "llm.c".
std::vector<std::string> token_formats();

/// A new vocabulary is learned from at most this many bytes of training text, spread evenly over it. Learning byte
/// pairs takes up to 40 bytes of memory per byte (Japanese text in which hardly any clause occurs twice), here 160 MiB.
inline constexpr std::size_t kMaxLearnedBytes = std::size_t{4} << 20;

struct Prepared {
  std::shared_ptr<const Tokenizer> tokenizer;
  TokenFileFacts facts;
  std::size_t learned_bytes = 0;   ///< of training text, from which a new vocabulary was learned; 0: none was
  std::size_t training_bytes = 0;  ///< of all training text, if a new vocabulary was learned
  std::vector<std::string> files;  ///< what was written
};

/// The tokens are those of make_dataset() with the same tokenizer, which for training texts of up to kMaxLearnedBytes
/// is also the tokenizer that make_dataset() would make. Throws what load_corpus() throws; CorpusError if a source is a
/// token file, if the vocabulary lacks a character of the text, if no training text is left, or no validation text
/// although val_fraction is not 0; Error for an unknown format or one that cannot hold the tokens, and if `out` is not
/// free (output.h); CheckpointError if a file cannot be written. After an error, or a signal that ends the program, no
/// file remains that was begun.
Prepared prepare_corpus(FileSystem& fs, const PrepareOptions& options);

}  // namespace maki
