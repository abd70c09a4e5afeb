// Embedding: looks up rows of a table by index, and sums their gradients.
// T is float or double. No argument is checked (the ops do that); embedding_backward() and embedding_sum_backward()
// throw Error if MAKI_TARGET is invalid (simd/target.h), the others nothing.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

/// Sizes of one lookup: table [vocabulary, cols], ids [id_count], each in [0, vocabulary). Requires: id_count
/// < 2^31, which no one checks.
struct EmbeddingShape {
  std::int64_t vocabulary, cols, id_count;
};

/// y [id_count, cols], y[i] = table[ids[i]].
template <class T>
void embedding_forward(const EmbeddingShape& shape, const T* table, const std::int32_t* ids, T* y);

/// 32-bit integers of scratch that embedding_backward() needs.
std::int64_t embedding_backward_scratch(const EmbeddingShape& shape);
/// dtable[v] = Σ dy[i] over all i with ids[i] = v, added if the sink adds; otherwise rows that no id refers to are set
/// to 0. dy [id_count, cols]; scratch: embedding_backward_scratch() elements. A sum runs in the order of i, and each
/// kGemmChainLength positions (512, gemm/gemm.h) are summed first, because in a single chain the rounding errors of a
/// frequent id would add up. These are the bits of the product one_hot(ids)ᵀ · dy on the vector units. Each thread has
/// its own rows or columns of the table, so no bit depends on the number of threads.
template <class T>
void embedding_backward(const EmbeddingShape& shape, const std::int32_t* ids, const T* dy, Sink<T> dtable,
                        std::int32_t* scratch);

/// Sizes of one sum of rows: table [rows, cols], ids [tokens, terms], each in [−1, rows), where −1 is no row. Requires:
/// tokens · terms < 2^31, which no one checks.
struct EmbeddingSumShape {
  std::int64_t rows, cols, tokens, terms;
};

/// y [tokens, cols], y[i] = Σ_k table[ids[i, k]], in the order of k; 0 if all of its ids are −1.
template <class T>
void embedding_sum_forward(const EmbeddingSumShape& shape, const T* table, const std::int32_t* ids, T* y);

/// The ids that occur, in ascending order, and for each the tokens that name it, in ascending order; a token that names
/// an id twice is listed twice.
struct IdGroups {
  std::int32_t* ids;     ///< [count]
  std::int32_t* first;   ///< [count + 1]: the tokens of ids[u] are tokens[first[u]] … tokens[first[u + 1] − 1]
  std::int32_t* tokens;  ///< in the order of their occurrences
  std::int64_t count;
};
/// 32-bit integers of scratch that group_by_id() needs.
std::int64_t group_by_id_scratch(const EmbeddingSumShape& shape);
/// Sorts the occurrences of ids that are not −1, on the calling thread. The result points into scratch.
IdGroups group_by_id(const EmbeddingSumShape& shape, const std::int32_t* ids, std::int32_t* scratch);
/// sums[u] = Σ dy[i] over the tokens i of group u, [count, cols]; dy [tokens, cols]. The order of the sums is that of
/// embedding_backward(), so no bit depends on the number of threads.
template <class T>
void embedding_sum_backward(const EmbeddingSumShape& shape, const IdGroups& groups, const T* dy, T* sums);

}  // namespace maki::kernels
