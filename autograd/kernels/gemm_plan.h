// How GEMM cuts a product: by shape, flags and target, and into enough tasks for the threads. No bit depends on it: a
// cut along K is one between two chains.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/gemm_block.h"

namespace maki::kernels {

inline constexpr std::int64_t kTaskTiles = 8;         // tiles of rows that a task has at most
inline constexpr std::int64_t kTaskColumns = 512;     // columns that a task has at most
inline constexpr std::int64_t kOwnColumns = 128;      // the same, where it packs them for itself
inline constexpr std::int64_t kOwnRows = 512;         // so many rows of C it does at most where B lies in columns,
inline constexpr std::int64_t kOwnRowsInPlace = 384;  // in rows,
inline constexpr std::int64_t kOwnRowsOfFew = 224;    // and in rows, but too few columns:
inline constexpr std::int64_t kEnoughPanels = 16;
inline constexpr std::int64_t kPrivateBytes = std::int64_t{512} << 10;  // of B that every thread packs for itself
inline constexpr std::int64_t kSlabBytes = std::int64_t{16} << 20;      // of B packed at once, for all
inline constexpr std::int64_t kLeastSlabK = 2048;                       // of K in a slab
inline constexpr std::int64_t kAmxPrivateBytes = 1200 << 10;            // of an operand, on AMX: with the rest in 2 MB
inline constexpr std::int64_t kAmxColumns = 384;                        // of such a B in a slab, or of a task
inline constexpr std::int64_t kAmxPrivateRows = 1024;  // it is A where that has fewer rows, and B more columns
inline constexpr std::int64_t kAllPrivateBytes = std::int64_t{32} << 20;  // of what all threads pack for themselves
inline constexpr std::int64_t kPackPanels = 2, kPackDepth = 128;          // of B in one task of packing

/// Number of pieces of `length` in `size`, at least one: an empty chain still writes C.
inline std::int64_t pieces(std::int64_t size, std::int64_t length) {
  return std::max<std::int64_t>(1, ceil_div(size, length));
}

inline std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

/// Length of about equal pieces of `size`: at most `most` (if that holds a unit) and a multiple of `unit`.
inline std::int64_t piece(std::int64_t size, std::int64_t most, std::int64_t unit) {
  const std::int64_t whole_units = std::max(most / unit * unit, unit);
  return std::max(unit, round_up(ceil_div(size, pieces(size, whole_units)), unit));
}

/// B is packed in slabs [slab_k, slab_n] by all threads, and a slab is multiplied in tasks [rows, columns]. With
/// own_panels the slab is all of B and never packed as a whole: a task takes all rows and packs its columns for itself,
/// piece by piece of the chain, those of a B in rows on the way. So no barrier, and nothing packed leaves the caches.
/// With private_b, B is so small that every thread packs all of it before its first task: two cores that pack 64 KB
/// together, each its half, take 9 µs and a barrier, as the lines they write lie in the other's cache; each alone, 2.6.
/// On AMX A must be packed too and a packed number takes six bytes: each thread packs the smaller operand, in slabs
/// that leave room in its level-2 cache, and each task what it needs of the larger one.
///
/// Scratch is bounded for every shape: what is packed for all, kSlabBytes; what threads pack for themselves,
/// kAllPrivateBytes together, so a large team shares a slab where a small one packs for itself; and each thread's
/// buffers for a task, one chain deep.
template <class T>
struct GemmPlan {
  explicit GemmPlan(const Gemm<T>& g) : product(g) {
    choose_scheme();
    cut_tasks();
    cut_slabs();
    count_scratch();
  }

  const Gemm<T>& product;
  const GemmTile tile = gemm_tile<T>(product.tiles);
  bool own_panels = false, private_a = false, private_b = false;
  std::int64_t items = 1;                       // of the batch that a slab serves
  std::int64_t slab_k = 0, slab_n = 0;          // lengths
  std::int64_t rows = 0, columns = 0;           // of a task
  std::int64_t depth = 0;                       // of a pass over K: one chain
  std::int64_t shared = 0, own_a = 0, own = 0;  // elements of scratch: shared; for A, and in all, of a thread

  bool packs_private() const { return private_a || private_b; }

