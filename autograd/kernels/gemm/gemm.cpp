// GEMM: validates a product, computes the scratch that it needs, and runs it on one thread or on the team.
#include "autograd/kernels/gemm/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/int8.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/gemm/product.h"
#include "autograd/kernels/simd/target.h"

namespace maki::kernels {
namespace {

/// A product of fewer multiply-adds than this, over the whole batch, runs on one thread, unless it is streamed (then
/// parallel_for() decides). In float32 a core takes 2 to 3 µs for so many at the peak that docs/performance.md gives;
/// entering a parallel region costs 0.6 µs.
constexpr std::int64_t kMinParallelMultiplyAdds = 262'144;

/// Computes a product whose scheme is GemmScheme::streamed.
template <class T>
void run_streamed(const GemmPlan<T>& plan) {
  // Steps of GemmKernels::stream(), each a vector of columns. Small tasks let all threads finish at about the same
  // time.
  constexpr std::int64_t kStepsPerTask = 2;
  const Gemm<T>& g = plan.product;
  const std::int64_t lanes = plan.tile.columns / 2, steps = ceil_div(g.n, lanes);
  const std::int64_t tasks = ceil_div(steps, kStepsPerTask);
  const auto run = [&](std::int64_t index) {
    const std::int64_t item = index / tasks, begin = index % tasks * kStepsPerTask;
    Gemm<T> one = g;
    one.a += item * g.stride_a;
    one.b += item * g.stride_b;
    one.c += item * g.stride_c;
    if (g.derivative != nullptr) one.derivative += item * g.stride_c;
    plan.kernels.stream(one, begin, std::min(steps, begin + kStepsPerTask));
  };
  if (!g.one_thread) return parallel_for(g.batch * tasks, kStepsPerTask * lanes * g.k, run);
  for (std::int64_t index = 0; index < g.batch * tasks; ++index) run(index);
}

/// Whether a product that is not streamed runs on the calling thread alone.
template <class T>
bool is_serial(const Gemm<T>& g) {
  return g.one_thread || g.m * g.n * g.k * g.batch < kMinParallelMultiplyAdds || omp_in_parallel();
}

template <class T>
std::int64_t scratch_bytes(const GemmPlan<T>& plan) {
  const std::int64_t team = is_serial(plan.product) ? 1 : threads();
  return (plan.shared_scratch + plan.thread_scratch * team) * std::int64_t{sizeof(T)};
}

template <class T>
bool is_empty(const Gemm<T>& g) {
  return g.m <= 0 || g.n <= 0 || g.batch <= 0;  // sizes may be negative in gemm_scratch_bytes(), which does not check
}

template <class T>
void check_product(const Gemm<T>& g) {
  check(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0,
        "gemm: sizes must not be negative; got m {}, n {}, k {}, batch {}", g.m, g.n, g.k, g.batch);
  check(g.beta == 0 || g.beta == 1, "gemm: beta must be 0 or 1; got {}", g.beta);
  check(g.lda >= (g.a_transposed ? g.m : g.k), "gemm: lda must be at least {}; got {}", g.a_transposed ? g.m : g.k,
        g.lda);
  check(g.b_packed != nullptr || g.b.int8 != nullptr || g.ldb >= (g.b_transposed ? g.k : g.n),
        "gemm: ldb must be at least {}; got {}", g.b_transposed ? g.k : g.n, g.ldb);
  check(g.ldc >= g.n, "gemm: ldc must be at least {}; got {}", g.n, g.ldc);
  const std::int64_t covered = (g.m - 1) * g.ldc + g.n;  // by one item of C, from its first element to its last
  check(g.batch <= 1 || std::abs(g.stride_c) >= covered,
        "gemm: the items of C must not overlap: |stride_c| must be at least (m - 1) ldc + n = {}; got {}", covered,
        g.stride_c);
  check(g.factor == nullptr || g.activation == GemmActivation::none, "gemm: a factor must come without an activation");
  check(!g.upper || (g.m == g.n && g.activation == GemmActivation::none && g.factor == nullptr),
        "gemm: only a square product without activation and factor has an upper part; got m {}, n {}", g.m, g.n);
  const bool has_rounded = g.a.rounded != nullptr || g.b.rounded != nullptr || g.c_rounded != nullptr;
  check(!has_rounded || g.rounds_operands, "gemm: bfloat16 numbers need a product that rounds its operands");
  check(g.c_rounded == nullptr || (g.beta == 0 && g.batch == 1 && !g.a_transposed && g.k <= kMaxRoundedResultDepth),
        "gemm: a rounded result needs beta 0, one item, a row-major A and k up to {}; got beta {}, batch {}, k {}",
        kMaxRoundedResultDepth, g.beta, g.batch, g.k);
  check(g.derivative == nullptr || g.activation != GemmActivation::none,
        "gemm: a derivative needs an activation; got GemmActivation::none");
}

template <class T>
void check_int8(const Gemm<T>& g) {
  check(std::is_same_v<T, float>, "gemm: 8-bit numbers need a product of floats; this one is of doubles");
  const Int8Matrix& b = *g.b.int8;
  check(b.out == g.n && b.in == g.k && g.k > 0,
        "gemm: a matrix of 8-bit numbers must be [n, k] = [{}, {}] with k at least 1; got [{}, {}]", g.n, g.k, b.out,
        b.in);
  check(g.b_transposed && !g.a_transposed && !g.recorded && !g.rounds_operands && g.batch == 1 &&
            g.derivative == nullptr && g.factor == nullptr,
        "gemm: 8-bit numbers need a product of one item with B alone transposed, which is not recorded and has neither "
        "derivative nor factor");
}

void check_scratch(std::int64_t needed, std::span<std::byte> scratch) {
  check(static_cast<std::int64_t>(scratch.size()) >= needed, "gemm: needs {} bytes of scratch; got {}", needed,
        scratch.size());
  check(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64 == 0 || needed == 0,
        "gemm: scratch must be aligned to 64 bytes; got address {}", static_cast<const void*>(scratch.data()));
}

}  // namespace

template <class T>
std::int64_t gemm_scratch_bytes(const Gemm<T>& g) {
  if (is_empty(g)) return 0;
  if constexpr (std::is_same_v<T, float>) {
    if (g.b.int8 != nullptr) return int8_scratch_bytes(g);
  }
  return scratch_bytes(GemmPlan<T>(g));
}

template <class T>
void gemm(const Gemm<T>& g, std::span<std::byte> scratch) {
  require_target();
  check_product(g);
  if (g.b.int8 != nullptr) check_int8(g);
  if (is_empty(g)) return;
  if constexpr (std::is_same_v<T, float>) {
    if (g.b.int8 != nullptr) {
      check_scratch(int8_scratch_bytes(g), scratch);
      return int8_gemm(g, scratch);
    }
  }
  const GemmPlan<T> plan(g);
  check_scratch(scratch_bytes(plan), scratch);
  if (plan.scheme == GemmScheme::streamed) return run_streamed(plan);
  GemmProduct<T>(plan, reinterpret_cast<T*>(scratch.data())).run(is_serial(g) ? 1 : active_threads());
}

template <class T>
bool runs_on_amx(const Gemm<T>& g) {
  const GemmSizes sizes = g.whole.m > 0 ? g.whole : GemmSizes{g.m, g.n, g.k};
  return std::is_same_v<T, float> && g.recorded && !g.rounds_operands && uses_amx() && amx_pays(sizes);
}

template <class T>
std::int64_t packed_size(const Gemm<T>& g) {
  const GemmTile tile = gemm_kernels(g).tile;
  return round_up(g.n, tile.columns) * tile.packed_depth(g.k);
}

template <class T>
void pack_b(const Gemm<T>& g, T* packed) {
  require_target();
  check(g.n >= 0 && g.k >= 0, "pack_b: sizes must not be negative; got n {}, k {}", g.n, g.k);
  check(g.ldb >= (g.b_transposed ? g.k : g.n), "pack_b: ldb must be at least {}; got {}", g.b_transposed ? g.k : g.n,
        g.ldb);
  const GemmKernels<T> kernels = gemm_kernels(g);
  const std::int64_t columns = kernels.tile.columns, panel = columns * kernels.tile.packed_depth(g.k);
  parallel_for(ceil_div(g.n, columns), columns * g.k, [&](std::int64_t q) {
    kernels.pack_b(g.k, std::min(columns, g.n - q * columns), b_at(g, 0, 0, q * columns), g.ldb, g.b_transposed,
                   packed + q * panel, panel);
  });
}

template std::int64_t gemm_scratch_bytes(const Gemm<float>&);
template std::int64_t gemm_scratch_bytes(const Gemm<double>&);
template void gemm(const Gemm<float>&, std::span<std::byte>);
template void gemm(const Gemm<double>&, std::span<std::byte>);
template bool runs_on_amx(const Gemm<float>&);
template bool runs_on_amx(const Gemm<double>&);
template std::int64_t packed_size(const Gemm<float>&);
template std::int64_t packed_size(const Gemm<double>&);
template void pack_b(const Gemm<float>&, float*);
template void pack_b(const Gemm<double>&, double*);

}  // namespace maki::kernels
