#include "autograd/kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/embedding.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// into[j] (+)= Σ_i dy[i, j] over the `count` >= 1 rows i that `places` lists in ascending order, for j < width. The
// rows of each kGemmChainLength consecutive positions make one block, as in a product whose reduction runs over the
// positions: the sum has the bits of the product of one-hot rows with dy, in which all other terms are 0. In a single
// chain the rounding errors of the thousands of gradients of a frequent id would add up.
template <class T>
void gather_sum(const std::int32_t* places, std::int64_t count, std::int64_t width, std::int64_t cols, const T* dy,
                Sink<T> into) {
  constexpr auto kBlock = static_cast<std::int32_t>(kGemmChainLength);
  for_each_vector<T>(width, [=](const auto& at, std::int64_t j) HWY_ATTR {
    auto total = hn::Zero(at.d);
    for (std::int64_t i = 0; i < count;) {
      const std::int32_t block_number = places[i] / kBlock;
      auto block = at.Load(dy + places[i++] * cols + j);
      for (; i < count && places[i] / kBlock == block_number; ++i)
        block = hn::Add(block, at.Load(dy + places[i] * cols + j));
      total = hn::Add(total, block);
    }
    put_vector(at, into, j, total);
  });
}

MAKI_KERNEL(gather_sum);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(gather_sum);

// The positions at which ids[i] = v: places[first[v] … first[v + 1]), in ascending order.
struct Places {
  const std::int32_t* first;   // [vocabulary + 1]
  const std::int32_t* places;  // [id_count]
  std::int64_t count(std::int64_t v) const { return first[v + 1] - first[v]; }
};

// A counting sort. scratch: embedding_backward_scratch() elements.
Places sort_by_id(const EmbeddingShape& shape, const std::int32_t* ids, std::int32_t* scratch) {
  // At first, first[v + 2] counts the occurrences of v. After the prefix sum, first[v + 1] is where the places of v
  // begin; filling them moves it to their end, which is where those of v + 1 begin.
  std::int32_t* const first = scratch;
  std::int32_t* const places = scratch + shape.vocabulary + 2;
  std::fill(first, first + shape.vocabulary + 2, 0);
  for (std::int64_t i = 0; i < shape.id_count; ++i) ++first[ids[i] + 2];
  for (std::int64_t v = 2; v < shape.vocabulary + 2; ++v) first[v] += first[v - 1];
  for (std::int64_t i = 0; i < shape.id_count; ++i) places[first[ids[i] + 1]++] = static_cast<std::int32_t>(i);
  return {first, places};
}

// The gradient of columns [left, left + width) of rows [begin, end) of the table. Consecutive rows that no id refers to
// are zeroed together, because a large memset does not read memory before writing it.
template <class T, class Kernel>
void scatter(Kernel kernel, const EmbeddingShape& shape, const Places& sorted, std::int64_t begin, std::int64_t end,
             std::int64_t left, std::int64_t width, const T* dy, Sink<T> dtable) {
  const std::int64_t cols = shape.cols;
  for (std::int64_t v = begin; v < end;) {
    std::int64_t next = v;
    while (next < end && sorted.count(next) == 0) ++next;
    if (!dtable.add && width == cols) {
      std::memset(dtable.data + v * cols, 0, static_cast<std::size_t>((next - v) * cols) * sizeof(T));
    } else if (!dtable.add) {
      for (; v < next; ++v) {
        std::memset(dtable.data + v * cols + left, 0, static_cast<std::size_t>(width) * sizeof(T));
      }
    }
    for (v = next; v < end && sorted.count(v) > 0; ++v) {
      const std::int32_t* const places = sorted.places + sorted.first[v];
      const Sink<T> into{dtable.data + v * cols + left, dtable.add};
      kernel(places, sorted.count(v), width, cols, dy + left, into);
    }
  }
}

}  // namespace

template <class T>
void embedding_forward(const EmbeddingShape& shape, const T* table, const std::int32_t* ids, T* y) {
  const std::int64_t cols = shape.cols;
  parallel_for(shape.id_count, cols, [&](std::int64_t i) { std::copy_n(table + ids[i] * cols, cols, y + i * cols); });
}
template void embedding_forward(const EmbeddingShape&, const float*, const std::int32_t*, float*);
template void embedding_forward(const EmbeddingShape&, const double*, const std::int32_t*, double*);

std::int64_t embedding_backward_scratch(const EmbeddingShape& shape) { return shape.vocabulary + 2 + shape.id_count; }

