// Every target runs the kernels that were compiled for it.
#include "autograd/kernels/simd/dispatch.h"

#include <cstdint>
#include <map>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/dispatch_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
HWY_NOINLINE std::int64_t compiled_for() { return HWY_TARGET; }
}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/catch.h"
#include "tests/kernels/targets.h"

namespace maki::kernels {
MAKI_TARGETS(compiled_for);

TEST_CASE("dispatch: the target in use runs the kernels that were compiled for it") {
  const std::map<std::string, std::int64_t> compiled = {{"amx", HWY_AVX3},
                                                        {"avx3", HWY_AVX3},
                                                        {"avx2", HWY_AVX2},
                                                        {"sse4", HWY_SSE4},
                                                        {"floor", HWY_SCALAR | HWY_EMU128},
                                                        {"neon", HWY_TARGETS}};
  tests::on_every_target([&] { REQUIRE((MAKI_ON_TARGET(compiled_for)() & compiled.at(target())) != 0); });
}

}  // namespace maki::kernels
#endif
