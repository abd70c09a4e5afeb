#include "autograd/kernels/cross_entropy.h"

#include <algorithm>

#include "autograd/core/bfloat16.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/round-inl.h"
#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Σ e^(x − max) over n elements.
template <class T>
HWY_INLINE double sum_of_exp(std::int64_t n, const T* x, T max) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, max);
  return sum_row<T>(n,
                    [=](const auto& at, std::int64_t i) HWY_ATTR { return Exp(at.d, hn::Sub(at.Load(x + i), shift)); });
}

// The loss of one row:
//   loss = −(1 − ε) log p_t − ε/V Σ_j log p_j = log Σ_j e^(x_j − max) + (1 − ε) (max − x_t) + ε (max − mean x).
// The exponential of the target is kept separate from the others, so that the loss is accurate where p_t is nearly 1.
template <class T>
HWY_INLINE double cross_entropy_row(std::int64_t vocabulary, std::int64_t target, double smoothing, const T* x,
                                    T* stats) {
  const T max = max_of_row(vocabulary, x);
  const double others = sum_of_exp(target, x, max) + sum_of_exp(vocabulary - target - 1, x + target + 1, max);
  stats[0] = max;
  stats[1] = static_cast<T>(others);
  stats[2] = x[target];
  const double below = static_cast<double>(max) - static_cast<double>(x[target]);
  const double loss = log_scalar(others + exp_scalar(-below));  // −log p of a logit that equals the maximum
  if (smoothing == 0) return loss + below;
  const double mean = sum_row_in_double(vocabulary, x) / static_cast<double>(vocabulary);
  return loss + (1 - smoothing) * below + smoothing * (static_cast<double>(max) - mean);
}

// The gradient of one row, or of some columns of it: dx_j (+)= scale · (p_j − ε/V − (1 − ε) [j = t]). x and dx are
// [columns]; `target` is counted from the first of them and may be outside of them.
template <class T>
HWY_INLINE void cross_entropy_backward_row(std::int64_t vocabulary, std::int64_t columns, std::int64_t target,
                                           double smoothing, const T* x, const T* stats, double scale, Sink<T> dx) {
  const hn::ScalableTag<T> d;
  const double others = static_cast<double>(stats[1]);
  const double sum = others + exp_scalar(static_cast<double>(stats[2]) - static_cast<double>(stats[0]));
  const double uniform = smoothing / static_cast<double>(vocabulary);
  const auto max = hn::Set(d, stats[0]), factor = hn::Set(d, static_cast<T>(scale / sum));
  const auto share = hn::Set(d, static_cast<T>(scale * uniform));
  // At the target, p_t − 1 is computed as −others / sum, without cancellation.
  const T at_target = static_cast<T>(scale * (smoothing - uniform - others / sum));
  const bool has_target = target >= 0 && target < columns;
  const T before = dx.add && has_target ? dx.data[target] : T{0};
  for_each_vector<T>(columns, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto e = Exp(at.d, hn::Sub(at.Load(x + i), max));
    put_vector(at, dx, i, hn::Sub(hn::Mul(e, factor), share));
  });
  if (has_target) dx.data[target] = before + at_target;
}

// The loss of one row of expected probabilities p with the sum s: Σ_j p_j (max − x_j) + s log Σ_j e^(x_j − max).
template <class T>
HWY_INLINE double expected_row(std::int64_t vocabulary, const T* p, const T* x, T* stats) {
  const hn::ScalableTag<T> d;
  const T max = max_of_row(vocabulary, x);
  const auto shift = hn::Set(d, max);
  const double exponentials = sum_of_exp(vocabulary, x, max);
  const TwoSums sums =
      sum_row_pair<T>(vocabulary, [=](const auto& at, std::int64_t i, auto& expected, auto& below) HWY_ATTR {
        expected = at.Load(p + i);
        below = hn::Mul(expected, hn::Sub(shift, at.Load(x + i)));
      });
  stats[0] = max;
  stats[1] = static_cast<T>(exponentials);
  stats[2] = static_cast<T>(sums.a);
  return sums.b + sums.a * log_scalar(exponentials);
}

// The gradient of one row: dx_j (+)= scale · (s softmax(x)_j − p_j).
template <class T>
HWY_INLINE void expected_backward_row(std::int64_t vocabulary, const T* p, const T* x, const T* stats, double scale,
                                      Sink<T> dx) {
  const hn::ScalableTag<T> d;
  const double share = static_cast<double>(stats[2]) / static_cast<double>(stats[1]);
  const auto max = hn::Set(d, stats[0]), factor = hn::Set(d, static_cast<T>(share));
  const auto scales = hn::Set(d, static_cast<T>(scale));
  for_each_vector<T>(vocabulary, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto e = Exp(at.d, hn::Sub(at.Load(x + i), max));
    put_vector(at, dx, i, hn::Mul(scales, hn::Sub(hn::Mul(e, factor), at.Load(p + i))));
  });
}

