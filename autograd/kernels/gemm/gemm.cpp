// The portable half of GEMM (see gemm/block.h): distributes the packing and the tasks of a plan over the thread team.
#include "autograd/kernels/gemm/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/simd/target.h"

namespace maki::kernels {
namespace {

/// A product of fewer multiply-adds than this runs on one thread: it takes a core 2 µs, about what entering a parallel
/// region costs.
constexpr std::int64_t kSerialWork = 262'144;

/// The address of element (i, p) of op(A), or (p, j) of op(B), of an item of the batch.
template <class T>
const T* a_at(const Gemm<T>& g, std::int64_t item, std::int64_t i, std::int64_t p) {
  return g.a + item * g.stride_a + (g.a_transposed ? p * g.lda + i : i * g.lda + p);
}
template <class T>
const T* b_at(const Gemm<T>& g, std::int64_t item, std::int64_t p, std::int64_t j) {
  return g.b + item * g.stride_b + (g.b_transposed ? j * g.ldb + p : p * g.ldb + j);
}

/// The part of the product that is packed at a time: steps [p, p + k) and columns [j, j + n) of op(B), for the plan's
/// `items` items of the batch from `item` on. See GemmPlan.
struct Slab {
  std::int64_t item, p, k, j, n;
};

/// One product in progress; shared by all threads of the team.
template <class T>
class Product {
 public:
  Product(const Gemm<T>& g, T* scratch) : g_(g), plan_(g), slab_(scratch), own_(scratch + plan_.shared) {}
  void run(int team) const;

 private:
  std::int64_t slabs() const { return g_.batch / plan_.items * slabs_n() * slabs_k(); }
  std::int64_t slabs_n() const { return piece_count(g_.n, plan_.slab_n); }
  std::int64_t slabs_k() const { return piece_count(g_.k, plan_.slab_k); }
  Slab slab(std::int64_t index) const;

  std::int64_t pack_tasks(const Slab& s) const;
  void pack(const Slab& s, std::int64_t task) const;
  std::int64_t tasks(const Slab& s) const {
    return plan_.items * piece_count(g_.m, plan_.rows) * piece_count(s.n, plan_.columns);
  }
  void multiply(const Slab& s, std::int64_t task, int thread) const;
  void run_member(int thread, int team, TaskQueue& to_pack, TaskQueue& to_multiply) const;
  void pack_private(const Slab& s, int thread) const;
  std::int64_t panel_stride() const { return plan_.tile.packed_depth(plan_.slab_k) * plan_.tile.columns; }
  /// Row i of packed A or column j of packed B, from step p on. i and j must be multiples of the panel width, which is
  /// the same for both because the register tiles that need a packed A (AMX) are square.
  template <class P>
  P* panel_at(P* panels, std::int64_t j, std::int64_t p) const {
    return panels + j * plan_.tile.packed_depth(plan_.slab_k) + plan_.tile.packed_depth(p) * plan_.tile.columns;
  }
  /// On AMX, configures the tile registers of the calling thread for as long as the result lives.
  std::optional<amx::TileConfig> hold_tile_registers() const {
    return plan_.tile.is_amx ? std::optional<amx::TileConfig>(std::in_place) : std::nullopt;
  }
  T* own_a(int thread) const { return own_ + thread * plan_.own; }
  T* own_b(int thread) const { return own_a(thread) + plan_.own_a; }

