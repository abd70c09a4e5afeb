// The SIMD target that the kernels run on: the best one that the CPU supports, or one forced by the environment
// variable MAKI_TARGET=amx|avx3|avx2|sse4|floor or by force_target(). "amx" is avx3 with float32 products on AMX tiles;
// "floor" uses no SIMD instructions. ARM64 has one target, "neon".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace maki::kernels {

/// The target in use: "amx", "avx3", "avx2", "sse4" or "floor"; on ARM64 "neon". Throws Error if MAKI_TARGET is set to
/// anything else or to a target that this CPU or this build lacks, and if the build is for another CPU alone
/// (MAKI_HOST_ONLY). It is read once, before main(); if it is empty, it counts as not set.
std::string target();

/// Throws if target() would throw, even after force_target() has chosen a valid target. Called at the entry of every
/// kernel; costs one load.
void require_target();

/// The place of the target in use in the tables of MAKI_TARGETS (kernels/simd/dispatch.h). It costs one load and never
/// throws: if MAKI_TARGET is invalid, the best target is in use.
std::size_t target_place();

/// The arithmetic of a target: targets with the same one compute the same bits. "fused" (avx3, avx2, neon) rounds a
/// multiply-add once and "unfused" (sse4, floor) twice; "amx" multiplies float32 in three pieces. Empty for any other
/// name.
std::string_view arithmetic_of(std::string_view target);

/// Whether the target in use is "amx". Like target_place(), it costs one load and never throws.
bool uses_amx();

/// The targets that this CPU and this build can run, best first; independent of the target in use.
std::vector<std::string> available_targets();

/// Makes every kernel use the target `name` from its next call on; "" restores the choice of MAKI_TARGET or else the
/// best target. Throws Error, and changes nothing, if `name` is neither empty nor among available_targets(). Thread
/// safety: must not be called while a kernel runs.
void force_target(std::string_view name);

}  // namespace maki::kernels
