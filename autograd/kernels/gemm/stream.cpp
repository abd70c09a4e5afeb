// Products of few rows of float, whose B is streamed from memory; compiled once per target.
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/stream.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

decltype(GemmKernels<float>::stream) stream_of_target() { return kMaxThinRows > 0 ? &gemm_thin_columns : nullptr; }

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(stream_of_target);

decltype(GemmKernels<float>::stream) stream_kernel() { return MAKI_ON_TARGET(stream_of_target)(); }

}  // namespace maki::kernels
#endif  // HWY_ONCE
