// The portable half of GEMM (see block.h): distributes the packing and the tasks of a plan over the thread team.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/simd/stream.h"

namespace maki::kernels {

/// The address of element (i, p) of op(A), or (p, j) of op(B), of an item of the batch.
template <class T>
GemmOperand<T> a_at(const Gemm<T>& g, std::int64_t item, std::int64_t i, std::int64_t p) {
  return g.a + (item * g.stride_a + (g.a_transposed ? p * g.lda + i : i * g.lda + p));
}
template <class T>
GemmOperand<T> b_at(const Gemm<T>& g, std::int64_t item, std::int64_t p, std::int64_t j) {
  return g.b + (item * g.stride_b + (g.b_transposed ? j * g.ldb + p : p * g.ldb + j));
}

/// The part of the product that is computed from what is packed at a time: steps [p, p + k) of op(A) and op(B) and
/// columns [j, j + n) of op(B), for the plan's `items` items of the batch from `item` on. See GemmPlan.
struct GemmSlab {
  std::int64_t item, p, k, j, n;
};

/// The item and the element of C at which a task begins.
struct GemmTask {
  std::int64_t item, i, j;
};

/// One product in progress, of a plan that is not streamed; shared by all threads of the team.
template <class T>
class GemmProduct {
 public:
  GemmProduct(const GemmPlan<T>& plan, T* scratch)
      : g_(plan.product), plan_(plan), slab_(scratch), own_(scratch + plan.shared_scratch) {}
  /// Computes the product on `team` threads (1: on the caller alone). The scratch holds plan.shared_scratch + team *
  /// plan.thread_scratch elements.
  void run(int team) const;

 private:
  std::int64_t slabs() const { return g_.batch / plan_.items * slabs_n() * slabs_k(); }
  std::int64_t slabs_n() const { return piece_count(g_.n, plan_.slab_n); }
  std::int64_t slabs_k() const { return piece_count(g_.k, plan_.slab_k); }
  GemmSlab slab(std::int64_t index) const;

  std::int64_t pack_tasks(const GemmSlab& s) const;
  void pack(const GemmSlab& s, std::int64_t task) const;
  std::int64_t tasks(const GemmSlab& s) const {
    return plan_.items * piece_count(g_.m, plan_.rows) * piece_count(s.n, plan_.columns);
  }
  GemmTask place(const GemmSlab& s, std::int64_t task) const;
  void set_next(const GemmSlab& s, std::int64_t task, std::int64_t p, GemmBlock<T>& block) const;
  void multiply(const GemmSlab& s, std::int64_t task, int thread) const;
  void run_member(int thread, int team, TaskQueue& to_pack, TaskQueue& to_multiply) const;
  void pack_private(const GemmSlab& s, int thread) const;
  std::int64_t panel_stride() const { return plan_.tile.packed_depth(plan_.slab_k) * plan_.tile.columns; }
  /// Row i of packed A or column j of packed B, from step p on. i and j must be multiples of the panel width, which is
  /// the same for both because the register tiles that need a packed A (AMX) are square; p must be a multiple of
  /// tile.group.
  template <class P>
  P* panel_at(P* panels, std::int64_t j, std::int64_t p) const {
    return panels + j * plan_.tile.packed_depth(plan_.slab_k) + plan_.tile.packed_depth(p) * plan_.tile.columns;
  }
  /// On AMX, configures the tile registers of the calling thread for as long as the result lives.
  std::optional<amx::TileConfig> hold_tile_registers() const {
    return plan_.tile.is_amx ? std::optional<amx::TileConfig>(std::in_place) : std::nullopt;
  }
  /// Packed B of a slab, where tasks do not pack it.
  const T* packed_b(int thread) const {
    if (plan_.scheme == GemmScheme::prepacked) return g_.b_packed;
    return plan_.scheme == GemmScheme::thread_packs_b ? own_b(thread) : slab_;
  }
  T* own_a(int thread) const { return own_ + thread * plan_.thread_scratch; }
  T* own_b(int thread) const { return own_a(thread) + plan_.thread_scratch_a; }
  /// Whether rows of C, and of the derivative, are stored past the caches.
  bool stores_past_caches() const {
    return plan_.may_store_past_caches() &&
           (g_.c_rounded != nullptr ? goes_past_caches(g_.c_rounded, g_.ldc, plan_.c_bytes())
                                    : goes_past_caches(g_.c, g_.ldc, plan_.c_bytes())) &&
           (g_.derivative == nullptr || goes_past_caches(g_.derivative, g_.ldc, plan_.c_bytes()));
  }
  T* own_c(int thread) const { return own_a(thread + 1) - plan_.thread_scratch_c; }

