// MAKI_UNROLL unrolls the following loop completely (with GCC, a loop of at most 16 iterations). Loops over arrays of
// vectors need it: only without a loop index can the compiler keep such an array in registers.
#pragma once

#if defined(__clang__)
#define MAKI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MAKI_UNROLL _Pragma("GCC unroll 16")
#endif
