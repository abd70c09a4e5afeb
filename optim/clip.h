// Clipping by the global norm: Pascanu, Mikolov and Bengio 2013, arXiv:1211.5063, algorithm 1.
#pragma once

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace maki {

/// The Euclidean norm of all elements, summed in double in a fixed order: the same bits at any number of threads. Not
/// finite exactly when an element is not (or, in float64, beyond 1e154).
double global_norm(const Tensor& flat);
/// Of the store's gradients; what nobody wrote is zero.
double grad_norm(ParameterStore& store);

/// min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_; 1 when max_norm is 0: no clipping. Hand it to
/// Optimizer::step(). Throws for a negative max_norm; look at a norm that is not finite before.
double clip_factor(double norm, double max_norm);

}  // namespace maki
