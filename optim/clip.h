// Clipping by the global norm: Pascanu, Mikolov and Bengio 2013, arXiv:1211.5063, algorithm 1.
//
// Thread safety: the norms read their argument, which nothing may change at the same time; grad_norm() may also write
// zeros to gradients that were not written, so, like the store, it must be used by one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace maki {

/// The Euclidean norm of all elements, summed in double in a fixed order, so that it is bit-identical for any number of
/// threads. It is finite if and only if all elements are (in float64: and are below about 1e154 in magnitude).
double global_norm(const Tensor& flat);
/// The sums of the squares of every kNormBlock elements, the last of which may be fewer. global_norm() is the root of
/// their sum.
inline constexpr std::int64_t kNormBlock = 8192;
std::vector<double> squares_of_blocks(const Tensor& flat);
/// The norm of a tensor with these squares.
double norm_of_blocks(std::span<const double> squares);
/// The norm of all gradients of the store except those of ParamGroup::rows; gradients that were not written count as
/// zero. Throws Error before the store is sealed.
double grad_norm(ParameterStore& store);
/// The norm of the gradients of ParamGroup::rows, which grad_norm() does not count.
double row_grad_norm(const ParameterStore& store);

/// The factor by which clipping multiplies gradients, for Optimizer::step(): min(1, max_norm / (norm + 1e-6)), as in
/// PyTorch's clip_grad_norm_, or 1 if max_norm is 0 (no clipping). Throws Error if max_norm is negative. The caller
/// must check beforehand that the norm is finite: for NaN the factor is 1.
double clip_factor(double norm, double max_norm);

}  // namespace maki
