// Loops over registers: unrolled whole, or their arrays would lie in memory.
#pragma once

#if defined(__clang__)
#define MAKI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MAKI_UNROLL _Pragma("GCC unroll 16")
#endif