  const Gemm<T>& g_;
  const GemmPlan<T>& plan_;
  T *const slab_, *const own_;  // scratch: the slab of the team; then plan_.thread_scratch elements per thread
};

template <class T>
GemmSlab GemmProduct<T>::slab(std::int64_t index) const {
  const std::int64_t p = index % slabs_k() * plan_.slab_k, j = index / slabs_k() % slabs_n() * plan_.slab_n;
  return {index / (slabs_k() * slabs_n()) * plan_.items, p, std::min(plan_.slab_k, g_.k - p), j,
          std::min(plan_.slab_n, g_.n - j)};
}

template <class T>
std::int64_t GemmProduct<T>::pack_tasks(const GemmSlab& s) const {
  if (plan_.scheme != GemmScheme::team_packs_b) return 0;
  return ceil_div(s.n, kMaxPackTaskPanels * plan_.tile.columns) * ceil_div(s.k, kMaxPackTaskDepth);
}

template <class T>
void GemmProduct<T>::pack(const GemmSlab& s, std::int64_t task) const {
  const std::int64_t width = kMaxPackTaskPanels * plan_.tile.columns, across = ceil_div(s.n, width);
  const std::int64_t j = task % across * width, p = task / across * kMaxPackTaskDepth;
  plan_.kernels.pack_b(std::min(kMaxPackTaskDepth, s.k - p), std::min(width, s.n - j),
                       b_at(g_, s.item, s.p + p, s.j + j), g_.ldb, g_.b_transposed, panel_at(slab_, j, p),
                       panel_stride());
}

/// Packs what a thread needs for all its tasks of a slab.
template <class T>
void GemmProduct<T>::pack_private(const GemmSlab& s, int thread) const {
  if (plan_.scheme == GemmScheme::thread_packs_b) {
    plan_.kernels.pack_b(s.k, s.n, b_at(g_, s.item, s.p, s.j), g_.ldb, g_.b_transposed, own_b(thread), panel_stride());
  }
  if (plan_.scheme != GemmScheme::thread_packs_a) return;
  for (std::int64_t i = 0; i < g_.m; i += plan_.tile.rows) {
    plan_.kernels.pack_a(std::min(plan_.tile.rows, g_.m - i), s.k, a_at(g_, s.item, i, s.p), g_.lda, g_.a_transposed,
                         panel_at(own_a(thread), i, 0));
  }
}

/// Tasks are numbered such that each of threads() threads begins with rows of its own, as in every other loop, and goes
/// down all of them before it moves on to the next columns: their part of B stays in its level-2 cache meanwhile.
template <class T>
GemmTask GemmProduct<T>::place(const GemmSlab& s, std::int64_t task) const {
  const std::int64_t across = piece_count(s.n, plan_.columns), down = piece_count(g_.m, plan_.rows);
  const std::int64_t strips = plan_.items > 1 ? 1 : std::min<std::int64_t>(plan_.team(), down);
  const std::int64_t in_item = task % (across * down), strip = ((in_item / across + 1) * strips - 1) / down;
  const std::int64_t begin = down * strip / strips, rows = down * (strip + 1) / strips - begin;
  const std::int64_t in_strip = in_item - begin * across, row = begin + in_strip % rows;
  // Of an upper part, the last rows have the least work, so each strip takes rows from both ends.
  const std::int64_t i = !g_.upper ? row : row % 2 == 0 ? row / 2 : down - 1 - row / 2;
  return {s.item + task / (across * down), i * plan_.rows, in_strip / rows * plan_.columns};
}

/// Sets which parts of A and B follow a block of a task that ends before step p of the slab: those of the next chain
/// or, after the last one, of the next task, if there is one.
template <class T>
void GemmProduct<T>::set_next(const GemmSlab& s, std::int64_t task, std::int64_t p, GemmBlock<T>& block) const {
  block.next_a = block.next_b = nullptr;
  if (!plan_.reads_next_a() && !plan_.reads_next_b()) return;
  const bool is_last = p >= s.k;
  const std::int64_t next = is_last ? task + 1 : task, step = s.p + (is_last ? 0 : p);
  if (next == tasks(s)) return;
  const auto [item, i, j] = place(s, next);
  if (plan_.reads_next_a()) block.next_a = a_at(g_, item, i, step).values;
  if (plan_.reads_next_b()) block.next_b = b_at(g_, item, step, s.j + j).values;
}

template <class T>
void GemmProduct<T>::multiply(const GemmSlab& s, std::int64_t task, int thread) const {
  const auto [item, i, j] = place(s, task);
  GemmBlock<T> block{};
  block.m = std::min(plan_.rows, g_.m - i);
  block.n = std::min(plan_.columns, s.n - j);
  block.diagonal = g_.upper ? i - (s.j + j) : -block.m;
  if (block.diagonal >= block.n) return;  // all of it is left of the diagonal
  block.a_transposed = g_.a_transposed;
  block.a_packed = plan_.scheme == GemmScheme::thread_packs_a;
  block.packs_all_a = plan_.packs_all_a();
  block.lda = block.a_packed ? panel_stride() : g_.lda;
  const std::int64_t at_c = item * g_.stride_c + i * g_.ldc + s.j + j;
  block.c = g_.c_rounded == nullptr ? g_.c + at_c : nullptr;
  block.c_rounded = g_.c_rounded != nullptr ? g_.c_rounded + at_c : nullptr;
  block.ldc = g_.ldc;
  block.reads_next_a = plan_.reads_next_a();
  block.a_buffer = own_a(thread);
  block.b_buffer = own_b(thread);
  for (std::int64_t p = 0; p == 0 || p < s.k; p += plan_.depth) {
    block.k = std::min(plan_.depth, s.k - p);
    block.a = block.a_packed ? GemmOperand<T>(panel_at(own_a(thread), i, p)) : a_at(g_, item, i, s.p + p);
    set_next(s, task, p + block.k, block);
    if (plan_.tasks_pack_b()) {
      block.b = b_at(g_, item, s.p + p, s.j + j);
      block.ldb = g_.ldb;
      block.b_layout = g_.b_transposed ? GemmLayoutB::column_major : GemmLayoutB::row_major;
    } else {
      block.b = panel_at(packed_b(thread), j, p);
      block.ldb = panel_stride();
      block.b_layout = GemmLayoutB::packed;
    }
    const bool begins = s.p + p == 0, ends = s.p + p + block.k == g_.k;
    block.accumulate = g_.beta == 1 || !begins;
    // A chain on AMX starts from the bias; the vector units add it at the end.
    const bool adds_bias = g_.bias != nullptr && (plan_.tile.packs_a ? begins : ends);
    block.bias = adds_bias ? g_.bias + s.j + j : nullptr;
    if (ends) {
      block.activation = g_.activation;
      block.derivative = g_.derivative != nullptr ? g_.derivative + at_c : nullptr;
      block.factor = g_.factor != nullptr ? g_.factor + at_c : nullptr;
    }
    const bool whole = ends && !block.accumulate;  // the only block of these elements
    block.streams = whole && stores_past_caches();
    block.c_buffer = block.streams || block.c_rounded != nullptr ? own_c(thread) : nullptr;
    plan_.kernels.multiply(block);
  }
}

template <class T>
void GemmProduct<T>::run(int team) const {
  if (team == 1) {
    const auto held = hold_tile_registers();
    for (std::int64_t index = 0; index < slabs(); ++index) {
      const GemmSlab s = slab(index);
      if (plan_.threads_pack()) pack_private(s, 0);
      for (std::int64_t task = 0; task < pack_tasks(s); ++task) pack(s, task);
      for (std::int64_t task = 0; task < tasks(s); ++task) multiply(s, task, 0);
    }
    return;
  }
  TaskQueue to_pack(pack_tasks(slab(0)), team), to_multiply(tasks(slab(0)), team);
  run_on_team(team, [&](int thread) { run_member(thread, team, to_pack, to_multiply); });
}

/// The work of thread `thread` of a team: for each slab, packs its share and waits for the others, if the team packs;
/// then multiplies, after packing what threads pack for themselves, and waits again before the next slab.
template <class T>
void GemmProduct<T>::run_member(int thread, int team, TaskQueue& to_pack, TaskQueue& to_multiply) const {
  const auto held = hold_tile_registers();
  for (std::int64_t index = 0; index < slabs(); ++index) {
    const GemmSlab s = slab(index);
    if (pack_tasks(s) > 0) {
      to_pack.run(thread, [&](std::int64_t task) { pack(s, task); });
#pragma omp barrier
    }
    bool packed = !plan_.threads_pack();
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

}  // namespace maki::kernels
