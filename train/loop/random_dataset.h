// Random tokens, where the text does not matter: for benchmarks and the gradient check.
#pragma once

#include "data/dataset/dataset.h"

namespace maki {

/// `tokens` training tokens, drawn uniformly from a vocabulary of this size: a function of the seed. No validation
/// text. Throws Error unless 1 <= vocab_size <= 1,000,000.
Dataset random_dataset(std::int64_t vocab_size, std::int64_t tokens, std::uint64_t seed);

}  // namespace maki
