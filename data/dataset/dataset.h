// A dataset: the training and validation tokens of a corpus.
//
// Thread safety: a dataset may be read on several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens train, val;        ///< in the pieces of encode_pieces(); val is empty if val_fraction is 0
  std::string corpus_hash;  ///< Corpus::hash
  /// Of the whole corpus; of tokens of another program, an estimate (with_tokenizer()).
  std::int64_t characters = 0;
  std::int64_t documents = 0;  ///< that the corpus consists of; 0 if nobody said what a document is
  /// The lowest possible loss in nats per validation token (without validation text, per token of the whole text), if
  /// it is known: for the built-in stories, from the entropy of their grammar.
  std::optional<double> best_possible_loss;
  std::shared_ptr<const TokenFile> prepared = nullptr;  ///< if the corpus was prepared: where the tokens are from
};

/// Code points in all pieces of well-formed text together.
std::int64_t count_code_points(const std::vector<std::string_view>& pieces);
/// What a piece of text is: a part of a file, or a document.
enum class PieceKind : std::uint8_t { part, document };
/// The tokens of the pieces, one piece each; but if the vocabulary has a token that ends a document, documents are one
/// piece together, in which each of them is followed by that token. Throws CorpusError if a piece has characters that
/// the vocabulary lacks.
Tokens encode_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces,
                     PieceKind kind = PieceKind::part);
inline PieceKind piece_kind(const Corpus& corpus) {
  return corpus.documents.empty() ? PieceKind::part : PieceKind::document;
}

/// A corpus that consists of tokens: files of maki or of another program (token_file_paths()). nullopt if the sources
/// denote text. Its number of characters is 0 if the files are of another program, since that takes the tokenizer.
/// Throws CorpusError, naming the file, if it is damaged or used beside a text; Error without sources, and for a
/// directory with a model of Hugging Face.
std::optional<Corpus> prepared_corpus(const std::vector<std::string>& sources);

/// The dataset of a corpus that was prepared, which shares the tokens of its file. `tokenizer` is that of the model, or
/// null; that of the dataset is used like it, but encodes as that of the file. Throws CorpusError unless both have
/// same_ids(), and, for files of another program, if it is null or lacks an id. Only such files, and only without one
/// for validation, use val_fraction. Requires: corpus.prepared.
Dataset share_tokens(const Corpus& corpus, double val_fraction, std::shared_ptr<const Tokenizer> tokenizer);

/// Splits the corpus (split_text()) and encodes both parts, with the given tokenizer or else with a new one of
/// `tokenizer_kind` and `tokenizer_options`, which learns from the training text and can encode both. Throws
/// CorpusError if the training text, or the validation text with val_fraction > 0, has fewer than block_size + 1
/// tokens, or if the given tokenizer lacks characters of the text; whatever make_tokenizer() throws; and Error unless
/// val_fraction is in [0, 1).
///
/// A corpus that was prepared has been split and encoded already, so val_fraction must be that of its file
/// (CorpusError), and the dataset shares the tokens of the file. Files of another program have none. For the tokenizer
/// see share_tokens().
Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer = nullptr,
                     const TokenizerOptions& tokenizer_options = {});

}  // namespace maki