/// Elements between two rows, of which each has `columns` logits.
inline std::int64_t stride_of(const CrossEntropyRows& all, std::int64_t columns) {
  return all.stride > 0 ? all.stride : columns;
}

template <class T>
double cross_entropy_rows(const CrossEntropyRows& all, std::int64_t begin, std::int64_t end, const T* logits,
                          T* stats) {
  double total = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    if (all.targets[i] == all.ignored) continue;
    total += cross_entropy_row(all.vocabulary, all.targets[i], all.label_smoothing,
                               logits + i * stride_of(all, all.vocabulary), stats + i * kCrossEntropyStats);
  }
  return total;
}

template <class T>
void cross_entropy_backward_rows(const CrossEntropyRows& all, std::int64_t begin, std::int64_t end,
                                 std::int64_t first_column, std::int64_t columns, const T* logits, const T* stats,
                                 double scale, Sink<T> dlogits) {
  const std::int64_t stride = stride_of(all, columns);
  for (std::int64_t i = begin; i < end; ++i) {
    const Sink<T> row{dlogits.data + i * stride, dlogits.add};
    if (all.targets[i] != all.ignored) {
      cross_entropy_backward_row(all.vocabulary, columns, all.targets[i] - first_column, all.label_smoothing,
                                 logits + i * stride, stats + i * kCrossEntropyStats, scale, row);
    } else if (!row.add) {
      std::fill(row.data, row.data + columns, T{0});
    }
  }
}

/// Overwrites the logits of each row with their gradient, and the gradient with its rounded numbers.
void cross_entropy_backward_rounded_rows(const CrossEntropyRows& all, std::int64_t begin, std::int64_t end,
                                         std::int64_t first_column, std::int64_t columns, float* logits,
                                         const float* stats, double scale) {
  for (std::int64_t i = begin; i < end; ++i) {
    cross_entropy_backward_rows(all, i, i + 1, first_column, columns, logits, stats, scale, Sink<float>{logits, false});
    float* const row = logits + i * stride_of(all, columns);
    // In ascending order: a rounded number takes the memory of one that has been read.
    auto* const to = reinterpret_cast<BFloat16*>(row);
    for (std::int64_t j = 0; j < columns; j += kRoundedLanes) {
      store_rounded(rounded_load(row + j, columns - j), to + j, columns - j);
    }
  }
}

template <class T>
double expected_rows(std::int64_t vocabulary, std::int64_t begin, std::int64_t end, const T* expected, const T* logits,
                     T* stats) {
  double total = 0;
  for (std::int64_t i = begin; i < end; ++i)
    total +=
        expected_row(vocabulary, expected + i * vocabulary, logits + i * vocabulary, stats + i * kCrossEntropyStats);
  return total;
}

template <class T>
void expected_backward_rows(std::int64_t vocabulary, std::int64_t begin, std::int64_t end, const T* expected,
                            const T* logits, const T* stats, double scale, Sink<T> dlogits) {
  for (std::int64_t i = begin; i < end; ++i)
    expected_backward_row(vocabulary, expected + i * vocabulary, logits + i * vocabulary,
                          stats + i * kCrossEntropyStats, scale, Sink<T>{dlogits.data + i * vocabulary, dlogits.add});
}

MAKI_KERNEL(cross_entropy_rows);
MAKI_KERNEL(cross_entropy_backward_rows);
MAKI_KERNEL(expected_rows);
MAKI_KERNEL(expected_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(cross_entropy_rows);
MAKI_EXPORT(cross_entropy_backward_rows);
MAKI_EXPORT(expected_rows);
MAKI_EXPORT(expected_backward_rows);
MAKI_TARGETS(cross_entropy_backward_rounded_rows);

constexpr std::int64_t kRowWork = 64;  // rough cost per row besides its elements, as a number of elements

// Rows per task. A task sums the losses of its rows in order, and the tasks' sums are then added in order.
std::int64_t block_rows(std::int64_t vocabulary) {
  constexpr std::int64_t kTaskElements = 8192;  // about 3 µs of work, which outweighs a task's start; bits depend on it
  return std::max<std::int64_t>(1, kTaskElements / (vocabulary + kRowWork));
}

// Σ rows_loss(begin, end) over blocks of rows.
template <class Loss>
double sum_of_blocks(std::int64_t rows, std::int64_t vocabulary, double* scratch, const Loss& rows_loss) {
  const std::int64_t step = block_rows(vocabulary), blocks = ceil_div(rows, step);
  // 8 elementary operations per element, mostly for the exponential.
  parallel_for(blocks, 8 * step * (vocabulary + kRowWork), [&](std::int64_t block) {
    scratch[block] = rows_loss(block * step, std::min(rows, (block + 1) * step));
  });
  double total = 0;
  for (std::int64_t block = 0; block < blocks; ++block) total += scratch[block];
  return total;
}

}  // namespace

