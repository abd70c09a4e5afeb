// The plan of one product: who packs which operand, and how the product is cut into tasks. It follows from the fields
// of Gemm (of the pointers, only from whether b_packed is null), the target and threads(). Apart from the choice of AMX
// (runs_on_amx()), no bit of the result depends on it: a cut along K always falls between two chains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/gemm.h"

namespace maki::kernels {

/// Who packs which operand of C [m, n] = op(A) op(B), and when. Packed B is laid out in panels of tile.columns columns.
/// A task also packs the rows of A that it multiplies, one register tile at a time, if they cannot be read in place: on
/// the vector units if A is transposed, on AMX always, except with thread_packs_a.
///
/// Here and below, "on AMX" means kernels with tile.packs_a: those of AMX, and those that round their operands on every
/// unit; "on the vector units" means all others. Only how much a thread may pack for itself, and how many columns a
/// task takes, go by tile.is_amx. Sizes with six bytes a number are those of float32 on AMX; a rounded number takes two
/// bytes, or four without instructions for bfloat16.
enum class GemmScheme : std::uint8_t {
  /// B comes packed (Gemm::b_packed), so the tasks only multiply.
  prepacked,

  /// Nothing is packed: a transposed B is streamed through registers and multiplied by the few rows of A, as in
  /// generation, where each element of B is used by these rows only (thin-inl.h). On the vector units, for a row-major
  /// A of at most tile.max_thin_rows rows.
  streamed,

  /// A task takes all rows of C and packs its own columns of B, chain by chain; on the vector units, a row-major B is
  /// packed while its first row tile multiplies. There is no barrier, and what is packed stays in the cache of its
  /// core. On the vector units this is for a single product of few rows (the bounds kMaxRowsTaskPacks… below); on every
  /// target, it is for a batch in which each item has its own B and few rows, or more rows if the items alone make
  /// enough tasks.
  task_packs_b,

  /// Every thread packs B, which all items of a batch share, for itself before its first task: on the vector units all
  /// of a small B, on AMX one slab after the other of a B of any size. Two cores that each pack half of 64 KB take 9 µs
  /// and a barrier, because the lines they write are in the other's cache; a core that packs all of it takes 2.6 µs.
  thread_packs_b,

  /// On AMX, where a packed number takes up to six bytes, for a single product: A is the smaller operand and has few
  /// rows. Each thread packs it for itself, in slabs that leave room in its level-2 cache, and each task packs its
  /// columns of B.
  thread_packs_a,