  const Gemm<T>& g_;
  const GemmPlan<T> plan_;
  T *const slab_, *const own_;  // scratch: the shared slab; then plan_.own elements per thread
};

template <class T>
Slab Product<T>::slab(std::int64_t index) const {
  const std::int64_t p = index % slabs_k() * plan_.slab_k, j = index / slabs_k() % slabs_n() * plan_.slab_n;
  return {index / (slabs_k() * slabs_n()) * plan_.items, p, std::min(plan_.slab_k, g_.k - p), j,
          std::min(plan_.slab_n, g_.n - j)};
}

template <class T>
std::int64_t Product<T>::pack_tasks(const Slab& s) const {
  if (plan_.shared == 0) return 0;
  return ceil_div(s.n, kMaxPackPanels * plan_.tile.columns) * ceil_div(s.k, kMaxPackDepth);
}

template <class T>
void Product<T>::pack(const Slab& s, std::int64_t task) const {
  const std::int64_t width = kMaxPackPanels * plan_.tile.columns, across = ceil_div(s.n, width);
  const std::int64_t j = task % across * width, p = task / across * kMaxPackDepth;
  plan_.kernels.pack_b(std::min(kMaxPackDepth, s.k - p), std::min(width, s.n - j), b_at(g_, s.item, s.p + p, s.j + j),
                       g_.ldb, g_.b_transposed, panel_at(slab_, j, p), panel_stride());
}

/// Packs what a thread needs for all its tasks of a slab: B with private_b, A with private_a.
template <class T>
void Product<T>::pack_private(const Slab& s, int thread) const {
  if (plan_.private_b) {
    plan_.kernels.pack_b(s.k, s.n, b_at(g_, s.item, s.p, s.j), g_.ldb, g_.b_transposed, own_b(thread), panel_stride());
  }
  for (std::int64_t i = 0; plan_.private_a && i < g_.m; i += plan_.tile.rows) {
    plan_.kernels.pack_a(std::min(plan_.tile.rows, g_.m - i), s.k, a_at(g_, s.item, i, s.p), g_.lda, g_.a_transposed,
                         panel_at(own_a(thread), i, 0));
  }
}

template <class T>
void Product<T>::multiply(const Slab& s, std::int64_t task, int thread) const {
  const std::int64_t across = piece_count(s.n, plan_.columns), down = piece_count(g_.m, plan_.rows);
  const std::int64_t item = s.item + task / (across * down);
  const std::int64_t i = task / across % down * plan_.rows, j = task % across * plan_.columns;
  GemmBlock<T> block{};
  block.m = std::min(plan_.rows, g_.m - i);
  block.n = std::min(plan_.columns, s.n - j);
  block.lda = plan_.private_a ? panel_stride() : g_.lda;
  block.a_transposed = g_.a_transposed;
  block.a_packed = plan_.private_a;
  block.c = g_.c + item * g_.stride_c + i * g_.ldc + s.j + j;
  block.ldc = g_.ldc;
  block.a_buffer = own_a(thread);
  block.b_buffer = own_b(thread);
  for (std::int64_t p = 0; p == 0 || p < s.k; p += plan_.depth) {
    block.k = std::min(plan_.depth, s.k - p);
    block.a = plan_.private_a ? panel_at(own_a(thread), i, p) : a_at(g_, item, i, s.p + p);
    if (plan_.own_panels) {
      block.b = b_at(g_, item, s.p + p, s.j + j);
      block.ldb = g_.ldb;
      block.b_layout = g_.b_transposed ? GemmLayoutB::column_major : GemmLayoutB::row_major;
    } else {
      const T* const panels = g_.b_packed != nullptr ? g_.b_packed : plan_.private_b ? own_b(thread) : slab_;
      block.b = panel_at(panels, j, p);
      block.ldb = panel_stride();
      block.b_layout = GemmLayoutB::packed;
    }
    const bool begins = s.p + p == 0, ends = s.p + p + block.k == g_.k;
    block.accumulate = g_.beta == 1 || !begins;
    const bool adds_bias = g_.bias != nullptr && (plan_.tile.is_amx ? begins : ends);
    block.bias = adds_bias ? g_.bias + s.j + j : nullptr;
    if (ends) {
      block.activation = g_.activation;
      block.derivative = g_.derivative != nullptr ? g_.derivative + (block.c - g_.c) : nullptr;
    }
    plan_.kernels.multiply(block);
  }
}

template <class T>
void Product<T>::run(int team) const {
  if (team == 1) {
    const auto held = hold_tile_registers();
    for (std::int64_t index = 0; index < slabs(); ++index) {
      const Slab s = slab(index);
      if (plan_.packs_private()) pack_private(s, 0);
      for (std::int64_t task = 0; task < pack_tasks(s); ++task) pack(s, task);
      for (std::int64_t task = 0; task < tasks(s); ++task) multiply(s, task, 0);
    }
    return;
  }
  TaskQueue to_pack(pack_tasks(slab(0)), team), to_multiply(tasks(slab(0)), team);
#pragma omp parallel num_threads(team)
  run_member(omp_get_thread_num(), team, to_pack, to_multiply);
}

/// The work of thread `thread` of a team: for each slab, packs its share, waits for the others and multiplies.
template <class T>
void Product<T>::run_member(int thread, int team, TaskQueue& to_pack, TaskQueue& to_multiply) const {
  const auto held = hold_tile_registers();
  for (std::int64_t index = 0; index < slabs(); ++index) {
    const Slab s = slab(index);
    if (pack_tasks(s) > 0) {
      to_pack.run(thread, [&](std::int64_t task) { pack(s, task); });
#pragma omp barrier
    }
    bool packed = !plan_.packs_private();
    to_multiply.run(thread, [&](std::int64_t task) {
      if (!packed) pack_private(s, thread);
      packed = true;
      multiply(s, task, thread);
    });
    if (index + 1 == slabs()) break;
#pragma omp barrier
#pragma omp single
    {
      to_pack.reset(pack_tasks(slab(index + 1)), team);
      to_multiply.reset(tasks(slab(index + 1)), team);
    }
  }
}

/// Whether a product has so few rows that B is streamed from memory without being packed (gemm/thin-inl.h).
template <class T>
bool is_thin(const Gemm<T>& g) {
  return g.b_packed == nullptr && g.b_transposed && !g.a_transposed && g.m <= gemm_kernels(g).tile.max_thin_rows;
}

template <class T>
void run_thin(const Gemm<T>& g) {
  constexpr std::int64_t kTask = 2;  // steps of GemmKernels::stream() per task
  const GemmKernels<T> kernels = gemm_kernels(g);
  const std::int64_t lanes = kernels.tile.columns / 2, steps = ceil_div(g.n, lanes);
  const std::int64_t tasks = ceil_div(steps, kTask);
  parallel_for(g.batch * tasks, kTask * lanes * g.k, [&](std::int64_t index) {
    const std::int64_t item = index / tasks, begin = index % tasks * kTask;
    Gemm<T> one = g;
    one.a += item * g.stride_a;
    one.b += item * g.stride_b;
    one.c += item * g.stride_c;
    if (g.derivative != nullptr) one.derivative += item * g.stride_c;
    kernels.stream(one, begin, std::min(steps, begin + kTask));
  });
}

template <class T>
int team_for(const Gemm<T>& g) {
  return g.m * g.n * g.k * g.batch < kSerialWork || omp_in_parallel() ? 1 : threads();
}

template <class T>
std::int64_t scratch_elements(const Gemm<T>& g) {
  const GemmPlan<T> plan(g);
  return plan.shared + plan.own * team_for(g);
}

template <class T>
bool is_empty(const Gemm<T>& g) {
  return g.m <= 0 || g.n <= 0 || g.batch <= 0;  // sizes may be negative in gemm_scratch_bytes(), which does not check
}

template <class T>
void check_product(const Gemm<T>& g, std::span<std::byte> scratch) {
  check(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0,
        "gemm: sizes must not be negative; got m {}, n {}, k {}, batch {}", g.m, g.n, g.k, g.batch);
  check(g.beta == 0 || g.beta == 1, "gemm: beta must be 0 or 1; got {}", g.beta);
  check(g.lda >= (g.a_transposed ? g.m : g.k), "gemm: lda must be at least {}; got {}", g.a_transposed ? g.m : g.k,
        g.lda);
  check(g.b_packed != nullptr || g.ldb >= (g.b_transposed ? g.k : g.n), "gemm: ldb must be at least {}; got {}",
        g.b_transposed ? g.k : g.n, g.ldb);
  check(g.ldc >= g.n, "gemm: ldc must be at least {}; got {}", g.n, g.ldc);
  const std::int64_t covered = (g.m - 1) * g.ldc + g.n;  // by one item of C, from its first element to its last
  check(g.batch <= 1 || std::abs(g.stride_c) >= covered,
        "gemm: the items of C must not overlap: |stride_c| must be at least (m - 1) ldc + n = {}; got {}", covered,
        g.stride_c);
  check(g.derivative == nullptr || g.activation != GemmActivation::none,
        "gemm: a derivative needs an activation; got GemmActivation::none");
  const std::int64_t needed = is_empty(g) ? 0 : gemm_scratch_bytes(g);
  check(static_cast<std::int64_t>(scratch.size()) >= needed, "gemm: needs {} bytes of scratch; got {}", needed,
        scratch.size());
  check(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64 == 0 || needed == 0,
        "gemm: scratch must be aligned to 64 bytes; got address {}", static_cast<const void*>(scratch.data()));
}

}  // namespace

template <class T>
std::int64_t gemm_scratch_bytes(const Gemm<T>& g) {
  return is_empty(g) || is_thin(g) ? 0 : scratch_elements(g) * std::int64_t{sizeof(T)};
}

template <class T>
void gemm(const Gemm<T>& g, std::span<std::byte> scratch) {
  require_target();
  check_product(g, scratch);
  if (is_empty(g)) return;
  if (is_thin(g)) return run_thin(g);
  Product<T>(g, reinterpret_cast<T*>(scratch.data())).run(team_for(g));
}

template <class T>
bool runs_on_amx(const Gemm<T>& g) {
  const GemmSizes sizes = g.whole.m > 0 ? g.whole : GemmSizes{g.m, g.n, g.k};
  return std::is_same_v<T, float> && g.recorded && uses_amx() && amx_pays(sizes);
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
