// Products of double on the vector units, compiled once per target.
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/vector_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

GemmKernels<double> vector_kernels_f64() { return block_kernels<double>(); }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(vector_kernels_f64);

template <>
GemmKernels<double> vector_kernels() {
  return MAKI_ON_TARGET(vector_kernels_f64)();
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
