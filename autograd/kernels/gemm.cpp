// The plain half of GEMM: cuts the product into blocks by its shape alone, and shares them out.
#include "autograd/kernels/gemm.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm_block.h"
#include "autograd/kernels/target.h"

namespace maki::kernels {
namespace {

constexpr std::int64_t kSerialWork = std::int64_t{1}
                                     << 18;  // products below: 2 microseconds of one core, a region's price
constexpr std::int64_t kBlockK = 512;        // of the chain in one pass: 14 rows of A are 28 KB
constexpr std::int64_t kTaskTiles = 8;       // tiles of rows that a task has at most
constexpr std::int64_t kTaskColumns = 512;   // columns that a task has at most
constexpr std::int64_t kOwnColumns = 128;    // the same, where it packs them for itself
constexpr std::int64_t kOwnPanelRows = 512;  // up to so many rows it does
constexpr std::int64_t kTasks = 16;          // fewer are cut smaller, so that a team ends together
constexpr std::int64_t kSlabBytes = std::int64_t{16} << 20;  // of B packed at once
constexpr std::int64_t kPackPanels = 2, kPackDepth = 128;    // of B in one task of packing

/// Number of pieces of `length` in `size`, at least one: an empty chain still writes C.
std::int64_t pieces(std::int64_t size, std::int64_t length) {
  return std::max<std::int64_t>(1, ceil_div(size, length));
}

std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

/// Length of about equal pieces of `size`: at most `most` (if that holds a unit) and a multiple of `unit`.
std::int64_t piece(std::int64_t size, std::int64_t most, std::int64_t unit) {
  return std::max(unit, round_up(ceil_div(size, pieces(size, std::max(most, unit))), unit));
}

/// op(B) of an item from row p and column j on.
template <class T>
const T* b_at(const Gemm<T>& g, std::int64_t item, std::int64_t p, std::int64_t j) {
  return g.b + item * g.stride_b + (g.b_transposed ? j * g.ldb + p : p * g.ldb + j);
}

/// How a product is cut: a function of shape, flags and target. B is packed in slabs [slab_k, slab_n] by all threads,
/// and a slab is multiplied in tasks [rows, columns]. With own_panels the slab is all of B and never packed as a whole:
/// a task takes all rows and packs its columns for itself, piece by piece of the chain.
template <class T>
struct Plan {
  explicit Plan(const Gemm<T>& g);
  void cut(const Gemm<T>& g);

  GemmTile tile = gemm_tile<T>();
  bool own_panels;
  std::int64_t items;               // of the batch that a slab serves
  std::int64_t slab_k, slab_n;      // lengths
  std::int64_t rows, columns;       // of a task
  std::int64_t depth;               // of the chain in one pass
  std::int64_t shared, own_a, own;  // elements of scratch: shared; for A, and in all, of every thread
};

template <class T>
Plan<T>::Plan(const Gemm<T>& g) {
  const bool one_b = g.b_packed != nullptr || g.batch == 1 || g.stride_b == 0;
  const std::int64_t panels = ceil_div(g.n, tile.columns);
  own_panels = g.b_packed == nullptr && (g.batch == 1 || !one_b) && g.batch * panels >= kTasks &&
               (g.m <= kOwnPanelRows || g.batch >= kTasks);
  items = one_b || own_panels ? g.batch : 1;
  cut(g);

  slab_k = std::max<std::int64_t>(1, g.k);
  slab_n = panels * tile.columns;
  const std::int64_t most = kSlabBytes / std::int64_t{sizeof(T)};
  if (g.b_packed == nullptr && !own_panels && items == 1 && slab_k * slab_n > most) {
    slab_k = piece(slab_k, std::max(4 * kBlockK, most / slab_n), kBlockK);
    slab_n = piece(slab_n, std::max(2 * columns, most / slab_k), columns);
  }
  depth = piece(slab_k, kBlockK, 4);
  shared = g.b_packed != nullptr || own_panels ? 0 : slab_k * slab_n;
  own_a = g.a_transposed ? round_up(ceil_div(rows, tile.rows) * (tile.rows * depth + 16), 16) : 0;
  own = round_up(own_a + (own_panels ? columns * depth : 0), 1024);
}

/// Chooses the size of a task: large enough that packing and edges are cheap, small enough that a team ends together.
template <class T>
void Plan<T>::cut(const Gemm<T>& g) {
  const std::int64_t panels = ceil_div(g.n, tile.columns), tiles = ceil_div(g.m, tile.rows);
  std::int64_t task_tiles = own_panels ? tiles : kTaskTiles;
  std::int64_t task_panels = std::max<std::int64_t>(1, (own_panels ? kOwnColumns : kTaskColumns) / tile.columns);
  const auto tasks = [&] { return items * ceil_div(tiles, task_tiles) * ceil_div(panels, task_panels); };
  while (!own_panels && task_tiles > 1 && tasks() < kTasks) task_tiles = ceil_div(task_tiles, 2);
  while (task_panels > 1 && tasks() < kTasks) task_panels = ceil_div(task_panels, 2);
  rows = piece(g.m, task_tiles * tile.rows, tile.rows);
  columns = piece(g.n, task_panels * tile.columns, tile.columns);
}

/// Part of op(B) of some items of the batch: what is packed at once and serves all tasks.
struct Slab {
  std::int64_t item, p, k, j, n;
};

/// One product under way: what all threads see.
template <class T>
class Product {
 public:
  Product(const Gemm<T>& g, T* scratch) : g_(g), plan_(g), scratch_(scratch) {}
  void run(int team);

