// The arithmetic of a run: a name that those machines share which compute the same bits
// (docs/decisions/080-equal-bits.md).
#pragma once

#include <string>
#include <string_view>

#include "train/run/config/config.h"

namespace maki {

/// That of training with this precision on the SIMD target in use: kernels::arithmetic_of() of the target, or in
/// bfloat16 the instructions for such products where the target does not imply them, such as "AVX512_BF16".
std::string arithmetic_here(Precision precision);
/// All that the steps of a run have had, in the order of use: "fused" or "fused, amx".
std::string arithmetic_text(const Config& config);
/// That of the newest steps of a run.
std::string newest_arithmetic(const Config& config);
/// Records that a run begins here.
void begin_arithmetic(Config& config);

/// Makes the kernels use the best target on which training has the arithmetic. Returns false, and changes nothing, if
/// this machine has none, or if MAKI_TARGET names a target with another one.
bool use_arithmetic(std::string_view arithmetic, Precision precision);

/// Lets a run continue in the arithmetic of its newest steps, if need be on another target than the best, and says so.
/// If this machine has no such target, throws Error; but with `any` the run continues with the best target in any case,
/// and if its arithmetic is another one, that is said and recorded. So does a run of an earlier version, of which only
/// Config::target, `ran_on`, is known.
void keep_arithmetic(Config& config, const std::string& ran_on, bool any);

}  // namespace maki
