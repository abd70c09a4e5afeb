// The bounds of the plan of a product (plan.h): how much a task, a thread or the team packs and multiplies at a time.
#pragma once

#include <cstdint>

namespace maki::kernels {

// These constants choose the scheme of a product and bound what a task, a thread or the team works on. Their figures
// were measured on the machine of docs/performance.md: two cores with AVX-512, AMX and 2 MiB of level-2 cache each.
// choose_scheme(), cut_tasks() and cut_slabs() apply them.

/// Unless tasks pack B, a task covers at most this many register tiles of rows; on the vector units 24 were no faster.
inline constexpr std::int64_t kMaxTaskTiles = 8;
/// Unless tasks pack B, a task without AMX tiles covers at most this many columns of C (with them: max_task_columns()),
/// and so does a slab that a thread packs for products that round their operands. More would save reads of A, fewer
/// would give more tasks.
inline constexpr std::int64_t kMaxTaskColumns = 512;
/// A task that packs B covers at most this many columns of C: one chain of 128 columns of float32 takes 256 KiB (384
/// KiB on AMX), which stays in the level-2 cache.
inline constexpr std::int64_t kMaxTaskPackedColumns = 128;

/// Tasks pack a transposed B of at least kMinPanelsToOccupyTeam panels if C has at most this many rows: every task
/// reads all of A, and 512 rows of one chain take 1 MiB, half of a level-2 cache. (This bound and the next three apply
/// to a batch in which each item has its own B and, on the vector units, to a single product.)
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
/// 1024 of that time; now max_task_columns()): 1200 KiB instead of 800 raised 1024 × 3072 × 768 from 450 to 612 GFLOP/s
/// on two threads, other large products by 3 to 15 %.
inline constexpr std::int64_t kMaxAmxThreadPackedBytes = 1200 << 10;
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

/// With operands rounded for AMX, a task that packs both covers at most this many rows and columns of C, in steps of
/// this many of K: C takes 900 KiB of the level-2 cache, the packed operands 480. A shorter K than twice these steps
/// does not pay (3072 × 768 × 256 took 1.2 times as long as with the other schemes, 1536 × 384 × 4096 0.8 times).
inline constexpr std::int64_t kBf16TaskExtent = 480, kBf16TaskDepth = 256;
/// A product with a row-major B and at most this many rows is cut in the same way, as in gradients of inputs: 256 × 768
/// × 50,257 takes 0.83 times as long, 256 × 768 × 768 0.9 times, 1024 × 768 × 768 1.2 times.
inline constexpr std::int64_t kMaxBf16RowsTaskPacksBoth = 512;
/// What such a task packs of a row-major B, if every thread packs A, takes about this much, for at most
/// kMaxTaskColumns columns: longer pieces of its rows than with kMaxTaskPackedColumns. 256 × 3072 × 768 takes 0.9 times
/// as long.
inline constexpr std::int64_t kBf16TaskPackedBytes = 640 << 10;
/// All other tasks with operands rounded for AMX multiply this many steps of K at a time: 4096 × 384 × 1536 takes 0.8
/// times as long as in steps of 512, which read and write C three times.
inline constexpr std::int64_t kMaxBf16Depth = 1536;

/// With a transposed A on the vector units, a task packs at most this share of a level-2 cache of B, and covers at most
/// this many rows of C: fewer where K has several chains, so that C stays in the cache from chain to chain. 1536 × 384
/// × 4096 takes 0.92 times as long as with B packed by the team; 3072 × 768 × 256 took 1.05 times as long with 256
/// rows.
inline constexpr std::int64_t kMaxSquareCacheEighths = 3, kMaxSquareRows = 512, kMaxSquareRowsOfChains = 256;
/// But that share is at least this, even of a smaller cache, because packing A makes the first panel of columns dearer
/// than the others: on two cores of Zen 3, with 512 KiB of level-2 cache each, eight gradients of weights take 0.9
/// times as long (geometric mean) with 256 columns as with 96, and no less with 384.
inline constexpr std::int64_t kMinSquarePackedBytes = std::int64_t{512} << 10;
/// Where tasks pack B, what they pack next is read ahead if it takes at most this share of a level-2 cache: with AVX2,
/// a step of gpt2 takes 0.96 times as long.
inline constexpr std::int64_t kMaxReadAheadCacheEighths = 1;

/// When the team packs a slab, one packing task covers at most kMaxPackTaskPanels panels of B by kMaxPackTaskDepth
/// steps of K: so little that all threads finish packing at about the same time.
inline constexpr std::int64_t kMaxPackTaskPanels = 2, kMaxPackTaskDepth = 128;

}  // namespace maki::kernels
