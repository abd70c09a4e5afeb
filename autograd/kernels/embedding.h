// Embedding: looks up rows of a table by index, and sums their gradients.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// Sizes of one lookup: table [vocabulary, cols], ids [id_count], each in [0, vocabulary).
struct EmbeddingShape {
  std::int64_t vocabulary, cols, id_count;
};

/// y [id_count, cols], y[i] = table[ids[i]].
template <class T>
void embedding_forward(const EmbeddingShape& shape, const T* table, const std::int32_t* ids, T* y);

/// 32-bit integers of scratch that embedding_backward() needs.
std::int64_t embedding_backward_scratch(const EmbeddingShape& shape);
/// dtable[v] = Σ dy[i] over all i with ids[i] = v, added if the sink adds; otherwise rows that no id refers to are set
/// to 0. dy [id_count, cols]; scratch: embedding_backward_scratch() elements. Each sum runs in the order of i, in
/// blocks of 256 rows, and the table is divided among the threads, so no bit depends on the number of threads.
template <class T>
void embedding_backward(const EmbeddingShape& shape, const std::int32_t* ids, const T* dy, Sink<T> dtable,
                        std::int32_t* scratch);

}  // namespace maki::kernels
