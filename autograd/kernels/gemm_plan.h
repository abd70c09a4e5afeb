// How GEMM cuts a product: by shape, flags and target, and into enough tasks for the threads. No bit depends on it: a
// cut through the chain carries C on (at multiples of kGemmChainUnit, where that matters).
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
inline constexpr std::int64_t kLeastSlabK = 2048, kSlabKUnit = 512;     // of the chain in a slab
inline constexpr std::int64_t kAmxPrivateBytes = 1200 << 10;            // of an operand, on AMX: with the rest in 2 MB
inline constexpr std::int64_t kAmxSlabColumns = 512;                    // of B, where it is B, at most
inline constexpr std::int64_t kAmxPrivateRows = 1024;  // it is A where that has fewer rows, and B more columns
inline constexpr std::int64_t kPackPanels = 2, kPackDepth = 128;  // of B in one task of packing

/// Number of pieces of `length` in `size`, at least one: an empty chain still writes C.
inline std::int64_t pieces(std::int64_t size, std::int64_t length) {
  return std::max<std::int64_t>(1, ceil_div(size, length));
}

inline std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

/// Length of about equal pieces of `size`: at most `most` (if that holds a unit) and a multiple of `unit`.
inline std::int64_t piece(std::int64_t size, std::int64_t most, std::int64_t unit) {
  return std::max(unit, round_up(ceil_div(size, pieces(size, std::max(most, unit))), unit));
}

/// B is packed in slabs [slab_k, slab_n] by all threads, and a slab is multiplied in tasks [rows, columns]. With
/// own_panels the slab is all of B and never packed as a whole: a task takes all rows and packs its columns for itself,
/// piece by piece of the chain, those of a B in rows on the way. So no barrier, and nothing packed leaves the caches.
/// With private_b, B is so small that every thread packs all of it before its first task: two cores that pack 64 KB
/// together, each its half, take 9 µs and a barrier, as the lines they write lie in the other's cache; each alone, 2.6.
/// On AMX A must be packed too and a packed number takes six bytes: each thread packs the smaller operand, in slabs
/// that leave room in its level-2 cache, and each task what it needs of the larger one.
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
  std::int64_t depth = 0;                       // of the chain in one pass
  std::int64_t shared = 0, own_a = 0, own = 0;  // elements of scratch: shared; for A, and in all, of a thread

  bool packs_private() const { return private_a || private_b; }

 private:
  static std::int64_t elements(std::int64_t bytes) { return bytes / std::int64_t{sizeof(T)}; }
  /// Fewer are cut smaller, so that a team ends together.
  std::int64_t least_tasks() const { return std::max<std::int64_t>(tile.tasks, 2 * threads()); }
  std::int64_t panels() const { return ceil_div(product.n, tile.columns); }
  bool packs_b() const { return product.b_packed == nullptr; }

  void choose_scheme() {
    const Gemm<T>& g = product;
    const bool one_b = !packs_b() || g.batch == 1 || g.stride_b == 0;
    const bool enough = g.batch * panels() >= kEnoughPanels;
    if (tile.is_amx && one_b) {
      own_panels = private_a = packs_b() && g.batch == 1 && g.m < std::min(g.n, kAmxPrivateRows);
      private_b = packs_b() && !own_panels;
      items = g.batch;
      return;
    }
    const std::int64_t few = g.b_transposed ? (enough ? kOwnRows : 0) : enough ? kOwnRowsInPlace : kOwnRowsOfFew;
    own_panels =
        packs_b() && (g.batch == 1 ? g.m <= few : !one_b && (g.m <= few || (enough && g.batch >= least_tasks())));
    items = one_b || own_panels ? g.batch : 1;
    private_b = packs_b() && !own_panels && one_b && g.k * panels() * tile.columns <= elements(kPrivateBytes);
  }

  /// A task: large enough that packing and edges are cheap, small enough that a team ends together.
  void cut_tasks() {
    const std::int64_t tiles = ceil_div(product.m, tile.rows), least = own_panels ? 2 : 1;
    std::int64_t task_tiles = own_panels ? tiles : kTaskTiles;
    std::int64_t task_panels = std::max<std::int64_t>(1, (own_panels ? kOwnColumns : kTaskColumns) / tile.columns);
    const std::int64_t wanted = least_tasks();
    const auto tasks = [&] { return items * ceil_div(tiles, task_tiles) * ceil_div(panels(), task_panels); };
    while (!own_panels && task_tiles > 1 && tasks() < wanted) task_tiles = ceil_div(task_tiles, 2);
    while (task_panels > least && tasks() < wanted) task_panels = ceil_div(task_panels, 2);
    rows = piece(product.m, task_tiles * tile.rows, tile.rows);
    columns = piece(product.n, task_panels * tile.columns, tile.columns);
  }

  void cut_slabs() {
    slab_k = std::max<std::int64_t>(1, product.k);
    slab_n = panels() * tile.columns;
    const std::int64_t most = elements(tile.is_amx ? kAmxPrivateBytes : kSlabBytes);
    if (tile.is_amx && packs_private()) {
      if (private_b) slab_n = piece(slab_n, kAmxSlabColumns, columns);
      const std::int64_t width = private_a ? round_up(product.m, tile.rows) : slab_n;
      slab_k = piece(slab_k, most * tile.group / (tile.group_rows * width), tile.unit);
    } else if (packs_b() && !own_panels && items == 1 && slab_k * slab_n > most) {
      slab_k = piece(slab_k, std::max(kLeastSlabK, most / slab_n), kSlabKUnit);
      slab_n = piece(slab_n, std::max(2 * columns, most / slab_k), columns);
    }
    // Of a B packed before, on AMX, so much as a task's rows find in the level-2 cache.
    const bool all_packed = tile.is_amx && !packs_b();
    depth = piece(slab_k, all_packed ? most * tile.group / (tile.group_rows * columns) : tile.depth, tile.unit);
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
