// The SIMD target that the kernels run on: the best that the CPU has, or one forced by
// MAKI_TARGET=amx|avx3|avx2|sse4|floor or from a test. Bits are promised within one target. "amx" is avx3 with the
// products of float32 on tiles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maki::kernels {

/// The target in use: "amx", "avx3", "avx2", "sse4" or "floor" ("neon", … on other CPUs). Throws where MAKI_TARGET
/// holds another word or one that this CPU lacks.
std::string target();

/// Throws where target() would; for the entry of a kernel (one load).
void require_target();

/// Whether it is "amx" (one load).
bool uses_amx();

/// The targets that this CPU and this build can run, best first, whatever is forced.
std::vector<std::string> available_targets();

/// Makes every kernel use `name` from its next call on; "" goes back to MAKI_TARGET's choice, or the best. Not while a
/// kernel runs. Throws for a name that is none of available_targets().
void force_target(std::string_view name);

}  // namespace maki::kernels