  /// All threads pack a slab of B together, wait for each other, and multiply it: what no other scheme takes.
  team_packs_b,
};

// The constants below choose the scheme and bound what a task, a thread or the team works on. Their figures were
// measured on the machine of docs/performance.md: two cores with AVX-512, AMX and 2 MiB of level-2 cache each. A
// constant without a measured time or speed was chosen without a measurement on record. choose_scheme(), cut_tasks()
// and cut_slabs() apply them.

/// Unless tasks pack B, a task covers at most this many register tiles of rows; on the vector units 24 were no faster.
inline constexpr std::int64_t kMaxTaskTiles = 8;
/// Unless tasks pack B, a task without AMX tiles covers at most this many columns of C (with them: kMaxAmxColumns), and
/// so does a slab that a thread packs for products that round their operands. More would save reads of A, fewer would
/// give more tasks.
inline constexpr std::int64_t kMaxTaskColumns = 512;
/// A task that packs B covers at most this many columns of C: one chain of 128 columns of float32 takes 256 KiB (384
/// KiB on AMX), which stays in the level-2 cache.
inline constexpr std::int64_t kMaxTaskPackedColumns = 128;

/// Tasks pack a transposed B of at least kMinPanelsToOccupyTeam panels if C has at most this many rows. (This bound and
/// the next three apply to a batch in which each item has its own B and, on the vector units, to a single product.)
inline constexpr std::int64_t kMaxRowsTaskPacksTransposedB = 512;
/// The bound for a row-major B of at least kMinPanelsToOccupyTeam panels, which on the vector units the first row tile
/// of a task reads in place and packs as it multiplies.
inline constexpr std::int64_t kMaxRowsTaskPacksRowMajorB = 384;
/// The bound for a row-major B of fewer than kMinPanelsToOccupyTeam panels; tasks never pack a transposed B of so few.
inline constexpr std::int64_t kMaxRowsTaskPacksFewPanels = 224;
/// A B of at least this many panels, counted over the whole batch, has enough columns to occupy a team whose tasks are
/// cut along the columns alone. With fewer, that pays only for very few rows (kMaxRowsTaskPacksFewPanels).
inline constexpr std::int64_t kMinPanelsToOccupyTeam = 16;

/// On the vector units, unless tasks pack B or each item of a batch has its own, every thread packs all of B for itself
/// if the packed B takes at most this much. Against packing by the team, this gained 4 to 8 percentage points of the
/// peak on two threads.
inline constexpr std::int64_t kMaxVectorThreadPackedBytes = std::int64_t{512} << 10;
/// When the team packs B, at most this much packed B exists at a time: larger operands are packed and multiplied slab
/// by slab. The scratch may be up to a third larger than this, because the columns of a slab are rounded up to whole
/// tasks, even beyond the padded N (three panels to two tasks of two).
inline constexpr std::int64_t kMaxTeamSlabBytes = std::int64_t{16} << 20;
/// Slabs packed by the team cover all of K up to this depth (or up to what kMaxTeamSlabBytes allows, if that is more),
/// because C passes through the caches once more for every slab along K; a wide B gets narrower slabs instead. A larger
/// K is cut into parts of whole chains, which may be less deep than this.
inline constexpr std::int64_t kMaxUncutTeamDepth = 2048;

/// On AMX, what a thread packs for itself, A or a slab of B, takes at most this much, so that it shares a level-2 cache
/// of 2 MiB with the panels of the other operand. Measured together with narrower slabs (512 columns instead of the
/// 1024 of that time; now kMaxAmxColumns): 1200 KiB instead of 800 raised 1024 × 3072 × 768 from 450 to 612 GFLOP/s on
/// two threads, other large products by 3 to 15 %.
inline constexpr std::int64_t kMaxAmxThreadPackedBytes = 1200 << 10;
/// On AMX tiles, a slab of B that a thread packs covers at most this many columns, and so does a task that does not
/// pack B itself: one chain of 384 packed columns takes 384 · 512 · 6 bytes = 1152 KiB, which is within
/// kMaxAmxThreadPackedBytes.
inline constexpr std::int64_t kMaxAmxColumns = 384;
/// On AMX, each thread packs A of a single product for itself if A has fewer rows than this and than B has columns, and
/// if one chain of it fits in kMaxAmxThreadPackedBytes: from K = 512 on that allows 384 rows, so that this bound
/// matters for K <= 192 only. Otherwise B is the operand to pack. Each thread packing the smaller operand reached 470
/// GFLOP/s at 512 × 128 × 768, where all threads packing both reached 300; no other bound was measured.
inline constexpr std::int64_t kMaxAmxThreadPackedRows = 1024;
/// Slabs that all threads together pack for themselves take at most this much on any target (the buffers of tasks, one
/// chain deep each, come on top). Each thread gets a share of it, so the slabs of a large team are packed together
/// where those of a small one are packed by each thread. It is enough for the full slabs of 27 threads on AMX and of 64
/// on the vector units. With more threads on AMX the scratch may be up to a third larger, as for kMaxTeamSlabBytes.
inline constexpr std::int64_t kMaxAllThreadsPackedBytes = std::int64_t{32} << 20;

/// When the team packs a slab, one packing task covers at most kMaxPackTaskPanels panels of B by kMaxPackTaskDepth
/// steps of K: so little that all threads finish packing at about the same time.
inline constexpr std::int64_t kMaxPackTaskPanels = 2, kMaxPackTaskDepth = 128;

/// Number of pieces of `length` that cover `size`; at least one, because a product with K = 0 still writes C.
inline std::int64_t piece_count(std::int64_t size, std::int64_t length) {
  return std::max<std::int64_t>(1, ceil_div(size, length));
}

inline std::int64_t round_up(std::int64_t size, std::int64_t unit) { return ceil_div(size, unit) * unit; }

/// The length of the pieces that cover `size`, as equal as whole units allow: a multiple of `unit` and at most `most`,
/// but at least one unit. The last piece may be shorter.
inline std::int64_t piece_length(std::int64_t size, std::int64_t most, std::int64_t unit) {
  const std::int64_t whole_units = std::max(most / unit * unit, unit);
  return std::max(unit, round_up(ceil_div(size, piece_count(size, whole_units)), unit));
}

/// The functions that compute g.
template <class T>
GemmKernels<T> gemm_kernels(const Gemm<T>& g) {
  if constexpr (std::is_same_v<T, float>) {
    if (g.rounds_operands) return bf16_kernels();
    if (runs_on_amx(g)) return amx_kernels();
  }
  return vector_kernels<T>();
}

/// How one product is computed. A slab is what is packed at a time and serves several tasks: [slab_k, slab_n] of B or,
/// if threads pack A, [m, slab_k] of A. A task computes [rows, columns] of C. Scratch is bounded for every shape: slabs
/// packed by the team take up to 4/3 of kMaxTeamSlabBytes, those packed by all threads together up to 4/3 of
/// kMaxAllThreadsPackedBytes, and the buffers of each thread are one chain deep. A product that is streamed needs no
/// scratch and is cut by run_streamed() (gemm.cpp): its sizes below stay 0. The plan refers to the product, which must
/// outlive it.
template <class T>
struct GemmPlan {
  explicit GemmPlan(const Gemm<T>& g) : product(g) {
    if (scheme == GemmScheme::streamed) return;
    if (shares_b() || tasks_pack_b()) items = g.batch;
    cut_tasks();
    cut_slabs();
    count_scratch();
  }

