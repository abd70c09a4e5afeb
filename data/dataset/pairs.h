// Parallel text: pairs of a source line and a target line, such as sentences and their translations, and their tokens.
//
// Thread safety: everything here may be read on several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unknown_characters.h"

namespace maki {

struct LinePair {
  std::string_view source, target;
};

/// What the second side of a pair is to the first: a line of another text, or one of a few labels.
enum class PairKind : std::uint8_t { translation, labels };

/// The pairs of a corpus of two files, whose lines correspond, or of one file with a source, a tab and a target in each
/// line; or of any number of files in which every line has one tab, which are parts of one such file. Lines end with LF
/// or CRLF. The lines are views of corpus.text, which must outlive them. Throws CorpusError, naming files and lines, if
/// the files have different numbers of lines, if a source or target is empty, or if a line does not have exactly one
/// tab; if check_columns() throws (data/dataset/columns.h); and if the corpus consists of tokens, of more than two
/// other files, or of a directory of several.
std::vector<LinePair> read_pairs(const Corpus& corpus, PairKind kind = PairKind::translation);

/// Where a line of a corpus is, for messages.
struct LinePlace {
  std::string file;
  std::int64_t number;  ///< of the line in this file, from 1
};
/// Requires: the line is a view of corpus.text.
LinePlace place_of(const Corpus& corpus, std::string_view line);

/// Pairs of token sequences.
class TokenPairs {
 public:
  TokenPairs() = default;
  /// Empty, for ids below these sizes.
  TokenPairs(std::int64_t source_vocab_size, std::int64_t target_vocab_size)
      : source_(source_vocab_size), target_(target_vocab_size) {}

  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target);

  std::int64_t size() const { return static_cast<std::int64_t>(source_ends_.size()); }
  std::int64_t source_length(std::int64_t i) const { return length(source_ends_, i); }
  std::int64_t target_length(std::int64_t i) const { return length(target_ends_, i); }
  std::vector<std::int32_t> source(std::int64_t i) const { return ids(source_, source_ends_, i); }
  std::vector<std::int32_t> target(std::int64_t i) const { return ids(target_, target_ends_, i); }
  /// Tokens of all sources and targets together.
  std::int64_t token_count() const { return static_cast<std::int64_t>(source_.size() + target_.size()); }

 private:
  using Ends = std::vector<std::int64_t>;
  static std::int64_t begin(const Ends& ends, std::int64_t i);
  static std::int64_t length(const Ends& ends, std::int64_t i);
  static std::vector<std::int32_t> ids(const Tokens& tokens, const Ends& ends, std::int64_t i);

  Tokens source_, target_;
  Ends source_ends_, target_ends_;  // one past the last token of each
};

/// The tokenizers of a model that reads one language and writes another. Both are the same object if the vocabulary is
/// shared.
struct PairTokenizers {
  std::shared_ptr<const Tokenizer> source, target;
};

struct PairDataset {
  PairTokenizers tokenizers;
  TokenPairs train, val;
  /// The target lines of `val`, normalized as the target tokenizer does it: a model can write no others. Unlike in the
  /// tokens, characters that the vocabulary lacks are there.
  std::vector<std::string> val_targets;
  std::int64_t unknown = 0;     ///< characters that a vocabulary lacks, and that were left out or replaced
  std::string corpus_hash;      ///< Corpus::hash
  std::int64_t characters = 0;  ///< of the whole corpus
};

struct PairOptions {
  double val_fraction = 0.1;       ///< the last pairs of the corpus, for validation
  bool validate_all = false;       ///< instead: all pairs are for validation
  std::int64_t max_tokens = 0;     ///< of a source or of a target; must be set, as 0 refuses every pair
  std::string tokenizer = "char";  ///< the kind of the tokenizers
  TokenizerOptions tokenizer_options = {};
  bool shared_vocabulary = false;     ///< one tokenizer for both sides
  Unknown unknown = Unknown::refuse;  ///< what to do with characters that an existing vocabulary lacks
  /// Existing ones; null: new ones, learned from the training pairs, or with validate_all from all.
  PairTokenizers tokenizers = {};
};

/// The two tokenizers of a kind for these pairs, learned from the first `train` of them; they can encode all. Throws
/// what make_tokenizer() throws. Requires: train <= pairs.size().
PairTokenizers make_pair_tokenizers(std::span<const LinePair> pairs, std::size_t train, const std::string& kind,
                                    bool shared, const TokenizerOptions& options = {});
/// A line of one side as tokens. `unknown` is increased by the number of characters that were left out or replaced.
/// Throws what known_text() throws.
std::vector<std::int32_t> encode_line(const Tokenizer& tokenizer, std::string_view line, Unknown policy,
                                      std::int64_t& unknown);
/// How many of the pairs, at the end, are for validation: at least one if val_fraction > 0. Throws CorpusError if none
/// would be left for training, and Error unless val_fraction is in [0, 1).
std::int64_t val_pair_count(std::int64_t pairs, double val_fraction, PairKind kind = PairKind::translation);

/// The pairs of a corpus as tokens, divided into training and validation. Throws what read_pairs(), val_pair_count()
/// and make_pair_tokenizers() throw, and CorpusError, naming the file and the pair, if encode_line() throws it or if a
/// side has more than max_tokens tokens.
PairDataset make_pair_dataset(const Corpus& corpus, const PairOptions& options);

}  // namespace maki
