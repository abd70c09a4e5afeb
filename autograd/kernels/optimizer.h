// Optimizer updates over flat parameter storage, one pass each, and the sum of squares for the gradient norm. Updates
// scale the gradient as they read it, so clipping needs no pass of its own.
//   SGD: Sutskever, Martens, Dahl and Hinton 2013, in PyTorch's form (the velocity is not scaled by the learning rate).
//   Adam: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1, with eps added where PyTorch adds it.
//   AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/bfloat16.h"

namespace maki::kernels {

/// Moments below these bounds are flushed to 0. A moment that receives no gradient would otherwise decay through the
/// subnormal numbers, on which arithmetic is up to 25 times slower. The bound of the second moment is lower because it
/// averages squares: a gradient of 1e-14, which is large compared to an eps of 1e-15, has a square of 1e-28, of which
/// one step adds a thousandth. In float64 the bounds are far below anything that a gradient test can detect.
template <class T>
inline constexpr T kSmallestFirstMoment = static_cast<T>(sizeof(T) == 4 ? 1e-30 : 1e-290);
template <class T>
inline constexpr T kSmallestSecondMoment = static_cast<T>(sizeof(T) == 4 ? 1e-36 : 1e-290);

struct SgdStep {
  double grad_scale = 1, learning_rate = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

/// For each of n elements, with g = grad_scale · gradient + weight_decay · value:
///   velocity ← momentum · velocity + g
///   value ← value − learning_rate · (nesterov ? g + momentum · velocity : velocity)
/// If velocity is null, which requires that momentum is 0, value ← value − learning_rate · g.
/// Values are also stored in `rounded`, if it is not null, as recorded products round them (gemm/bf16.h); only for T =
/// float, and at a multiple of 64 bytes.
template <class T>
void sgd_step(const SgdStep& step, std::int64_t n, const T* gradient, T* value, T* velocity,
              BFloat16* rounded = nullptr);

struct AdamStep {
  double grad_scale = 1, learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;                    ///< true: AdamW; false: Adam with L2 regularization; see adam_step()
  double correction1 = 1, correction2 = 1;  ///< 1 − beta1ᵗ and 1 − beta2ᵗ in step t, counted from 1
};

/// For each of n elements, with m = exp_avg, v = exp_avg_sq and g = grad_scale · gradient; if decoupled, value is first
/// multiplied by 1 − learning_rate · weight_decay, otherwise weight_decay · value is added to g:
///   m ← m + (1 − beta1) (g − m)
///   v ← beta2 · v + (1 − beta2) g²
///   value ← value − (learning_rate / correction1) · m / (√v / √correction2 + eps)
/// `rounded` as in sgd_step().
template <class T>
void adam_step(const AdamStep& step, std::int64_t n, const T* gradient, T* value, T* exp_avg, T* exp_avg_sq,
               BFloat16* rounded = nullptr);

/// Stores n values in `rounded`, as sgd_step() does.
void round_values(std::int64_t n, const float* value, BFloat16* rounded);

/// Updates and sums go over blocks of this many elements: the four arrays of Adam, 128 KiB in float32, fit in the
/// level-2 cache. The bits of the sum of squares depend on it.
inline constexpr std::int64_t kUpdateBlock = 8192;
/// Doubles of scratch that sum_of_squares() needs: one per block.
std::int64_t sum_of_squares_scratch(std::int64_t n);
/// Σ x² over each block of x [n], with every product and sum in double. NaN and Inf propagate, so finite sums prove
/// that all n elements are finite.
template <class T>
void sums_of_squares(std::int64_t n, const T* x, double* sums);
/// Returns the sum of these sums, in index order; 0 if n is 0.
template <class T>
double sum_of_squares(std::int64_t n, const T* x, double* scratch);

}  // namespace maki::kernels
