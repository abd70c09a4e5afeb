// Random tokens, where the text does not matter: for benchmarks and the gradient check.
#pragma once

#include "data/dataset/dataset.h"
#include "data/dataset/labelled.h"
#include "data/dataset/pairs.h"

namespace maki {

/// `tokens` training tokens, drawn uniformly from a vocabulary of this size: a function of the seed. No validation
/// text. Throws Error unless 1 <= vocab_size <= 1,000,000.
Dataset random_dataset(std::int64_t vocab_size, std::int64_t tokens, std::uint64_t seed);
/// Pairs for training, whose sources and targets have `length` tokens each (at least 1), for a model with vocabularies
/// of these sizes, which include the end tokens. Throws Error unless both are between 2 and 1,000,001.
PairDataset random_pairs(std::int64_t source_vocab_size, std::int64_t vocab_size, std::int64_t pairs,
                         std::int64_t length, std::uint64_t seed);
/// Texts for training, of 1 to `length` tokens each, and random classes. Throws Error unless 1 <= vocab_size <=
/// 1,000,000. Requires: length and classes are at least 1.
LabelledDataset random_labelled(std::int64_t vocab_size, std::int64_t classes, std::int64_t texts, std::int64_t length,
                                std::uint64_t seed);

}  // namespace maki
