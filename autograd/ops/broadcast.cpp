#include "autograd/ops/broadcast.h"

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops/common.h"

namespace maki {

Tensor broadcast_binary(const char* name, kernels::BinaryOp op, const Tensor& a, const Tensor& b) {
  check_same_type(name, a, b);
  Tensor y = empty(broadcast(name, a.shape(), b.shape()), a.dtype());
  const kernels::BroadcastPlan plan = kernels::plan_broadcast(a.shape(), b.shape(), y.shape());
  dispatch(a.dtype(), [&]<class T>() {
    kernels::binary(op, plan, a.data<T>(), b.data<T>(), Sink<T>{y.data<T>(), false});
  });
  return y;
}

template <class T>
void send_broadcast(const OutputGradient<T>& dy, double factor, const Shape& to, Sink<T> sink) {
  const std::uint32_t stretched = kernels::broadcast_axes(to, dy.shape);
  if (stretched == 0) {
    kernels::scale(dy.shape.numel(), dy.data, static_cast<T>(factor), sink);
    return;
  }
  const kernels::ReductionPlan plan = kernels::plan_reduction(dy.shape, stretched);
  Tensor scratch = empty({kernels::reduction_scratch(plan)}, DType::float64);
  kernels::sum(plan, dy.data, factor, scratch.data<double>(), sink);
}
template void send_broadcast(const OutputGradient<float>&, double, const Shape&, Sink<float>);
template void send_broadcast(const OutputGradient<double>&, double, const Shape&, Sink<double>);

template <class T>
void send_broadcast(kernels::BinaryOp op, const OutputGradient<T>& dy, const Tensor& other, const Shape& to,
                    Sink<T> sink) {
  const kernels::BroadcastPlan plan = kernels::plan_broadcast(dy.shape, other.shape(), dy.shape);
  if (kernels::broadcast_axes(to, dy.shape) == 0) {
    kernels::binary(op, plan, dy.data, other.data<T>(), sink);
    return;
  }
  // One factor for each row: many sums along rows need no memory for the products.
  constexpr std::int64_t kMinRows = 64;  // so that every thread of most machines has a few
  const bool along_rows = op == kernels::BinaryOp::mul && other.shape() == dy.shape && dy.shape.rank() > 0 &&
                          to == dy.shape.with(-1, 1) && dy.shape.rows() >= kMinRows;
  if (along_rows) return kernels::sum_of_products(dy.shape.rows(), dy.shape.cols(), dy.data, other.data<T>(), sink);
  Tensor product = empty(dy.shape, other.dtype());
  kernels::binary(op, plan, dy.data, other.data<T>(), Sink<T>{product.data<T>(), false});
  send_broadcast(OutputGradient<T>{std::as_const(product).data<T>(), dy.shape}, 1, to, sink);
}
template void send_broadcast(kernels::BinaryOp, const OutputGradient<float>&, const Tensor&, const Shape&, Sink<float>);
template void send_broadcast(kernels::BinaryOp, const OutputGradient<double>&, const Tensor&, const Shape&,
                             Sink<double>);

}  // namespace maki
