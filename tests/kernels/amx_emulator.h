// Emulates the tile instructions of AMX, so that products on tiles can be tested on every CPU with AVX-512.
//
// On a CPU without AMX each of these instructions raises SIGILL. A handler decodes it, executes it as Intel's manual
// describes it (Software Developer's Manual, volume 2, TDPBF16PS and its relatives) on tiles in memory, one set per
// thread, and continues after it. A trap costs a few microseconds, which is fast enough for products of some hundred
// rows and columns.
#pragma once

#include <csignal>

namespace maki::kernels {

/// During its lifetime the target "amx" can be forced on every CPU with AVX-512 on x86-64 Linux: with the CPU's own
/// tiles if it has them, else with emulated ones. Elsewhere it does nothing. If the tiles were emulated, the target is
/// at the end again the one that MAKI_TARGET chooses; else a forced target stays.
class AmxForTests {
 public:
  AmxForTests();
  ~AmxForTests();
  AmxForTests(const AmxForTests&) = delete;
  AmxForTests& operator=(const AmxForTests&) = delete;

  /// Whether the tiles are emulated.
  bool emulates() const { return emulates_; }

 private:
  bool emulates_ = false;
#if defined(__x86_64__) && defined(__linux__)
  struct sigaction before_ {};
#endif
};

}  // namespace maki::kernels
