// A test of operands rounded to bfloat16 on every unit that multiplies them.
#pragma once

#include "autograd/kernels/gemm/bf16.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {

/// Runs body() on every target that can compute with rounded operands: tiles are emulated only on a CPU that can pack
/// them. On avx3 and neon also without the instructions for bfloat16.
template <class Body>
void on_every_unit(const Body& body) {
  on_every_target_with_amx([&] {
#if defined(__x86_64__)
    if (bf16_unit() == Bf16Unit::amx && !__builtin_cpu_supports("avx512bf16")) return;
#endif
    body();
    if (bf16_instructions().empty()) return;
    struct Off {
      Off() { turn_off_bf16_instructions(true); }
      ~Off() { turn_off_bf16_instructions(false); }
    } const off;
    REQUIRE(bf16_unit() == Bf16Unit::floats);
    body();
  });
}

}  // namespace maki::kernels
