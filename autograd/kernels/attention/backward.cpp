// Backward attention (see attention.h). The forward pass is y = (p ∘ keep) v with p = softmax(scale · q kᵀ) and the
// dropout factors keep; p is recomputed from q, k and the saved lse. With r_t = Σ_c y[t,c] · dy[t,c], which equals
// Σ_s p ∘ dp:
//
//   dp = (dy vᵀ) ∘ keep      ds = p ∘ (dp − r)
//   dv = (p ∘ keep)ᵀ dy      dq = scale · ds k      dk = scale · dsᵀ q
//
// (Dao et al. 2022, arXiv:2205.14135, algorithm 4). Every pair of a query tile and a key block is computed once and
// adds to dq of its tile and to dk and dv of its block, in an order that depends on the shape alone. If there are many
// heads, one thread computes a whole head, or all heads that share their keys and values. If there are few, or very
// long ones, each head is cut into n × n pieces, and step w of n computes in parallel those with query piece + key
// piece = w mod n, no two of which share a row. With a position term they have no distance in common either if their
// sum is w, so there are 2n − 1 steps.
#include <algorithm>
#include <array>
#include <numbers>

#include "autograd/core/parallel.h"
#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/heads.h"
#include "autograd/kernels/attention/plan.h"
#include "autograd/kernels/attention/tile.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention/backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/pair-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// The scratch of a worker (see backward_scratch()), and that of the head's position term in its panel.
template <class T>
struct BackwardScratch {
  T *p, *ds, *keep;
  Origins<T> k_origins, v_origins;
  T* position;  // relative_scratch(), if there is a position term
  RelativeHeadScratch<T> relative;

  /// With dropout the values have no origin, because the weights of a row do not add up to 1.
  BackwardScratch(const AttentionBackwardHead<T>& head, const RelativeHeadScratch<T>& relative_part, T* at)
      : p(at),
        ds(p + kBackwardTileQueries * kKeyBlock),
        keep(ds + kBackwardTileQueries * kKeyBlock),
        k_origins(head, keep + kKeyBlock),
        v_origins(head, keep + kKeyBlock + 3 * padded(head.head_size)),
        position(at + backward_scratch(head.head_size)),
        relative(relative_part) {
    k_origins.compute(head, head.k, head.k_stride);
    if (head.dropout.stream == nullptr) {
      v_origins.compute(head, head.v, head.v_stride);
    } else {
      v_origins.clear(head.head_size);
    }
  }
};

/// Packs q and dy of the tile of queries [t, t + rows), computes r, and sets dq to 0.
template <class T>
HWY_INLINE void start_queries(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s, std::int64_t t,
                              std::int64_t rows, const BackwardScratch<T>& scratch) {
  const std::int64_t ld = padded(head.head_size), columns = head.head_size, tile = t / kBackwardTileQueries;
  const T factor = static_cast<T>(head.scale * std::numbers::log2e);
  const auto pack_queries = [&](const T* origin, T* to, T* dq) {
    const PackSource<T> from{head.q + t * head.q_stride, head.q_stride, nullptr, origin};
    const bool finite = pack_head_rows(from, rows, columns, factor, to + t * ld, ld);
    std::fill(to + (t + rows) * ld, to + (t + kBackwardTileQueries) * ld, T{0});
    std::fill(dq + t * ld, dq + (t + kBackwardTileQueries) * ld, T{0});
    return finite;
  };
  bool finite = pack_queries(head.distances.minus_u, s.q, s.dq);
  if (head.distances) finite = pack_queries(head.distances.minus_v, scratch.relative.q, scratch.relative.dq) && finite;
  s.q_finite[tile] = finite;
  s.dy_finite[tile] =
      pack_head_rows<T>({head.dy + t * head.dy_stride, head.dy_stride}, rows, columns, T{1}, s.dy + t * ld, ld);
  std::fill(s.dy + (t + rows) * ld, s.dy + (t + kBackwardTileQueries) * ld, T{0});
  for (std::int64_t r = t; r < t + rows; ++r) {
    s.row_sum[r] = dot_minus_origin(s.dy + r * ld, head.y + r * head.y_stride, scratch.v_origins.of_row(r), columns);
  }
}

