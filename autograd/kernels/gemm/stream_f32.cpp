// Products of few rows of float, whose B is streamed from memory; compiled once per target.
#include "autograd/kernels/gemm/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/stream_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

decltype(GemmKernels<float>::stream) stream_kernel_f32() {
  return kMaxThinRows > 0 ? &gemm_thin_columns<float> : nullptr;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

HWY_EXPORT(stream_kernel_f32);

template <>
decltype(GemmKernels<float>::stream) stream_kernel<float>() {
  return HWY_DYNAMIC_DISPATCH(stream_kernel_f32)();
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
