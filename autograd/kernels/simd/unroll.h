// MAKI_UNROLL unrolls the following loop completely (with GCC, a loop of at most 16 iterations). Loops over arrays of
// vectors need it: only without a loop index can the compiler keep such an array in registers.
#pragma once

#if defined(__clang__)
#define MAKI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MAKI_UNROLL _Pragma("GCC unroll 16")
#endif

// How many steps of K the register tile of a product of Ts multiplies in one round of its loop. Its 12 multiply-adds a
// step with AVX2 leave counting, moving pointers and prefetching as a fifth of the instructions, and a core whose front
// end is shared with another hyper-thread issues three of them a cycle. With NEON, a round takes the steps whose
// elements of A are one vector (lanes-inl.h). Only in files that are compiled once per SIMD target.
#define MAKI_ROUND_STEPS(T) (HWY_ARCH_ARM_A64 ? 16 / static_cast<int>(sizeof(T)) : HWY_TARGET == HWY_AVX2 ? 4 : 1)

// Hides from the compiler what it knows of `value`, a pointer or an integer. Otherwise it turns the addresses of the
// steps of a round, which differ from one pointer by constants, into pointers of their own, which are more than there
// are registers.
#define MAKI_PIN(value) asm("" : "+r"(value))
