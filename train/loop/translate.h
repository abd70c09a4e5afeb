// Translation of lines by a sequence-to-sequence model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autograd/core/stop_request.h"
#include "data/dataset/pair_batches.h"
#include "nn/generate/beam.h"

namespace maki {

struct TranslateOptions {
  std::int64_t beam_size = 1;    ///< 1: greedy search
  double length_penalty = 0.6;   ///< see BeamOptions
  std::int64_t max_tokens = 64;  ///< of a translation; never more than the model has room for
  std::int64_t batch_size = 64;  ///< sources that are translated at once; at least 1
};

/// One translation for each of the sources (ids without an end token), in their order: a function of the model, the
/// source and the options alone, whatever batch it is in. Sources of similar length share a batch. `stop` is
/// asked before each batch; once it is requested, the remaining results are empty. Throws what
/// beam_search() throws.
std::vector<Hypothesis> translate(const Generator& model, std::span<const std::vector<std::int32_t>> sources,
                                  const PairEnds& ends, const TranslateOptions& options, const StopRequest& stop = {});

/// The text of a translation: one line of well-formed UTF-8, whatever the model has written. Line ends become spaces,
/// and bytes that are not UTF-8, which a tokenizer of bytes can give, become U+FFFD.
std::string translated_line(const Tokenizer& tokenizer, const Hypothesis& translation);

/// The end tokens of a model with these tokenizers: the first ids after theirs.
PairEnds ends_of(const PairTokenizers& tokenizers);

}  // namespace maki
