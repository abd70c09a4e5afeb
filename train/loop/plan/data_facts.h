// What a plan has to know about the data of a model that make_plan() does not choose.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"
#include "train/run/config/config.h"

namespace maki {

struct DataFacts {
  /// Of the text, also if it was prepared. Of ids without a tokenizer, whose text is not known, their number: a token
  /// has at least one byte.
  std::int64_t bytes = 0;
  /// Of data in columns, such as sources and targets: the number of lines, and the size of the longest column of a
  /// line, normalized as the configuration says; 0 for a plain text.
  std::int64_t lines = 0, longest_bytes = 0, longest_characters = 0;
  /// Of a plain text that is so short that it limits the context: the tokens of its shorter part.
  std::optional<std::int64_t> fewest_tokens = std::nullopt;
  /// With which of char and word these data are learned better.
  std::string tokenizer = "char";

  /// An upper bound of the tokens of a column, its end token included, with a tokenizer of this kind.
  std::int64_t most_tokens(const std::string& kind) const;
};

/// For the task of the configuration. `tokenizer` is the one that is given, or null. Throws what read_pairs() and, for
/// a short text, make_dataset() throw.
DataFacts data_facts(const Corpus& corpus, const Config& config,
                     const std::shared_ptr<const Tokenizer>& tokenizer = nullptr);

}  // namespace maki
