// Rows of a table by number, and the sum of their gradients.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// Sizes of one lookup: table [vocabulary, cols], ids [count], each in [0, vocabulary).
struct EmbeddingShape {
  std::int64_t vocabulary, cols, count;
};

/// y [count, cols], y[i] = table[ids[i]].
template <class T>
void embedding_forward(const EmbeddingShape& shape, const T* table, const std::int32_t* ids, T* y);

/// 32-bit integers of scratch that backward needs.
std::int64_t embedding_backward_scratch(const EmbeddingShape& shape);
/// dtable[v] takes Σ dy[i] over the i with ids[i] = v, in the order of i by blocks of 64: a counting sort of the ids
/// says which, and threads share out the table. dy [count, cols]. Where the sink does not add, rows that no id names
/// are zeroed.
template <class T>
void embedding_backward(const EmbeddingShape& shape, const std::int32_t* ids, const T* dy, Sink<T> dtable,
                        std::int32_t* scratch);

}  // namespace maki::kernels
