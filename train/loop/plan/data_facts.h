// What a plan has to know about the data of a model that make_plan() does not choose.
#pragma once

#include <cstdint>
#include <string>

#include "data/text/corpus.h"
#include "train/run/config/config.h"

namespace maki {

struct DataFacts {
  /// Of the text, also if it was prepared. Of ids without a tokenizer, whose text is not known, their number: a token
  /// has at least one byte.
  std::int64_t bytes = 0;
  /// Of data in columns, such as sources and targets: the number of lines, and the size of the longest column of a
  /// line, normalized as the configuration says; 0 for a plain text.
  std::int64_t lines = 0, longest_bytes = 0, longest_characters = 0;
  /// With which of char and word these data are learned better.
  std::string tokenizer = "char";

  /// An upper bound of the tokens of a column, its end token included, with a tokenizer of this kind.
  std::int64_t most_tokens(const std::string& kind) const;
};

/// For the task of the configuration. Throws what read_pairs() throws.
DataFacts data_facts(const Corpus& corpus, const Config& config);

}  // namespace maki
