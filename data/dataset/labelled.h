// Labelled text: lines of a text and its label, from which a classifier learns.
//
// Thread safety: everything here may be read on several threads at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/pairs.h"

namespace maki {

/// The saved form of labels: one per line.
std::string save_labels(const std::vector<std::string>& labels);
/// Restores them. Throws CorpusError unless there are at least two labels, not empty and in ascending order of their
/// bytes.
std::vector<std::string> load_labels(std::string_view saved);

struct LabelledDataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> labels;  ///< in ascending order of their bytes; a label's index is its class
  TokenPairs train, val;            ///< the source is the text, and the target is one token, the class
  std::string corpus_hash;          ///< Corpus::hash
  std::int64_t characters = 0;      ///< of the whole corpus
};

struct LabelledOptions {
  /// Of the lines, for validation: one of each stretch of 1 / val_fraction lines, always the same.
  double val_fraction = 0.1;
  std::int64_t max_tokens = 0;                           ///< of a text; must be set, as 0 refuses every text
  std::string tokenizer_kind = "char";                   ///< of a new tokenizer
  TokenizerOptions tokenizer_options = {};               ///< of a new tokenizer; labels are normalized as it says
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  ///< an existing one; null: a new one, for the whole corpus
  std::vector<std::string> labels = {};                  ///< those of an existing model; empty: those of the corpus
};

/// Reads the lines as read_pairs() does, where the label is in the place of the target. Throws what read_pairs() and
/// val_pair_count() throw, and CorpusError, naming file and line, if the vocabulary lacks a character, if a text has
/// more than max_tokens tokens, if a label is not one of options.labels; and if these are empty and the lines have
/// fewer than two labels, or labels that differ in spaces around them alone.
LabelledDataset make_labelled_dataset(const Corpus& corpus, const LabelledOptions& options);

}  // namespace maki
