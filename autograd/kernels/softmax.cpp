#include "autograd/kernels/softmax.h"

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = e^(x − max) / Σ e^(x − max)
template <class T>
HWY_INLINE void softmax_row(std::int64_t cols, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto max = hn::Set(d, max_of_row(cols, x));
  const double sum = sum_row<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto e = Exp(at.d, hn::Sub(at.Load(x + i), max));
    at.Store(e, y + i);
    return e;
  });
  const auto factor = hn::Set(d, static_cast<T>(1 / sum));
  for_each_vector<T>(
      cols, [=](const auto& at, std::int64_t i) HWY_ATTR { at.Store(hn::Mul(at.Load(y + i), factor), y + i); });
}

// y = (x − max) − log Σ e^(x − max)
template <class T>
HWY_INLINE void log_softmax_row(std::int64_t cols, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto max = hn::Set(d, max_of_row(cols, x));
  const double sum = sum_row<T>(
      cols, [=](const auto& at, std::int64_t i) HWY_ATTR { return Exp(at.d, hn::Sub(at.Load(x + i), max)); });
  const auto log_sum = hn::Set(d, static_cast<T>(log_scalar(sum)));
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i)
                               HWY_ATTR { at.Store(hn::Sub(hn::Sub(at.Load(x + i), max), log_sum), y + i); });
}

// y = softmax(x): dx (+)= y · (dy − Σ dy · y)
template <class T>
HWY_INLINE void softmax_backward_row(std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  const hn::ScalableTag<T> d;
  const double sum = sum_row<T>(
      cols, [=](const auto& at, std::int64_t i) HWY_ATTR { return hn::Mul(at.Load(dy + i), at.Load(y + i)); });
  const auto mean = hn::Set(d, static_cast<T>(sum));  // the mean of dy, weighted by y
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    put_vector(at, dx, i, hn::Mul(at.Load(y + i), hn::Sub(at.Load(dy + i), mean)));
  });
}

// y = log softmax(x): dx (+)= dy − e^y · Σ dy
template <class T>
HWY_INLINE void log_softmax_backward_row(std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  const hn::ScalableTag<T> d;
  const auto sum = hn::Set(d, static_cast<T>(sum_row_in_double(cols, dy)));
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    put_vector(at, dx, i, hn::NegMulAdd(Exp(at.d, at.Load(y + i)), sum, at.Load(dy + i)));
  });
}

template <class T>
void softmax_forward_rows(bool log, std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  for (std::int64_t at = 0; at < rows * cols; at += cols) {
    if (log) {
      log_softmax_row(cols, x + at, y + at);
    } else {
      softmax_row(cols, x + at, y + at);
    }
  }
}
template <class T>
void softmax_backward_rows(bool log, std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  for (std::int64_t at = 0; at < rows * cols; at += cols) {
    const Sink<T> row{dx.data + at, dx.add};
    if (log) {
      log_softmax_backward_row(cols, y + at, dy + at, row);
    } else {
      softmax_backward_row(cols, y + at, dy + at, row);
    }
  }
}

MAKI_KERNEL(softmax_forward_rows);
MAKI_KERNEL(softmax_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(softmax_forward_rows);
MAKI_EXPORT(softmax_backward_rows);

constexpr std::int64_t kRowWork = 32;  // rough cost per row besides its elements, in elementary operations (parallel.h)

template <class T>
void forward(bool log, std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  const auto kernel = MAKI_DISPATCH(softmax_forward_rows, T);
  parallel_ranges(rows, 8 * cols + kRowWork, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * cols;
    kernel(log, end - begin, cols, x + at, y + at);
  });
}

template <class T>
void backward(bool log, std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  const auto kernel = MAKI_DISPATCH(softmax_backward_rows, T);
  parallel_ranges(rows, (log ? 8 : 2) * cols + kRowWork, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * cols;
    const Sink<T> part{dx.data + at, dx.add};
    kernel(log, end - begin, cols, y + at, dy + at, part);
  });
}

}  // namespace

template <class T>
void softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  forward(false, rows, cols, x, y);
}
template <class T>
void log_softmax_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  forward(true, rows, cols, x, y);
}
template <class T>
void softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  backward(false, rows, cols, y, dy, dx);
}
template <class T>
void log_softmax_backward(std::int64_t rows, std::int64_t cols, const T* y, const T* dy, Sink<T> dx) {
  backward(true, rows, cols, y, dy, dx);
}

template void softmax_forward(std::int64_t, std::int64_t, const float*, float*);
template void softmax_forward(std::int64_t, std::int64_t, const double*, double*);
template void log_softmax_forward(std::int64_t, std::int64_t, const float*, float*);
template void log_softmax_forward(std::int64_t, std::int64_t, const double*, double*);
template void softmax_backward(std::int64_t, std::int64_t, const float*, const float*, Sink<float>);
template void softmax_backward(std::int64_t, std::int64_t, const double*, const double*, Sink<double>);
template void log_softmax_backward(std::int64_t, std::int64_t, const float*, const float*, Sink<float>);
template void log_softmax_backward(std::int64_t, std::int64_t, const double*, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