 private:
  static std::int64_t elements(std::int64_t bytes) { return bytes / std::int64_t{sizeof(T)}; }
  /// Of what one thread packs for itself.
  std::int64_t private_elements() const {
    return elements(std::min(tile.is_amx ? kAmxPrivateBytes : kPrivateBytes, kAllPrivateBytes / threads()));
  }
  /// Whether one thread can pack so many rows of A or columns of B for itself, `k` deep.
  bool fits_private(std::int64_t width, std::int64_t k) const {
    return round_up(width, tile.columns) * tile.packed(k) <= private_elements();
  }
  /// Fewer are cut smaller, so that a team ends together.
  std::int64_t least_tasks() const { return std::max<std::int64_t>(tile.tasks, 2 * threads()); }
  std::int64_t panels() const { return ceil_div(product.n, tile.columns); }
  bool packs_b() const { return product.b_packed == nullptr; }

  void choose_scheme() {
    const Gemm<T>& g = product;
    const bool one_b = !packs_b() || g.batch == 1 || g.stride_b == 0;
    const bool enough = g.batch * panels() >= kEnoughPanels;
    if (tile.is_amx && one_b) {
      const std::int64_t chain = std::min(g.k, kGemmChain);
      own_panels = private_a =
          packs_b() && g.batch == 1 && g.m < std::min(g.n, kAmxPrivateRows) && fits_private(g.m, chain);
      private_b = packs_b() && !own_panels && fits_private(std::min(g.n, kAmxColumns), chain);
      items = g.batch;
      return;
    }
    const std::int64_t few = g.b_transposed ? (enough ? kOwnRows : 0) : enough ? kOwnRowsInPlace : kOwnRowsOfFew;
    own_panels =
        packs_b() && (g.batch == 1 ? g.m <= few : !one_b && (g.m <= few || (enough && g.batch >= least_tasks())));
    items = one_b || own_panels ? g.batch : 1;
    private_b = packs_b() && !own_panels && one_b && fits_private(g.n, g.k);
  }

  /// A task: large enough that packing and edges are cheap, small enough that a team ends together.
  void cut_tasks() {
    const std::int64_t tiles = ceil_div(product.m, tile.rows), least = own_panels ? 2 : 1;
    std::int64_t task_tiles = own_panels ? tiles : kTaskTiles;
    const std::int64_t most_columns = own_panels ? kOwnColumns : tile.is_amx ? kAmxColumns : kTaskColumns;
    std::int64_t task_panels = std::max<std::int64_t>(1, most_columns / tile.columns);
    const std::int64_t wanted = least_tasks();
    const auto tasks = [&] { return items * ceil_div(tiles, task_tiles) * ceil_div(panels(), task_panels); };
    while (!own_panels && task_tiles > 1 && tasks() < wanted) task_tiles = ceil_div(task_tiles, 2);
    while (task_panels > least && tasks() < wanted) task_panels = ceil_div(task_panels, 2);
    rows = piece(product.m, task_tiles * tile.rows, tile.rows);
    columns = piece(product.n, task_panels * tile.columns, tile.columns);
  }

  void cut_slabs() {
    const std::int64_t k = std::max<std::int64_t>(1, product.k);
    slab_k = k;
    slab_n = panels() * tile.columns;
    depth = std::min(k, kGemmChain);
    if (!packs_b() || (own_panels && !private_a)) return;
    if (tile.is_amx && packs_private()) {
      if (private_b) slab_n = piece(slab_n, kAmxColumns, columns);
      const std::int64_t width = private_a ? round_up(product.m, tile.rows) : slab_n;
      slab_k = piece(k, private_elements() * tile.group / (tile.group_rows * width), kGemmChain);
    } else if (!private_b && tile.packed(k) * slab_n > elements(kSlabBytes)) {
      const std::int64_t most = elements(kSlabBytes) * tile.group / tile.group_rows;
      slab_k = piece(k, std::max(kLeastSlabK, most / slab_n), kGemmChain);
      slab_n = piece(slab_n, std::max(2 * columns, most / slab_k), columns);
    }
    slab_k = std::min(slab_k, k);
  }

  void count_scratch() {
    constexpr std::int64_t kLine = 64 / std::int64_t{sizeof(T)};
    const std::int64_t slab = round_up(tile.packed(slab_k) * slab_n, kLine);
    shared = packs_b() && !own_panels && !private_b ? slab : 0;
    own_a = round_up(
        private_a ? round_up(product.m, tile.rows) * tile.packed(slab_k) : tile.a_buffer(depth, product.a_transposed),
        kLine);
    own = own_a + (own_panels ? round_up(columns * tile.packed(depth), kLine) : private_b ? slab : 0);
  }
};

}  // namespace maki::kernels