  const Gemm<T>& product;
  const GemmKernels<T> kernels = gemm_kernels(product);
  const GemmTile tile = kernels.tile;
  const GemmScheme scheme = choose_scheme();
  std::int64_t items = 1;               // items that a slab serves: all, or 1 if each has its own B and the team packs
  std::int64_t slab_k = 0, slab_n = 0;  // steps of K and columns of a slab
  std::int64_t rows = 0, columns = 0;   // extent of a task in C
  std::int64_t depth = 0;               // steps of K that a task multiplies at a time: one chain
  std::int64_t shared_scratch = 0;      // elements of scratch for a slab that the team packs
  std::int64_t thread_scratch_a = 0;    // elements of scratch of each thread for A
  std::int64_t thread_scratch = 0;      // elements of scratch of each thread in total

  bool tasks_pack_b() const { return scheme == GemmScheme::task_packs_b || scheme == GemmScheme::thread_packs_a; }
  bool threads_pack() const { return scheme == GemmScheme::thread_packs_a || scheme == GemmScheme::thread_packs_b; }

 private:
  static std::int64_t elements(std::int64_t bytes) { return bytes / std::int64_t{sizeof(T)}; }
  /// The most elements that one thread may pack for itself.
  std::int64_t thread_elements() const {
    return elements(std::min(tile.is_amx ? kMaxAmxThreadPackedBytes : kMaxVectorThreadPackedBytes,
                             kMaxAllThreadsPackedBytes / threads()));
  }
  /// Whether one thread may pack `width` rows of A or columns of B for itself, `k` steps deep.
  bool thread_may_pack(std::int64_t width, std::int64_t k) const {
    return round_up(width, tile.columns) * tile.packed_depth(k) <= thread_elements();
  }
  /// A product that would have fewer tasks than this gets smaller ones, so that all threads finish at about the same
  /// time. Two per thread were chosen without a measurement.
  std::int64_t min_tasks() const { return std::max<std::int64_t>(tile.min_tasks, 2 * threads()); }
  std::int64_t max_task_columns() const { return tile.is_amx ? kMaxAmxColumns : kMaxTaskColumns; }
  std::int64_t panels() const { return ceil_div(product.n, tile.columns); }
  /// Whether all items of the batch have the same B.
  bool shares_b() const { return product.b_packed != nullptr || product.batch == 1 || product.stride_b == 0; }

  GemmScheme choose_scheme() const {
    const Gemm<T>& g = product;
    if (g.b_packed != nullptr) return GemmScheme::prepacked;
    if (g.b_transposed && !g.a_transposed && g.m <= tile.max_thin_rows) return GemmScheme::streamed;
    if (tile.packs_a && shares_b()) return choose_amx_scheme();
    const bool enough = g.batch * panels() >= kMinPanelsToOccupyTeam;
    const std::int64_t few = g.b_transposed ? (enough ? kMaxRowsTaskPacksTransposedB : 0)
                             : enough       ? kMaxRowsTaskPacksRowMajorB
                                            : kMaxRowsTaskPacksFewPanels;
    const bool many_items = g.batch > 1 && enough && g.batch >= min_tasks();
    if ((g.batch == 1 || !shares_b()) && (g.m <= few || many_items)) return GemmScheme::task_packs_b;
    return shares_b() && thread_may_pack(g.n, g.k) ? GemmScheme::thread_packs_b : GemmScheme::team_packs_b;
  }
  GemmScheme choose_amx_scheme() const {
    const Gemm<T>& g = product;
    const std::int64_t chain = std::min(g.k, kGemmChainLength);
    if (g.batch == 1 && g.m < std::min(g.n, kMaxAmxThreadPackedRows) && thread_may_pack(g.m, chain)) {
      return GemmScheme::thread_packs_a;
    }
    return thread_may_pack(std::min(g.n, max_task_columns()), chain) ? GemmScheme::thread_packs_b
                                                                     : GemmScheme::team_packs_b;
  }