template <class T>
void embedding_backward(const EmbeddingShape& shape, const std::int32_t* ids, const T* dy, Sink<T> dtable,
                        std::int32_t* scratch) {
  const auto kernel = MAKI_DISPATCH(gather_sum, T);
  const Places sorted = sort_by_id(shape, ids, scratch);
  // A large table is divided among the threads in pieces of whole rows, most of which are only zeroed, and a smaller
  // one in strips of columns, because a few frequent rows may be most of the work. The numbers change no bit.
  constexpr std::int64_t kMinLargeTableRows = 1024;  // 16 pieces, which occupy the threads of most machines
  constexpr std::int64_t kPieceRows = 64;            // so few that the pieces with frequent rows meet several threads
  constexpr std::int64_t kStripColumns = 32;         // two cache lines of float32, which two threads should not share
  const bool large = shape.vocabulary >= kMinLargeTableRows;
  const std::int64_t width = large ? std::max<std::int64_t>(shape.cols, 1) : kStripColumns;
  const std::int64_t height = large ? kPieceRows : std::max<std::int64_t>(shape.vocabulary, 1);
  const std::int64_t strips = ceil_div(shape.cols, width), tasks = ceil_div(shape.vocabulary, height) * strips;
  const std::int64_t work = (shape.vocabulary + shape.id_count) * shape.cols;
  parallel_for(tasks, work / std::max<std::int64_t>(tasks, 1), [&](std::int64_t task) {
    const std::int64_t begin = task / strips * height, left = task % strips * width;
    scatter(kernel, shape, sorted, begin, std::min(shape.vocabulary, begin + height), left,
            std::min(width, shape.cols - left), dy, dtable);
  });
}
template void embedding_backward(const EmbeddingShape&, const std::int32_t*, const float*, Sink<float>, std::int32_t*);
template void embedding_backward(const EmbeddingShape&, const std::int32_t*, const double*, Sink<double>,
                                 std::int32_t*);

template <class T>
void embedding_sum_forward(const EmbeddingSumShape& shape, const T* table, const std::int32_t* ids, T* y) {
  const std::int64_t cols = shape.cols;
  parallel_for(shape.tokens, shape.terms * cols, [&](std::int64_t i) {
    T* const sum = y + i * cols;
    std::fill_n(sum, cols, T{0});
    for (std::int64_t k = 0; k < shape.terms; ++k) {
      const std::int64_t id = ids[i * shape.terms + k];
      if (id < 0) continue;
      for (std::int64_t j = 0; j < cols; ++j) sum[j] += table[id * cols + j];
    }
  });
}
template void embedding_sum_forward(const EmbeddingSumShape&, const float*, const std::int32_t*, float*);
template void embedding_sum_forward(const EmbeddingSumShape&, const double*, const std::int32_t*, double*);

std::int64_t group_by_id_scratch(const EmbeddingSumShape& shape) { return 3 * shape.tokens * shape.terms + 1; }

// By comparison, because counting would take a pass over the table. Equal ids stay in the order of their occurrences,
// as with std::stable_sort, which would allocate memory.
IdGroups group_by_id(const EmbeddingSumShape& shape, const std::int32_t* ids, std::int32_t* scratch) {
  const std::int64_t occurrences = shape.tokens * shape.terms;
  IdGroups groups{scratch, scratch + occurrences, scratch + 2 * occurrences + 1, 0};
  std::int64_t used = 0;
  for (std::int64_t i = 0; i < occurrences; ++i) {
    if (ids[i] >= 0) groups.tokens[used++] = static_cast<std::int32_t>(i);
  }
  std::sort(groups.tokens, groups.tokens + used,
            [ids](std::int32_t a, std::int32_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  for (std::int64_t i = 0; i < used; ++i) {
    const std::int32_t id = ids[groups.tokens[i]];
    if (groups.count == 0 || groups.ids[groups.count - 1] != id) {
      groups.first[groups.count] = static_cast<std::int32_t>(i);
      groups.ids[groups.count++] = id;
    }
  }
  groups.first[groups.count] = static_cast<std::int32_t>(used);
  for (std::int64_t i = 0; i < used; ++i) groups.tokens[i] /= static_cast<std::int32_t>(shape.terms);
  return groups;
}

template <class T>
void embedding_sum_backward(const EmbeddingSumShape& shape, const IdGroups& groups, const T* dy, T* sums) {
  const auto kernel = MAKI_DISPATCH(gather_sum, T);
  const std::int64_t cols = shape.cols,
                     mean = ceil_div(shape.tokens * shape.terms, std::max<std::int64_t>(1, groups.count));
  parallel_for(groups.count, mean * cols, [&](std::int64_t u) {
    const std::int32_t* const tokens = groups.tokens + groups.first[u];
    kernel(tokens, groups.first[u + 1] - groups.first[u], cols, cols, dy, Sink<T>{sums + u * cols, false});
  });
}
template void embedding_sum_backward(const EmbeddingSumShape&, const IdGroups&, const float*, float*);
template void embedding_sum_backward(const EmbeddingSumShape&, const IdGroups&, const double*, double*);

}  // namespace maki::kernels
#endif
