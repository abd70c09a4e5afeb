// Fused softmax and cross-entropy. With p = softmax(x) over each row x of V logits, target t and label smoothing ε:
//   loss = −(1 − ε) log p_t − ε/V Σ_j log p_j,   d loss / d x_j = p_j − ε/V − (1 − ε) [j = t].
// Here [j = t] is 1 where j is the target, else 0. Neither p nor its logarithm is ever stored. Label smoothing: Szegedy
// et al. 2015, arXiv:1512.00567. T is float or double. No argument is checked; the only exception is Error if
// MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

struct CrossEntropyRows {
  std::int64_t rows, vocabulary;
  const std::int32_t* targets;  ///< [rows], each in [0, vocabulary) or `ignored`
  std::int32_t ignored;         ///< rows with this target have no loss and no gradient
  double label_smoothing;       ///< ε, in [0, 1]
  std::int64_t stride = 0;      ///< elements between rows of logits, and of their gradient; 0: the columns of a row
};

/// Numbers per row that forward saves for backward: the maximum m, Σ e^(x_j − m) over all j but the target, and the
/// target's logit. Together they give the log-sum-exp, and keep 1 − p_t accurate where p_t is nearly 1.
inline constexpr std::int64_t kCrossEntropyStats = 3;

/// Doubles of scratch that the forward passes need.
std::int64_t cross_entropy_scratch(std::int64_t rows, std::int64_t vocabulary);
/// Returns the sum of the losses in nats, added in double precision, of all rows that are not ignored. logits [rows,
/// vocabulary]; stats [rows, kCrossEntropyStats] is not written for ignored rows. The loss of a row that contains NaN
/// or +Inf is NaN.
template <class T>
double cross_entropy_forward(const CrossEntropyRows& rows, const T* logits, T* stats, double* scratch);
/// dlogits [rows, vocabulary] = `scale` times the gradient of that sum, 0 for ignored rows; added if the sink adds.
/// dlogits may be the memory of the logits if the sink does not add: every element is read before it is written.
template <class T>
void cross_entropy_backward(const CrossEntropyRows& rows, const T* logits, const T* stats, double scale,
                            Sink<T> dlogits);
/// The gradient in columns [begin, end) of the vocabulary alone, for logits that are computed piece by piece: logits
/// and dlogits are [rows, end - begin], targets and stats those of the whole vocabulary.
template <class T>
void cross_entropy_backward(const CrossEntropyRows& rows, std::int64_t begin, std::int64_t end, const T* logits,
                            const T* stats, double scale, Sink<T> dlogits);
/// Replaces the logits of columns [begin, end) by their gradient, rounded to bfloat16 for the products that read it:
/// row i begins where its logits began, so that rows are 2 · stride bfloat16 numbers apart.
void cross_entropy_backward_rounded(const CrossEntropyRows& rows, std::int64_t begin, std::int64_t end, float* logits,
                                    const float* stats, double scale);

/// Cross-entropy of a distribution p over the vocabulary, which need not sum to 1, in place of a target: the loss of a
/// row is −Σ_j p_j log softmax(x)_j, with the gradient s softmax(x)_j − p_j, where s = Σ_j p_j. expected and logits
/// [rows, vocabulary]; stats [rows, kCrossEntropyStats] are m, Σ e^(x_j − m) over all j, and s.
template <class T>
double expected_cross_entropy_forward(std::int64_t rows, std::int64_t vocabulary, const T* expected, const T* logits,
                                      T* stats, double* scratch);
/// dlogits [rows, vocabulary] = `scale` times the gradient of the sum of the losses; added if the sink adds.
template <class T>
void expected_cross_entropy_backward(std::int64_t rows, std::int64_t vocabulary, const T* expected, const T* logits,
                                     const T* stats, double scale, Sink<T> dlogits);

}  // namespace maki::kernels