  /// Starts from the largest tasks, for which packing and edges cost least, and halves them until there are enough:
  /// first their rows, down to one register tile, then their columns, down to one panel. Tasks that pack B keep all
  /// rows, and two panels. The count includes the tasks of all slabs along N, although threads wait for each other
  /// after every slab.
  void cut_tasks() {
    const bool all_rows = tasks_pack_b();
    const std::int64_t tiles = ceil_div(product.m, tile.rows), least = all_rows ? 2 : 1;
    std::int64_t task_tiles = all_rows ? tiles : kMaxTaskTiles;
    const std::int64_t most_columns = all_rows ? kMaxTaskPackedColumns : max_task_columns();
    std::int64_t task_panels = std::max<std::int64_t>(1, most_columns / tile.columns);
    const std::int64_t wanted = min_tasks();
    const auto tasks = [&] { return items * ceil_div(tiles, task_tiles) * ceil_div(panels(), task_panels); };
    while (!all_rows && task_tiles > 1 && tasks() < wanted) task_tiles = ceil_div(task_tiles, 2);
    while (task_panels > least && tasks() < wanted) task_panels = ceil_div(task_panels, 2);
    rows = piece_length(product.m, task_tiles * tile.rows, tile.rows);
    columns = piece_length(product.n, task_panels * tile.columns, tile.columns);
  }

  /// A slab is all of the operand, unless that is more than a thread (on AMX) or the team may pack. Otherwise it has
  /// whole chains along K and, of B, the columns of whole tasks, which may be more than the padded N.
  void cut_slabs() {
    const std::int64_t k = std::max<std::int64_t>(1, product.k);
    slab_k = k;
    slab_n = panels() * tile.columns;
    depth = std::min(k, kGemmChainLength);
    if (tile.packs_a && threads_pack()) {
      if (scheme == GemmScheme::thread_packs_b) slab_n = piece_length(slab_n, max_task_columns(), columns);
      const std::int64_t width = scheme == GemmScheme::thread_packs_a ? round_up(product.m, tile.rows) : slab_n;
      slab_k = piece_length(k, thread_elements() * tile.group / (tile.group_rows * width), kGemmChainLength);
    } else if (scheme == GemmScheme::team_packs_b && tile.packed_depth(k) * slab_n > elements(kMaxTeamSlabBytes)) {
      const std::int64_t most = elements(kMaxTeamSlabBytes) * tile.group / tile.group_rows;
      slab_k = piece_length(k, std::max(kMaxUncutTeamDepth, most / slab_n), kGemmChainLength);
      slab_n = piece_length(slab_n, std::max(2 * columns, most / slab_k), columns);
    }
    slab_k = std::min(slab_k, k);
  }

  void count_scratch() {
    // Elements in a cache line: areas of scratch are aligned to one and share none.
    constexpr std::int64_t kLine = 64 / std::int64_t{sizeof(T)};
    const std::int64_t slab = round_up(tile.packed_depth(slab_k) * slab_n, kLine);
    if (scheme == GemmScheme::team_packs_b) shared_scratch = slab;
    thread_scratch_a =
        round_up(scheme == GemmScheme::thread_packs_a ? round_up(product.m, tile.rows) * tile.packed_depth(slab_k)
                                                      : tile.a_buffer_size(depth, product.a_transposed),
                 kLine);
    thread_scratch = thread_scratch_a;
    if (tasks_pack_b()) thread_scratch += round_up(columns * tile.packed_depth(depth), kLine);
    if (scheme == GemmScheme::thread_packs_b) thread_scratch += slab;
  }
};

}  // namespace maki::kernels
