// Softmax and cross-entropy in one: with p = softmax(x) over each row of logits, target t and label smoothing ε,
//   loss = −(1 − ε) log p_t − ε/V Σ_j log p_j,   d loss / d x_j = p_j − ε/V − (1 − ε) [j = t].
// Neither p nor its logarithm is ever stored. Label smoothing: Szegedy et al. 2015, arXiv:1512.00567.
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

struct CrossEntropyRows {
  std::int64_t rows, vocabulary;
  const std::int32_t* targets;  ///< [rows], each in [0, vocabulary) or `ignored`
  std::int32_t ignored;
  double label_smoothing;
};

/// Numbers a row that forward saves for backward: the maximum m, Σ e^(x_j − m) over all j but the target, and the
/// target's logit. Together they are the log-sum-exp, and they keep 1 − p_t exact where p_t is all but 1.
inline constexpr std::int64_t kCrossEntropyStats = 3;

/// Doubles of scratch that forward needs.
std::int64_t cross_entropy_scratch(const CrossEntropyRows& rows);
/// The sum of the losses of all rows that are not ignored, in double. logits [rows, vocabulary]; stats
/// [rows, kCrossEntropyStats], not written for ignored rows.
template <class T>
double cross_entropy_forward(const CrossEntropyRows& rows, const T* logits, T* stats, double* scratch);
/// dlogits [rows, vocabulary] takes `scale` times the gradient of that sum: zeros for ignored rows.
template <class T>
void cross_entropy_backward(const CrossEntropyRows& rows, const T* logits, const T* stats, double scale,
                            Sink<T> dlogits);
/// The same for the columns [begin, end) of the vocabulary alone: logits and dlogits are [rows, end - begin].
template <class T>
void cross_entropy_backward(const CrossEntropyRows& rows, std::int64_t begin, std::int64_t end, const T* logits,
                            const T* stats, double scale, Sink<T> dlogits);

}  // namespace maki::kernels