std::int64_t cross_entropy_scratch(std::int64_t rows, std::int64_t vocabulary) {
  return ceil_div(rows, block_rows(vocabulary));
}

template <class T>
double cross_entropy_forward(const CrossEntropyRows& all, const T* logits, T* stats, double* scratch) {
  const auto kernel = MAKI_DISPATCH(cross_entropy_rows, T);
  return sum_of_blocks(all.rows, all.vocabulary, scratch,
                       [&](std::int64_t begin, std::int64_t end) { return kernel(all, begin, end, logits, stats); });
}
template double cross_entropy_forward(const CrossEntropyRows&, const float*, float*, double*);
template double cross_entropy_forward(const CrossEntropyRows&, const double*, double*, double*);

template <class T>
void cross_entropy_backward(const CrossEntropyRows& all, std::int64_t begin, std::int64_t end, const T* logits,
                            const T* stats, double scale, Sink<T> dlogits) {
  const auto kernel = MAKI_DISPATCH(cross_entropy_backward_rows, T);
  const std::int64_t columns = end - begin;
  parallel_ranges(all.rows, 8 * (columns + kRowWork), [&](std::int64_t first, std::int64_t last) {
    kernel(all, first, last, begin, columns, logits, stats, scale, dlogits);
  });
}
template void cross_entropy_backward(const CrossEntropyRows&, std::int64_t, std::int64_t, const float*, const float*,
                                     double, Sink<float>);
template void cross_entropy_backward(const CrossEntropyRows&, std::int64_t, std::int64_t, const double*, const double*,
                                     double, Sink<double>);

void cross_entropy_backward_rounded(const CrossEntropyRows& all, std::int64_t begin, std::int64_t end, float* logits,
                                    const float* stats, double scale) {
  require_target();
  const std::int64_t columns = end - begin;
  parallel_ranges(all.rows, 8 * (columns + kRowWork), [&](std::int64_t first, std::int64_t last) {
    MAKI_ON_TARGET(cross_entropy_backward_rounded_rows)(all, first, last, begin, columns, logits, stats, scale);
  });
}

template <class T>
void cross_entropy_backward(const CrossEntropyRows& all, const T* logits, const T* stats, double scale,
                            Sink<T> dlogits) {
  cross_entropy_backward(all, 0, all.vocabulary, logits, stats, scale, dlogits);
}
template void cross_entropy_backward(const CrossEntropyRows&, const float*, const float*, double, Sink<float>);
template void cross_entropy_backward(const CrossEntropyRows&, const double*, const double*, double, Sink<double>);

template <class T>
double expected_cross_entropy_forward(std::int64_t rows, std::int64_t vocabulary, const T* expected, const T* logits,
                                      T* stats, double* scratch) {
  const auto kernel = MAKI_DISPATCH(expected_rows, T);
  return sum_of_blocks(rows, vocabulary, scratch, [&](std::int64_t begin, std::int64_t end) {
    return kernel(vocabulary, begin, end, expected, logits, stats);
  });
}
template double expected_cross_entropy_forward(std::int64_t, std::int64_t, const float*, const float*, float*, double*);
template double expected_cross_entropy_forward(std::int64_t, std::int64_t, const double*, const double*, double*,
                                               double*);

template <class T>
void expected_cross_entropy_backward(std::int64_t rows, std::int64_t vocabulary, const T* expected, const T* logits,
                                     const T* stats, double scale, Sink<T> dlogits) {
  const auto kernel = MAKI_DISPATCH(expected_backward_rows, T);
  parallel_ranges(rows, 8 * (vocabulary + kRowWork), [&](std::int64_t begin, std::int64_t end) {
    kernel(vocabulary, begin, end, expected, logits, stats, scale, dlogits);
  });
}
template void expected_cross_entropy_backward(std::int64_t, std::int64_t, const float*, const float*, const float*,
                                              double, Sink<float>);
template void expected_cross_entropy_backward(std::int64_t, std::int64_t, const double*, const double*, const double*,
                                              double, Sink<double>);

}  // namespace maki::kernels
#endif
