#include "autograd/kernels/gemm/amx.h"

#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace maki::kernels::amx {

#if defined(__x86_64__)

TileConfig::TileConfig() {
  struct alignas(64) Palette {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Palette) == 64);
  static constexpr Palette kPalette;
  asm volatile("ldtilecfg %0" : : "m"(kPalette));
}
TileConfig::~TileConfig() { asm volatile("tilerelease"); }

#else

TileConfig::TileConfig() = default;
TileConfig::~TileConfig() = default;

#endif

namespace {

bool pretended = false;

}  // namespace

void force_available_for_tests(bool available) { pretended = available; }

bool available() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool has_tiles = [] {
    constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;  // of EDX, CPUID(7, 0): AMX-BF16, AMX-TILE
    constexpr long kRequestPermission = 0x1023, kTileData = 18;   // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has_tiles || pretended;
#else
  return false;
#endif
}

}  // namespace maki::kernels::amx
