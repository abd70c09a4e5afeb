// Attention with a mask of its own for every query, reduced to problems that the kernels know: ranges of queries that
// share one mask of keys, causal or not.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

/// Queries [begin, end) of some sequences. Each sees the keys that key_mask lets through; if `causal`, query end − 1
/// sees those up to key keys − 1, and every query before it one key less.
struct MaskRun {
  std::int64_t first_sequence, sequences, begin, end, keys;
  bool causal;
  Tensor key_mask;  ///< [sequences, keys]
};

/// Runs, from the first query on, each as long as it can be, whose queries see what the mask, the key mask (if not
/// empty) and the causal rule (if set: query t sees keys up to t + S − T) let through together: mask [T, S] for all
/// sequences, or [B, T, S]. Documents that are packed into one sequence give a run each, a prefix that sees itself and
/// is followed by causal text gives two, and a mask without any such structure one run per query, which is correct but
/// slow. Where two neighbouring queries have the same mask, a run of such queries is preferred to a causal one, even if
/// that would be longer.
std::vector<MaskRun> mask_runs(const Tensor& mask, const Tensor& key_mask, std::int64_t batch, bool causal);

}  // namespace maki
