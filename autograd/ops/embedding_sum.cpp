// Sums of rows of a table, of which a batch may use few. The formulas are in kernels/embedding.h.
#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/embedding.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

using kernels::EmbeddingSumShape;
using kernels::IdGroups;

EmbeddingSumShape checked_shape(const Tensor& table, const Tensor& ids) {
  check_floating("embedding_sum", table);
  check_integers("embedding_sum", "ids", ids);
  check(table.shape().rank() == 2, "embedding_sum: the table must be [V, C]; got {}", table.shape());
  check(ids.shape().rank() >= 1, "embedding_sum: ids must be [… K], with an axis of the rows to add; got {}",
        ids.shape());
  const EmbeddingSumShape shape{
      .rows = table.shape()[0], .cols = table.shape()[1], .tokens = ids.shape().rows(), .terms = ids.shape().cols()};
  if (const auto bad = first_outside(ids, shape.rows, -1)) {
    fail(
        "embedding_sum: ids must be in [0, {}), the rows of the table, or -1 for no row; got {} at index {} of ids of "
        "shape {}",
        shape.rows, ids.data<std::int32_t>()[*bad], *bad, ids.shape());
  }
  return shape;
}

// Scatters the sums into a gradient of the whole table.
template <class T>
void scatter(const EmbeddingSumShape& shape, const IdGroups& groups, const Tensor& sums, Sink<T> dtable) {
  if (!dtable.add) std::fill_n(dtable.data, shape.rows * shape.cols, T{0});
  parallel_for(groups.count, shape.cols, [&](std::int64_t u) {
    T* const row = dtable.data + groups.ids[u] * shape.cols;
    const T* const sum = sums.data<T>() + u * shape.cols;
    for (std::int64_t j = 0; j < shape.cols; ++j) row[j] += sum[j];
  });
}

// dtable[v] = Σ dy[i] over all i, k with ids[i, k] = v.
void backward(const EmbeddingSumShape& shape, const Tensor& ids, DType dtype, Grads& g) {
  Tensor scratch = empty({kernels::group_by_id_scratch(shape)}, DType::int32);
  std::int32_t* const room = scratch.data<std::int32_t>();
  const IdGroups groups = kernels::group_by_id(shape, ids.data<std::int32_t>(), room);
  Tensor sums = empty({groups.count, shape.cols}, dtype);
  dispatch(dtype, [&]<class T>() {
    kernels::embedding_sum_backward(shape, groups, g.out<T>(), sums.data<T>());
    if (g.by_rows(0)) {
      g.pass_rows(0, {scratch.slice_flat(groups.ids - room, Shape{groups.count}), sums});
    } else if (const Sink<T> dtable = g.in<T>(0)) {
      scatter(shape, groups, sums, dtable);
    }
  });
}

}  // namespace

Tensor embedding_sum(const Tensor& table, const Tensor& ids) {
  const EmbeddingSumShape shape = checked_shape(table, ids);
  Tensor y = empty(ids.shape().with(ids.shape().rank() - 1, shape.cols), table.dtype());
  dispatch(table.dtype(), [&]<class T>() {
    kernels::embedding_sum_forward(shape, table.data<T>(), ids.data<std::int32_t>(), y.data<T>());
  });
  return record("embedding_sum", y, {table},
                [ids, shape, dtype = table.dtype()](Grads& g) { backward(shape, ids, dtype, g); });
}

}  // namespace maki