/// Packs the rows of a piece and sets their gradients to 0.
template <class T>
HWY_INLINE void start_piece(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s,
                            const AttentionPiece& piece, const BackwardScratch<T>& scratch) {
  const std::int64_t ld = padded(head.head_size), columns = head.head_size;
  if (head.distances) start_head_distances(head, scratch.relative, piece.distance_begin, piece.distance_end);
  for (std::int64_t t = piece.query_begin; t < piece.query_end; t += kBackwardTileQueries) {
    start_queries(head, s, t, std::min(kBackwardTileQueries, piece.query_end - t), scratch);
  }
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {
    std::fill(s.dk + at * ld, s.dk + (at + kKeyBlock) * ld, T{0});
    std::fill(s.dv + at * ld, s.dv + (at + kKeyBlock) * ld, T{0});
    if (scratch.k_origins.first_row_of_seven == head.queries)
      continue;  // all rows are early rows (attention.h), which read the keys in place
    const KeyBlock keys(head.key_mask, at, head.keys);
    const PackSource<T> k{head.k + at * head.k_stride, head.k_stride, keys.pick, scratch.k_origins.of_seven};
    const PackSource<T> v{head.v + at * head.v_stride, head.v_stride, keys.pick, scratch.v_origins.of_seven};
    s.k_finite[at / kKeyBlock] = pack_head_rows(k, keys.count, columns, T{1}, s.k + at * ld, ld);
    pack_head_transposed<T>({s.k + at * ld, ld}, keys.count, columns, s.kt + at * ld);
    pack_head_transposed(v, keys.count, columns, s.vt + at * ld);
  }
}

/// Computes every visible pair of a piece; key blocks are the outer loop.
template <class T>
HWY_INLINE void sweep_piece(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s,
                            const AttentionPiece& piece, const BackwardScratch<T>& scratch) {
  const std::int64_t ld = padded(head.head_size);
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {
    const KeyBlock keys(head.key_mask, at, head.keys);
    if (keys.count == 0) continue;
    const std::int64_t sees = head.last_key_step == 0 ? 0 : std::max<std::int64_t>(at - head.last_key, 0);
    for (std::int64_t t = std::max(piece.query_begin, sees / kBackwardTileQueries * kBackwardTileQueries);
         t < piece.query_end; t += kBackwardTileQueries) {
      const std::int64_t rows = std::min(kBackwardTileQueries, piece.query_end - t);
      const bool q_finite = s.q_finite[t / kBackwardTileQueries] != 0;
      run_pair(head,
               Pair<T>{.first_row = t,
                       .rows = rows,
                       .early = std::max<std::int64_t>(scratch.k_origins.first_row_of_seven - t, 0),
                       .q = s.q + t * ld,
                       .dy = s.dy + t * ld,
                       .row_sum = s.row_sum + t,
                       .lse = head.lse + t,
                       .dq = s.dq + t * ld,
                       .k = s.k + at * ld,
                       .kt = s.kt + at * ld,
                       .vt = s.vt + at * ld,
                       .dk = s.dk + at * ld,
                       .dv = s.dv + at * ld,
                       .p = scratch.p,
                       .ds = scratch.ds,
                       .keep = scratch.keep,
                       .q_finite = q_finite,
                       .dy_finite = s.dy_finite[t / kBackwardTileQueries] != 0,
                       .k_finite = s.k_finite[at / kKeyBlock] != 0,
                       .plain_k = {head.k + at * head.k_stride, head.k_stride, keys.pick},
                       .plain_v = {head.v + at * head.v_stride, head.v_stride, keys.pick},
                       .k_origins = &scratch.k_origins,
                       .v_origins = &scratch.v_origins,
                       .distances = head.distances ? pair_distances(head, scratch.relative, scratch.position, t, rows,
                                                                    keys, q_finite)
                                                   : PairDistances<T>{}},
               keys);
    }
  }
}