 private:
  std::int64_t slabs() const { return g_.batch / plan_.items * slabs_n() * slabs_k(); }
  std::int64_t slabs_n() const { return pieces(g_.n, plan_.slab_n); }
  std::int64_t slabs_k() const { return pieces(g_.k, plan_.slab_k); }
  Slab slab(std::int64_t index) const;

  std::int64_t pack_tasks(const Slab& s) const;
  void pack(const Slab& s, std::int64_t task) const;
  std::int64_t tasks(const Slab& s) const;
  void multiply(const Slab& s, std::int64_t task, int thread) const;

  const Gemm<T>& g_;
  const Plan<T> plan_;
  T* const scratch_;
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
  return ceil_div(s.n, kPackPanels * plan_.tile.columns) * ceil_div(s.k, kPackDepth);
}

template <class T>
void Product<T>::pack(const Slab& s, std::int64_t task) const {
  const std::int64_t width = kPackPanels * plan_.tile.columns, across = ceil_div(s.n, width);
  const std::int64_t j = task % across * width, p = task / across * kPackDepth;
  gemm_pack_b(std::min(kPackDepth, s.k - p), std::min(width, s.n - j), b_at(g_, s.item, s.p + p, s.j + j), g_.ldb,
              g_.b_transposed, scratch_ + j * plan_.slab_k + p * plan_.tile.columns, plan_.slab_k * plan_.tile.columns);
}

template <class T>
std::int64_t Product<T>::tasks(const Slab& s) const {
  return plan_.items * pieces(g_.m, plan_.rows) * pieces(s.n, plan_.columns);
}

template <class T>
void Product<T>::multiply(const Slab& s, std::int64_t task, int thread) const {
  const std::int64_t across = pieces(s.n, plan_.columns), down = pieces(g_.m, plan_.rows);
  const std::int64_t item = s.item + task / (across * down);
  const std::int64_t i = task / across % down * plan_.rows, m = std::min(plan_.rows, g_.m - i);
  const std::int64_t j = task % across * plan_.columns, n = std::min(plan_.columns, s.n - j);
  T* const own_a = scratch_ + plan_.shared + thread * plan_.own;
  T* const own_b = own_a + plan_.own_a;
  const T* const packed = g_.b_packed != nullptr ? g_.b_packed : scratch_;
  for (std::int64_t p = 0; p == 0 || p < s.k; p += plan_.depth) {
    const std::int64_t k = std::min(plan_.depth, s.k - p);
    const T* a = g_.a + item * g_.stride_a;
    if (g_.a_transposed) {
      gemm_pack_a(m, k, a + (s.p + p) * g_.lda + i, g_.lda, own_a);
      a = own_a;
    } else {
      a += i * g_.lda + s.p + p;
    }
    const T* b = own_b;
    std::int64_t panel_stride = k * plan_.tile.columns;
    if (plan_.own_panels) {
      gemm_pack_b(k, n, b_at(g_, item, s.p + p, s.j + j), g_.ldb, g_.b_transposed, own_b, panel_stride);
    } else {
      panel_stride = plan_.slab_k * plan_.tile.columns;
      b = packed + j * plan_.slab_k + p * plan_.tile.columns;
    }
    gemm_multiply<T>({.m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .lda = g_.lda,
                      .a_packed = g_.a_transposed,
                      .b = b,
                      .panel_stride = panel_stride,
                      .c = g_.c + item * g_.stride_c + i * g_.ldc + s.j + j,
                      .ldc = g_.ldc,
                      .accumulate = g_.beta == 1 || s.p + p > 0,
                      .bias = g_.bias != nullptr && s.p + p + k == g_.k ? g_.bias + s.j + j : nullptr});
  }
}

template <class T>
void Product<T>::run(int team) {
  if (team == 1) {
    for (std::int64_t index = 0; index < slabs(); ++index) {
      const Slab s = slab(index);
      for (std::int64_t task = 0; task < pack_tasks(s); ++task) pack(s, task);
      for (std::int64_t task = 0; task < tasks(s); ++task) multiply(s, task, 0);
    }
    return;
  }
#pragma omp parallel num_threads(team)
  for (std::int64_t index = 0; index < slabs(); ++index) {
    const Slab s = slab(index);
    const std::int64_t to_pack = pack_tasks(s), to_multiply = tasks(s);
    if (to_pack > 0) {
#pragma omp for schedule(dynamic)
      for (std::int64_t task = 0; task < to_pack; ++task) pack(s, task);
    }
#pragma omp for schedule(dynamic)
    for (std::int64_t task = 0; task < to_multiply; ++task) multiply(s, task, omp_get_thread_num());
  }
}

template <class T>
int team_for(const Gemm<T>& g) {
  return g.m * g.n * g.k * g.batch < kSerialWork || omp_in_parallel() ? 1 : threads();
}

template <class T>
std::int64_t scratch_elements(const Gemm<T>& g) {
  const Plan<T> plan(g);
  return plan.shared + plan.own * team_for(g);
}

template <class T>
bool is_empty(const Gemm<T>& g) {
  return g.m == 0 || g.n == 0 || g.batch == 0;
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
  check(g.batch <= 1 || g.stride_c >= g.m * g.ldc || g.stride_c >= g.n, "gemm: {} items of C at stride {} overlap",
        g.batch, g.stride_c);
  const std::int64_t needed = is_empty(g) ? 0 : gemm_scratch_bytes(g);
  check(static_cast<std::int64_t>(scratch.size()) >= needed, "gemm: needs {} bytes of scratch; got {}", needed,
        scratch.size());
  check(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64 == 0 || needed == 0,
        "gemm: scratch must be aligned to 64 bytes");
}

}  // namespace

template <class T>
std::int64_t gemm_scratch_bytes(const Gemm<T>& g) {
  return is_empty(g) ? 0 : scratch_elements(g) * std::int64_t{sizeof(T)};
}

template <class T>
void gemm(const Gemm<T>& g, std::span<std::byte> scratch) {
  require_target();
  check_product(g, scratch);
  if (is_empty(g)) return;
  Product<T>(g, reinterpret_cast<T*>(scratch.data())).run(team_for(g));
}

template <class T>
std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  const std::int64_t columns = gemm_tile<T>().columns;
  return ceil_div(n, columns) * columns * k;
}

