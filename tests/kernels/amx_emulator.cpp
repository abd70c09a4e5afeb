#include "tests/kernels/amx_emulator.h"

#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/simd/target.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <ucontext.h>

namespace maki::kernels {
namespace {

constexpr int kTiles = 8, kTileRows = 16, kRowBytes = 64;

struct TileFile {
  bool configured = false;
  alignas(64) std::byte tile[kTiles][kTileRows][kRowBytes];
};
thread_local TileFile tile_file;

/// One instruction: VEX.128, map 0F38, W0.
struct Instruction {
  unsigned prefix, opcode;  // pp of the VEX prefix: 0 none, 1 66, 2 F3, 3 F2
  int reg, rm, vvvv;
  bool in_memory;
  std::uintptr_t base;  // of the operand in memory: base register plus displacement
  std::int64_t index;   // of the operand in memory: index register times scale, the stride of rows for a tile
  std::size_t length;
};

std::uint64_t general_register(const ucontext_t& context, int number) {
  static constexpr int kRegisterPlace[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[kRegisterPlace[number]]);
}

template <class T>
T read(const std::uint8_t* code) {
  T value;
  std::memcpy(&value, code, sizeof(T));
  return value;
}

/// Decodes the instruction at `code`. False if it is not one of VEX.128.0F38.W0.
bool decode(const std::uint8_t* code, const ucontext_t& context, Instruction& out) {
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0) return false;
  const int high_reg = (code[1] & 0x80) != 0 ? 0 : 8, high_index = (code[1] & 0x40) != 0 ? 0 : 8,
            high_base = (code[1] & 0x20) != 0 ? 0 : 8;
  const int mode = code[4] >> 6, low = code[4] & 7;
  out = {};
  out.prefix = code[2] & 3U;
  out.vvvv = ~code[2] >> 3 & 15;
  out.opcode = code[3];
  out.reg = (code[4] >> 3 & 7) + high_reg;
  out.rm = low + high_base;
  out.length = 5;
  if (mode == 3) return true;
  out.in_memory = true;
  int base = low + high_base;
  bool has_base = true;
  if (low == 4) {
    const int scale = code[5] >> 6, index = (code[5] >> 3 & 7) + high_index;
    base = (code[5] & 7) + high_base;
    has_base = (code[5] & 7) != 5 || mode != 0;
    if (index != 4) out.index = static_cast<std::int64_t>(general_register(context, index)) << scale;
    out.length = 6;
  } else if (low == 5 && mode == 0) {
    has_base = false;
  }
  std::int64_t displacement = 0;
  if (mode == 1) {
    displacement = read<std::int8_t>(code + out.length);
    out.length += 1;
  } else if (mode == 2 || !has_base) {
    displacement = read<std::int32_t>(code + out.length);
    out.length += 4;
  }
  out.base = static_cast<std::uintptr_t>(displacement);
  if (has_base) out.base += general_register(context, base);
  if (low == 5 && mode == 0) out.base += reinterpret_cast<std::uintptr_t>(code) + out.length;
  return true;
}

/// Whether a configuration is the only one that maki uses and this file emulates: palette 1, every tile of 16 rows of
/// 64 bytes, start row 0.
bool is_full_palette(const std::uint8_t* palette) {
  bool full = palette[0] == 1 && palette[1] == 0;
  for (int t = 0; t < kTiles; ++t) {
    full = full && read<std::uint16_t>(palette + 16 + 2 * t) == kRowBytes && palette[48 + t] == kTileRows;
  }
  return full;
}

/// sum [16, 16] += a [16, 32] · b [32, 16]. For each element two chains of fused multiply-adds start at 0, one over the
/// even steps and one over the odd. Their sum is added. Rounds to nearest and treats subnormal numbers as 0, whatever
/// MXCSR says.
__attribute__((target("avx512f"))) void multiply(std::byte* sum, const std::byte* a, const std::byte* b) {
  constexpr unsigned kFlushAndRoundToNearest = 0x9FC0;  // flush to zero, denormals are zero, exceptions masked
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kFlushAndRoundToNearest);
  constexpr __mmask16 kAll = 0xFFFF;  // without a mask g++ 12 warns about its own header
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  for (int i = 0; i < kTileRows; ++i) {
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    for (int p = 0; p < kTileRows; ++p) {
      const __m512i x = _mm512_set1_epi32(read<int>(reinterpret_cast<const std::uint8_t*>(a) + kRowBytes * i + 4 * p));
      const __m512i y = _mm512_loadu_si512(b + kRowBytes * p);
      even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, x, 16)),
                             _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, y, 16)), even);
      odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)),
                            _mm512_castsi512_ps(_mm512_and_si512(y, upper)), odd);
    }
    float* const row = reinterpret_cast<float*>(sum + kRowBytes * i);
    _mm512_storeu_ps(row, _mm512_add_ps(_mm512_loadu_ps(row), _mm512_add_ps(even, odd)));
  }
  _mm_setcsr(before);
}

