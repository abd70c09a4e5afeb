// The plan of one product: who packs which operand, and how the product is cut into tasks. It follows from the fields
// of Gemm (of the pointers, only from whether b_packed is null), the target and threads(). Apart from the choice of AMX
// (runs_on_amx()), no bit of the result depends on it: a cut along K always falls between two chains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "autograd/core/cache_size.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/gemm/plan_bounds.h"
#include "autograd/kernels/simd/stream.h"

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

  /// A task takes all rows of C (with cuts_vector_squares() a part of them) and packs its own columns of B, chain by
  /// chain; on the vector units, a row-major B is packed while its first row tile multiplies. There is no barrier, and
  /// what is packed stays in the cache of its core. On the vector units this is for a single product of few rows (the
  /// bounds kMaxRowsTaskPacks… below) or with a transposed A; on every target, it is for a batch in which each item has
  /// its own B and few rows, or more rows if the items alone make enough tasks.
  task_packs_b,

  /// Every thread packs B, which all items of a batch share, for itself before its first task: on the vector units all
  /// of a small B, on AMX one slab after the other of a B of any size. Two cores that each pack half of 64 KB take 9 µs
  /// and a barrier, because the lines they write are in the other's cache; a core that packs all of it takes 2.6 µs.
  thread_packs_b,

  /// On AMX, where a packed number takes up to six bytes, for a single product: A is the smaller operand and has few
  /// rows. Each thread packs it for itself, in slabs that leave room in its level-2 cache, and each task packs its
  /// columns of B.
  thread_packs_a,

  /// With operands rounded for AMX, for a transposed A, as in gradients of weights, or for few rows and a row-major B,
  /// as in gradients of inputs: a task keeps its part of C in the level-2 cache and packs the rows of A and the columns
  /// of B that it multiplies, kBf16TaskDepth steps of K after the other. So both operands are read in long pieces of
  /// their rows, and C leaves the cache once, however long K is.
  task_packs_both,

  /// All threads pack a slab of B together, wait for each other, and multiply it: what no other scheme takes.
  team_packs_b,
};

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
/// kMaxAllThreadsPackedBytes, and the buffers of each thread are `depth` steps deep. A product that is streamed needs
/// no scratch and is cut by run_streamed() (gemm.cpp): its sizes below stay 0. The plan refers to the product, which
/// must outlive it.
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
  std::int64_t depth = 0;               // steps of K that a task multiplies at a time: one chain, if there are chains
  std::int64_t shared_scratch = 0;      // elements of scratch for a slab that the team packs
  std::int64_t thread_scratch_a = 0;    // elements of scratch of each thread for A
  std::int64_t thread_scratch_c = 0;    // elements of scratch of each thread for finished rows of C
  std::int64_t thread_scratch = 0;      // elements of scratch of each thread in total

  /// The threads that there are tasks for.
  int team() const { return product.one_thread ? 1 : threads(); }
  bool tasks_pack_a() const { return scheme == GemmScheme::task_packs_both; }
  /// Whether a task packs all its rows of a transposed A at once, which reads long pieces of memory. A task that takes
  /// all rows of C may have too many.
  bool packs_all_a() const {
    const bool few_rows = scheme != GemmScheme::thread_packs_a && scheme != GemmScheme::task_packs_b;
    return rounds_for_amx() && product.a_transposed && few_rows;
  }
  /// Whether the product is cut as suits gradients of weights on the vector units, where A is transposed and K is the
  /// number of tokens: each task takes its part of both operands, and a part of C that stays in the level-2 cache
  /// however long K is.
  bool cuts_vector_squares() const {
    return !tile.packs_a && product.a_transposed && product.batch == 1 && product.b_packed == nullptr;
  }
  /// Whether tasks read what they multiply next of A beside the arithmetic: if A is too large to be in the level-2
  /// caches already.
  bool reads_next_a() const {
    return cuts_vector_squares() && product.m * product.k > elements(level2_cache_bytes() / 2) * threads();
  }
  /// Whether tasks read what they pack next of B beside the arithmetic: if it takes little of the level-2 cache.
  bool reads_next_b() const {
    return !tile.packs_a && scheme == GemmScheme::task_packs_b && !cuts_vector_squares() && product.batch == 1 &&
           columns * depth <= elements(level2_cache_bytes() / 8 * kMaxReadAheadCacheEighths);
  }
  bool tasks_pack_b() const {
    return scheme == GemmScheme::task_packs_b || scheme == GemmScheme::thread_packs_a || tasks_pack_a();
  }
  /// Whether rows of C, and of the derivative, may be stored past the caches, if they are aligned: after an activation
  /// (4096 × 1536 × 384 with GELU takes 0.86 times as long), if each task packs its columns of B after all threads have
  /// packed A (256 × 3072 × 768: 0.72 times), or its rows of a transposed A (3072 × 768 × 256: 0.82 times), and if they
  /// are rounded and so go through a buffer anyway. Elsewhere it is slower, because the stores of a tile then no longer
  /// run beside the multiplications of the next one (4096 × 1152 × 384: 1.1 times).
  bool may_store_past_caches() const {
    const Gemm<T>& g = product;
    const bool buffered = g.activation != GemmActivation::none || g.c_rounded != nullptr;
    const bool pays = buffered || g.a_transposed || scheme == GemmScheme::thread_packs_a;
    return g.rounds_operands && pays && g.batch == 1 && g.beta == 0 && g.k <= depth && c_bytes() >= kStreamedBytes;
  }
  /// Of C as numbers of type T. A rounded C counts the same: with 1.5 MB stored past the caches, 256 × 3072 × 768 takes
  /// 0.98 ms instead of 1.22.
  std::int64_t c_bytes() const { return product.m * product.n * std::int64_t{sizeof(T)}; }
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
  /// time.
  std::int64_t min_tasks() const { return std::max<std::int64_t>(tile.min_tasks, 2 * team()); }
  bool rounds_for_amx() const { return product.rounds_operands && tile.is_amx; }
  std::int64_t max_depth() const {
    if (tasks_pack_a()) return kBf16TaskDepth;
    if (product.c_rounded != nullptr) return kMaxRoundedResultDepth;
    return rounds_for_amx() ? kMaxBf16Depth : kGemmChainLength;
  }
  /// On AMX, of a slab of B that a thread packs, and of a task that does not pack B itself: what fits in
  /// kMaxAmxThreadPackedBytes, 512 steps deep; in float32 that is 384 columns. A wide slab saves packing A again:
  /// 4096 × 1152 × 384 with rounded operands takes 0.7 times as long as with 384 columns.
  std::int64_t max_task_columns() const {
    if (!tile.is_amx) return kMaxTaskColumns;
    const std::int64_t least = rounds_for_amx() ? 1 : kGemmChainLength;
    const std::int64_t most = product.c_rounded != nullptr ? kMaxRoundedResultDepth : kGemmChainLength;
    const std::int64_t steps = std::clamp(product.k, least, most);
    return elements(kMaxAmxThreadPackedBytes) / tile.packed_depth(steps) / tile.columns * tile.columns;
  }
  /// Of a task that packs B.
  std::int64_t most_packed_columns() const {
    if (!rounds_for_amx() || product.b_transposed) return kMaxTaskPackedColumns;
    const std::int64_t steps = tile.packed_depth(std::clamp<std::int64_t>(product.k, 1, max_depth()));
    const std::int64_t columns_of_bytes = elements(kBf16TaskPackedBytes) / steps / tile.columns * tile.columns;
    return std::clamp(columns_of_bytes, kMaxTaskPackedColumns, kMaxTaskColumns);
  }
  void cut_vector_squares() {
    const std::int64_t steps = std::clamp<std::int64_t>(product.k, 1, kGemmChainLength);
    const std::int64_t most_packed =
        elements(std::max(level2_cache_bytes() / 8 * kMaxSquareCacheEighths, kMinSquarePackedBytes));
    cut_square_tasks(product.k <= kGemmChainLength ? kMaxSquareRows : kMaxSquareRowsOfChains,
                     std::max(tile.columns, most_packed / steps));
  }
  std::int64_t panels() const { return ceil_div(product.n, tile.columns); }
  /// Whether all items of the batch have the same B.
  bool shares_b() const { return product.b_packed != nullptr || product.batch == 1 || product.stride_b == 0; }

  GemmScheme choose_scheme() const {
    const Gemm<T>& g = product;
    if (g.b_packed != nullptr) return GemmScheme::prepacked;
    if (g.b_transposed && !g.a_transposed && g.m <= tile.max_thin_rows && g.factor == nullptr)
      return GemmScheme::streamed;
    if (tile.packs_a && shares_b()) return choose_amx_scheme();
    if (cuts_vector_squares()) return GemmScheme::task_packs_b;
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
    const bool few_rows = !g.b_transposed && g.c_rounded == nullptr && g.m <= kMaxBf16RowsTaskPacksBoth;
    if (rounds_for_amx() && (g.a_transposed || few_rows) && g.batch == 1 && g.k >= 2 * kBf16TaskDepth) {
      return GemmScheme::task_packs_both;
    }
    // What a thread packs must be as deep as the part of K that it cannot interrupt.
    const std::int64_t chain = g.c_rounded != nullptr ? g.k : std::min(g.k, kGemmChainLength);
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
    if (tasks_pack_a()) return cut_square_tasks(kBf16TaskExtent, kBf16TaskExtent);
    if (cuts_vector_squares()) return cut_vector_squares();
    const bool all_rows = tasks_pack_b();
    const std::int64_t tiles = ceil_div(product.m, tile.rows), least = all_rows ? 2 : 1;
    std::int64_t task_tiles = all_rows ? tiles : kMaxTaskTiles;
    const std::int64_t most_columns = all_rows ? most_packed_columns() : max_task_columns();
    std::int64_t task_panels = std::max<std::int64_t>(1, most_columns / tile.columns);
    const std::int64_t wanted = min_tasks();
    const auto tasks = [&] { return items * ceil_div(tiles, task_tiles) * ceil_div(panels(), task_panels); };
    while (!all_rows && task_tiles > 1 && tasks() < wanted) task_tiles = ceil_div(task_tiles, 2);
    while (task_panels > least && tasks() < wanted) task_panels = ceil_div(task_panels, 2);
    rows = piece_length(product.m, task_tiles * tile.rows, tile.rows);
    columns = piece_length(product.n, task_panels * tile.columns, tile.columns);
  }

  /// Tasks that pack their own part of B are nearly square where they do not take all rows, because each reads its rows
  /// of A and its columns of B; their number is a multiple of the number of threads, if there are enough tiles.
  void cut_square_tasks(std::int64_t most_rows, std::int64_t most_columns) {
    const std::int64_t tiles = ceil_div(product.m, tile.rows);
    std::int64_t down = ceil_div(tiles, most_rows / tile.rows);
    std::int64_t across = ceil_div(panels(), most_columns / tile.columns);
    while (down * across < team() && (down < tiles || across < panels())) {
      ++(tiles * across >= panels() * down ? down : across);
    }
    if (product.upper) down = std::clamp<std::int64_t>(2 * team(), down, tiles);
    while (down * across % team() != 0 && down * across < 4 * team() && down < tiles) ++down;
    rows = ceil_div(tiles, down) * tile.rows;
    columns = ceil_div(panels(), across) * tile.columns;
  }

  /// A slab is all of the operand, unless that is more than a thread (on AMX) or the team may pack. Otherwise it has
  /// whole chains along K and, of B, the columns of whole tasks, which may be more than the padded N.
  void cut_slabs() {
    const std::int64_t k = std::max<std::int64_t>(1, product.k);
    slab_k = k;
    slab_n = panels() * tile.columns;
    depth = std::min(k, max_depth());
    if (tile.packs_a && threads_pack()) {
      if (scheme == GemmScheme::thread_packs_b) slab_n = piece_length(slab_n, max_task_columns(), columns);
      const std::int64_t width = scheme == GemmScheme::thread_packs_a ? round_up(product.m, tile.rows) : slab_n;
      slab_k = piece_length(k, thread_elements() * tile.group / (tile.group_rows * width), kGemmChainLength);
    } else if (scheme == GemmScheme::team_packs_b && tile.packed_depth(k) * slab_n > elements(kMaxTeamSlabBytes)) {
      const std::int64_t most = elements(kMaxTeamSlabBytes) * tile.group / tile.group_rows;
      slab_k = piece_length(k, std::max(kMaxUncutTeamDepth, most / slab_n), kGemmChainLength);
      slab_n = piece_length(slab_n, std::max(2 * columns, most / slab_k), columns);
    }
    slab_k = product.c_rounded != nullptr ? k : std::min(slab_k, k);
  }

  void count_scratch() {
    // Areas of scratch are aligned to cache lines and share none.
    constexpr std::int64_t kLineElements = 64 / std::int64_t{sizeof(T)};
    const std::int64_t slab = round_up(tile.packed_depth(slab_k) * slab_n, kLineElements);
    if (scheme == GemmScheme::team_packs_b) shared_scratch = slab;
    thread_scratch_a =
        round_up(scheme == GemmScheme::thread_packs_a ? round_up(product.m, tile.rows) * tile.packed_depth(slab_k)
                                                      : tile.a_buffer_size(depth, product.a_transposed),
                 kLineElements);
    if (packs_all_a()) thread_scratch_a = round_up(rows * tile.packed_depth(depth), kLineElements);
    thread_scratch = thread_scratch_a;
    if (may_store_past_caches() || product.c_rounded != nullptr)
      thread_scratch_c = tile.rows * round_up(columns, tile.columns);
    thread_scratch += thread_scratch_c;
    if (tasks_pack_b()) thread_scratch += round_up(columns * tile.packed_depth(depth), kLineElements);
    if (scheme == GemmScheme::thread_packs_b) thread_scratch += slab;
  }
};

}  // namespace maki::kernels