template <class T>
void pack_b(std::int64_t n, std::int64_t k, const T* b, std::int64_t ldb, bool b_transposed, T* packed) {
  require_target();
  check(n >= 0 && k >= 0 && ldb >= (b_transposed ? k : n), "pack_b: ldb must be at least {}; got {}",
        b_transposed ? k : n, ldb);
  const std::int64_t columns = gemm_tile<T>().columns, panels = ceil_div(n, columns);
  parallel_for(panels, columns * k, [&](std::int64_t q) {
    const T* from = b + q * columns * (b_transposed ? ldb : 1);
    gemm_pack_b(k, std::min(columns, n - q * columns), from, ldb, b_transposed, packed + q * columns * k, columns * k);
  });
}

template std::int64_t gemm_scratch_bytes(const Gemm<float>&);
template std::int64_t gemm_scratch_bytes(const Gemm<double>&);
template void gemm(const Gemm<float>&, std::span<std::byte>);
template void gemm(const Gemm<double>&, std::span<std::byte>);
template std::int64_t packed_size<float>(std::int64_t, std::int64_t);
template std::int64_t packed_size<double>(std::int64_t, std::int64_t);
template void pack_b(std::int64_t, std::int64_t, const float*, std::int64_t, bool, float*);
template void pack_b(std::int64_t, std::int64_t, const double*, std::int64_t, bool, double*);

}  // namespace maki::kernels