/// Delivers the gradients of the rows of a piece. q was multiplied by scale · log₂ e as it was packed, so dk only lacks
/// a factor ln 2.
template <class T>
HWY_INLINE void finish_piece(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s,
                             const AttentionPiece& piece, const RelativeHeadScratch<T>& relative) {
  const std::int64_t ld = padded(head.head_size), t = piece.query_begin, rows = piece.query_end - t;
  for (std::int64_t at = piece.key_begin; at < piece.key_end && head.dk != nullptr; at += kKeyBlock) {
    const KeyBlock keys(head.key_mask, at, head.keys);
    const std::int64_t size = std::min(kKeyBlock, piece.key_end - at);
    deliver_rows(s.dk + at * ld, ld, &keys, size, head.head_size, static_cast<T>(std::numbers::ln2), head.add_dk,
                 head.dk + at * head.dk_stride, head.dk_stride);
    deliver_rows(s.dv + at * ld, ld, &keys, size, head.head_size, T{1}, head.add_dv, head.dv + at * head.dv_stride,
                 head.dv_stride);
  }
  if (const std::int64_t r = piece.distance_begin; head.distances && r < piece.distance_end) {
    deliver_rows<T>(relative.dr + r * ld, ld, nullptr, piece.distance_end - r, head.head_size,
                    static_cast<T>(std::numbers::ln2), head.add_dr, head.dr - r * head.dr_stride, -head.dr_stride);
  }
  if (head.dq == nullptr || rows <= 0) return;
  const T factor = static_cast<T>(head.scale);
  deliver_rows<T>(s.dq + t * ld, ld, nullptr, rows, head.head_size, factor, head.add_dq, head.dq + t * head.dq_stride,
                  head.dq_stride);
  if (!head.distances) return;
  deliver_rows<T>(relative.dq + t * ld, ld, nullptr, rows, head.head_size, factor, head.add_position_dq,
                  head.position_dq + t * head.position_dq_stride, head.position_dq_stride);
}

template <class T>
void run_phase_on_target(const AttentionBackwardHead<T>& head, T* panel, const AttentionPiece& piece, T* worker_scratch,
                         BackwardPhase phase) {
  const AttentionHeadScratch<T> s(panel, head.queries, head.keys, head.head_size);
  T* const behind = panel + AttentionHeadScratch<T>::size(head.queries, head.keys, head.head_size);
  const RelativeHeadScratch<T> relative(behind, head.queries, head.keys, head.head_size);
  if (phase == BackwardPhase::finish) return finish_piece(head, s, piece, relative);
  const BackwardScratch<T> scratch(head, relative, worker_scratch);
  if (phase == BackwardPhase::start) return start_piece(head, s, piece, scratch);
  if (phase == BackwardPhase::sweep) return sweep_piece(head, s, piece, scratch);
  const AttentionPiece queries{piece.query_begin, piece.query_end, 0, 0, piece.distance_begin, piece.distance_end};
  start_piece(head, s, queries, scratch);
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {  // all phases while a block is cached
    const AttentionPiece block{0, 0, at, std::min(at + kKeyBlock, piece.key_end), 0, 0};
    start_piece(head, s, block, scratch);
    sweep_piece(head, s, {piece.query_begin, piece.query_end, block.key_begin, block.key_end, 0, 0}, scratch);
    finish_piece(head, s, block, relative);
  }
  finish_piece(head, s, queries, relative);
}

MAKI_KERNEL(run_phase_on_target);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {
MAKI_EXPORT(run_phase_on_target);

std::int64_t worker_scratch(const AttentionShape& shape) {
  return backward_scratch(shape.head_size) + (shape.relative ? relative_scratch(shape.head_size) : 0);
}

// Calls run(head, panel, worker, query_piece, key_piece, phase) for the phases of all pieces of all heads. Heads that
// share their keys and values finish one after the other, because they add to the same gradients.
template <class Run>
void run_pieces(const BackwardPlan& plan, const AttentionShape& shape, const Run& run) {
  const std::int64_t n = plan.pieces, share = shape.heads_per_kv_head(), row_work = shape.head_size + 8;
  for (std::int64_t first = 0; first < plan.heads; first += plan.group) {
    const std::int64_t end = std::min(first + plan.group, plan.heads), tasks = (end - first) * n;
    parallel_for(tasks, plan.edge * row_work, [&](std::int64_t i, std::int64_t worker) {
      run(first + i / n, i / n, worker, i % n, i % n, BackwardPhase::start);
    });
    for (std::int64_t step = 0; step < plan.steps; ++step) {
      parallel_for(tasks, plan.edge * plan.edge * row_work / 4, [&](std::int64_t i, std::int64_t worker) {
        // Query pieces in the order first, last, second, …: of two neighbours, about one has work in a causal head.
        const std::int64_t at = i % n, piece = at % 2 == 0 ? at / 2 : n - 1 - at / 2;
        const std::int64_t keys = plan.key_piece(step, piece);
        if (keys >= 0) run(first + i / n, i / n, worker, piece, keys, BackwardPhase::sweep);
      });
    }
    const std::int64_t first_kv = first / share, kv_heads = ceil_div(end, share) - first_kv;
    parallel_for(kv_heads * n, share * plan.edge * row_work, [&](std::int64_t i, std::int64_t worker) {
      const std::int64_t kv = first_kv + i / n;
      for (std::int64_t h = std::max(first, kv * share); h < std::min(end, (kv + 1) * share); ++h)
        run(h, h - first, worker, i % n, i % n, BackwardPhase::finish);
    });
  }
}
}  // namespace

