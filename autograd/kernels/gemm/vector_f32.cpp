// Products of float on the vector units, compiled once per target.
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/vector_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

GemmKernels<float> vector_kernels_f32() { return block_kernels<float>(); }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(vector_kernels_f32);

template <>
GemmKernels<float> vector_kernels() {
  GemmKernels<float> kernels = MAKI_ON_TARGET(vector_kernels_f32)();
  kernels.stream = stream_kernel();
  return kernels;
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
