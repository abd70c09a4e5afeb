// The tile instructions of AMX in software, so that the products on tiles can be tested on every CPU with AVX-512.
//
// Where a CPU lacks AMX, each of these instructions raises SIGILL. A handler decodes it, carries it out as Intel's
// manual describes it (Software Developer's Manual, volume 2, TDPBF16PS and its relatives) on tiles that live in
// memory, one set a thread, and goes on behind it. A trap costs a few microseconds: enough for products of some hundred
// rows and columns.
#pragma once

#include <csignal>

namespace maki::kernels {

/// While it lives, the target "amx" can be forced on every CPU with AVX-512 on x86-64 Linux: with the CPU's own tiles
/// where it has them, else with emulated ones. Elsewhere it does nothing. At the end the target goes back to
/// MAKI_TARGET's choice.
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
#if defined(__linux__)
  struct sigaction before_ {};
#endif
};

}  // namespace maki::kernels
