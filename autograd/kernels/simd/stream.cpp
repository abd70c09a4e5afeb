#include "autograd/kernels/simd/stream.h"

#include "autograd/kernels/simd/cpu_vendor.h"

namespace maki::kernels {
namespace {

bool forced = false;

}  // namespace

void force_streaming(bool on) { forced = on; }

bool streaming_pays() { return forced || is_intel(); }

}  // namespace maki::kernels
