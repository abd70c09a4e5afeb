// Shared by the tests of GEMM: random numbers, guarded scratch, layouts, SIMD targets and thread teams.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/simd/stream.h"
#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/kernels/amx_emulator.h"
#include "tests/threads.h"

namespace maki::kernels {

using tests::ThreadsScope;

template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <class T>
bool same_bits(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

/// Whether both have the same bits, none of them NaN.
template <class T>
bool equal_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return std::ranges::equal(x, y, [](T a, T b) { return same_bits(a, b) && a == a; });
}

/// While it exists, large results are stored past the caches on every CPU.
struct Streaming {
  Streaming() { force_streaming(true); }
  ~Streaming() { force_streaming(false); }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;
};

/// Numbers in [-1, 1] with full mantissas, so that the bits of a sum depend on its order.
template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (T& x : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63);
  }
  return values;
}

/// Columns of NaN after each row of a matrix, which must be neither read nor written.
inline constexpr std::int64_t kMarginColumns = 3;

/// x [rows, cols] with such a margin.
template <class T>
std::vector<T> with_margin(const std::vector<T>& x, std::int64_t rows, std::int64_t cols) {
  std::vector<T> wide(static_cast<std::size_t>(rows * (cols + kMarginColumns)), kNaN<T>);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(x.begin() + i * cols, cols, wide.begin() + i * (cols + kMarginColumns));
  }
  return wide;
}

/// Memory aligned to 64 bytes and filled with NaN, followed by a guard.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes)
      : size_(static_cast<std::size_t>(bytes)),
        memory_(static_cast<std::byte*>(::operator new (size_ + 64, std::align_val_t{64}))) {
    std::fill_n(memory_.get(), size_ + 64, std::byte{0xFF});  // NaN in both types
  }
  std::span<std::byte> span() { return {memory_.get(), size_}; }
  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  bool guard_is_intact() const {
    return std::all_of(memory_.get() + size_, memory_.get() + size_ + 64,
                       [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The product g as a part of one that is large enough for AMX: it runs on AMX if the target is amx.
template <class T>
Gemm<T> on_amx(Gemm<T> g) {
  g.recorded = true;
  g.whole = {128, 128, 128};
  return g;
}

/// Computes a product, on AMX if the target has it.
template <class T>
void run(Gemm<T> g) {
  g = on_amx(g);
  Scratch<T> scratch(gemm_scratch_bytes(g));
  gemm(g, scratch.span());
  REQUIRE(scratch.guard_is_intact());
}

struct Variant {
  bool a_transposed, b_transposed, packed, with_bias;
  int beta;
};
inline Variant variant(int index) {  // one of 32: index is in [0, 32)
  return {(index & 1) != 0, (index & 2) != 0, (index & 4) != 0, (index & 8) != 0, (index & 16) != 0 ? 1 : 0};
}

/// Runs body() on every target of this CPU, with amx emulated if the CPU has AVX-512 and no tiles. Restores the default
/// target afterwards.
template <class Body>
void on_every_target_with_amx(const Body& body) {
  const AmxForTests amx;
  struct Restore {
    ~Restore() { force_target(""); }
  } restore;
  for (const std::string& name : available_targets()) {
    force_target(name);
    REQUIRE(target() == name);
    INFO("target " << name);
    body();
  }
}

/// Runs body() with teams of 1, 2, 3, 4 and 8 threads.
template <class Body>
void with_every_team(const Body& body) {
  for (const int size : {1, 2, 3, 4, 8}) {
    const ThreadsScope team(size);
    INFO("threads " << size);
    body();
  }
}

}  // namespace maki::kernels