template <class T>
std::int64_t attention_backward_scratch(const AttentionShape& shape) {
  const BackwardPlan plan = BackwardPlan::of<T>(shape);
  return plan.group * plan.panel + workers(plan.heads * plan.pieces) * worker_scratch(shape);
}

template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch, const RelativeRows<T>& relative,
                        const RelativeSinks<T>& relative_sinks) {
  const auto kernel = MAKI_DISPATCH(run_phase_on_target, T);
  const BackwardPlan plan = BackwardPlan::of<T>(shape);
  const BackwardOperands<T> operands{q, k, v, y, dy, lse, dq, dk, dv, relative, relative_sinks};
  const std::int64_t t_size = shape.queries, s_size = shape.keys;
  // Runs a phase of one piece of head i, counted over all sequences, with the scratch of `panel` and `worker`.
  const auto run = [&](std::int64_t i, std::int64_t panel, std::int64_t worker, std::int64_t query_piece,
                       std::int64_t key_piece, BackwardPhase phase) {
    const std::int64_t key_begin = key_piece * plan.edge, key_end = std::min(key_begin + plan.edge, s_size);
    const AttentionPiece piece{query_piece * plan.edge,
                               std::min((query_piece + 1) * plan.edge, t_size),
                               key_begin,
                               key_end,
                               key_begin,
                               key_end};
    kernel(backward_head(shape, operands, i), scratch + panel * plan.panel, piece,
           scratch + plan.group * plan.panel + worker * worker_scratch(shape), phase);
  };

  const std::int64_t n = plan.pieces, share = shape.heads_per_kv_head(), kv_heads = plan.heads / share;
  // The sums are the same in both ways of distribution, so the number of threads may decide.
  if (n > 1 || (share > 1 && kv_heads < workers(plan.heads))) return run_pieces(plan, shape, run);
  const std::int64_t work = (t_size * s_size + t_size + s_size) * (shape.head_size + 8) / 4;
  parallel_for(n * kv_heads, share * work, [&](std::int64_t i, std::int64_t worker) {
    for (std::int64_t h = i * share; h < (i + 1) * share; ++h) run(h, worker, worker, 0, 0, BackwardPhase::all);
  });
}

template std::int64_t attention_backward_scratch<float>(const AttentionShape&);
template std::int64_t attention_backward_scratch<double>(const AttentionShape&);
template void attention_backward(const AttentionShape&, HeadRows<const float>, HeadRows<const float>,
                                 HeadRows<const float>, HeadRows<const float>, HeadRows<const float>, const float*,
                                 HeadSink<float>, HeadSink<float>, HeadSink<float>, float*, const RelativeRows<float>&,
                                 const RelativeSinks<float>&);
template void attention_backward(const AttentionShape&, HeadRows<const double>, HeadRows<const double>,
                                 HeadRows<const double>, HeadRows<const double>, HeadRows<const double>, const double*,
                                 HeadSink<double>, HeadSink<double>, HeadSink<double>, double*,
                                 const RelativeRows<double>&, const RelativeSinks<double>&);

}  // namespace maki::kernels
#endif  // HWY_ONCE