/// Executes the instruction. False if it is not one that maki uses.
bool execute(const Instruction& it) {
  constexpr unsigned kNone = 0, kF3 = 2, kF2 = 3;
  if (it.opcode == 0x49 && it.prefix == kNone) {
    const auto* const palette = reinterpret_cast<const std::uint8_t*>(it.base + static_cast<std::uintptr_t>(it.index));
    if (it.in_memory && !is_full_palette(palette)) return false;
    tile_file.configured = it.in_memory;  // LDTILECFG, TILERELEASE
    std::memset(tile_file.tile, 0, sizeof(tile_file.tile));
    return true;
  }
  if (!tile_file.configured || it.reg >= kTiles) return false;
  std::byte* const tile = &tile_file.tile[it.reg][0][0];
  if (it.opcode == 0x49 && it.prefix == kF2 && !it.in_memory) {  // TILEZERO
    std::memset(tile, 0, kTileRows * kRowBytes);
    return true;
  }
  if (it.opcode == 0x4B && it.in_memory && (it.prefix == kF2 || it.prefix == kF3)) {  // TILELOADD, TILESTORED
    for (int r = 0; r < kTileRows; ++r) {
      void* const row = reinterpret_cast<void*>(it.base + static_cast<std::uintptr_t>(r * it.index));
      it.prefix == kF2 ? std::memcpy(tile + r * kRowBytes, row, kRowBytes)
                       : std::memcpy(row, tile + r * kRowBytes, kRowBytes);
    }
    return true;
  }
  if (it.opcode == 0x5C && it.prefix == kF3 && !it.in_memory && it.rm < kTiles && it.vvvv < kTiles) {  // TDPBF16PS
    multiply(tile, &tile_file.tile[it.rm][0][0], &tile_file.tile[it.vvvv][0][0]);
    return true;
  }
  return false;
}

/// Executes this instruction and all tile instructions directly after it, because a trap costs more than they do.
void on_illegal_instruction(int /*signal*/, siginfo_t* /*info*/, void* raw_context) {
  auto& context = *static_cast<ucontext_t*>(raw_context);
  greg_t& at = context.uc_mcontext.gregs[REG_RIP];
  bool progress = false;
  Instruction instruction;
  while (decode(reinterpret_cast<const std::uint8_t*>(at), context, instruction) && execute(instruction)) {
    at += static_cast<greg_t>(instruction.length);
    progress = true;
  }
  if (!progress)
    std::signal(SIGILL, SIG_DFL);  // not a tile instruction: it raises the signal again, which ends the process
}

}  // namespace

AmxForTests::AmxForTests() {
  if (amx::available() || !__builtin_cpu_supports("avx512f")) return;
  struct sigaction action {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &before_);
  emulates_ = true;
  amx::force_available_for_tests(true);
}

AmxForTests::~AmxForTests() {
  if (!emulates_) return;
  amx::force_available_for_tests(false);
  force_target("");
  sigaction(SIGILL, &before_, nullptr);
}

}  // namespace maki::kernels

#else

namespace maki::kernels {

AmxForTests::AmxForTests() = default;
AmxForTests::~AmxForTests() = default;

}  // namespace maki::kernels

#endif
