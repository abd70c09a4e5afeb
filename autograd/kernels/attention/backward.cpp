// Backward attention (see attention.h). The forward pass is y = (p ∘ keep) v with p = softmax(scale · q kᵀ) and the
// dropout factors keep; p is recomputed from q, k and the saved lse. With r_t = Σ_c y[t,c] · dy[t,c], which equals
// Σ_s p ∘ dp:
//
//   dp = (dy vᵀ) ∘ keep      ds = p ∘ (dp − r)
//   dv = (p ∘ keep)ᵀ dy      dq = scale · ds k      dk = scale · dsᵀ q
//
// (Dao et al. 2022, arXiv:2205.14135, algorithm 4). Every pair of a query tile and a key block is computed once and
// adds to dq of its tile and to dk and dv of its block, in an order that depends on the shape alone. If there are many
// heads, one thread computes a whole head. If there are few, or very long ones, each head is cut into n × n pieces, and
// step w of n computes in parallel those with query piece + key piece = w mod n, no two of which share a row.
#include <algorithm>
#include <array>
#include <numbers>

#include "autograd/core/parallel.h"
#include "autograd/kernels/attention/attention.h"
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

/// The scratch of a worker; see backward_scratch().
template <class T>
struct BackwardScratch {
  T *p, *ds, *keep;
  Origins<T> k_origins, v_origins;

  /// With dropout the values have no origin, because the weights of a row do not add up to 1.
  BackwardScratch(const AttentionBackwardHead<T>& head, T* at)
      : p(at),
        ds(p + kBackwardTile * kKeyBlock),
        keep(ds + kBackwardTile * kKeyBlock),
        k_origins(head, keep + kKeyBlock),
        v_origins(head, keep + kKeyBlock + 3 * padded(head.head_size)) {
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
  const std::int64_t ld = padded(head.head_size), columns = head.head_size, tile = t / kBackwardTile;
  const T factor = static_cast<T>(head.scale * std::numbers::log2e);
  s.q_finite[tile] =
      pack_head_rows<T>({head.q + t * head.q_stride, head.q_stride}, rows, columns, factor, s.q + t * ld, ld);
  s.dy_finite[tile] =
      pack_head_rows<T>({head.dy + t * head.dy_stride, head.dy_stride}, rows, columns, T{1}, s.dy + t * ld, ld);
  std::fill(s.q + (t + rows) * ld, s.q + (t + kBackwardTile) * ld, T{0});
  std::fill(s.dy + (t + rows) * ld, s.dy + (t + kBackwardTile) * ld, T{0});
  std::fill(s.dq + t * ld, s.dq + (t + kBackwardTile) * ld, T{0});
  for (std::int64_t r = t; r < t + rows; ++r) {
    s.row_sum[r] = dot_minus_origin(s.dy + r * ld, head.y + r * head.y_stride, scratch.v_origins.of_row(r), columns);
  }
}

/// Packs the rows of a piece and sets their gradients to 0.
template <class T>
HWY_INLINE void start_piece(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s,
                            const AttentionPiece& piece, const BackwardScratch<T>& scratch) {
  const std::int64_t ld = padded(head.head_size), columns = head.head_size;
  for (std::int64_t t = piece.query_begin; t < piece.query_end; t += kBackwardTile) {
    start_queries(head, s, t, std::min(kBackwardTile, piece.query_end - t), scratch);
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
    for (std::int64_t t = std::max(piece.query_begin, sees / kBackwardTile * kBackwardTile); t < piece.query_end;
         t += kBackwardTile) {
      run_pair(head,
               Pair<T>{.first_row = t,
                       .rows = std::min(kBackwardTile, piece.query_end - t),
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
                       .q_finite = s.q_finite[t / kBackwardTile] != 0,
                       .dy_finite = s.dy_finite[t / kBackwardTile] != 0,
                       .k_finite = s.k_finite[at / kKeyBlock] != 0,
                       .plain_k = {head.k + at * head.k_stride, head.k_stride, keys.pick},
                       .plain_v = {head.v + at * head.v_stride, head.v_stride, keys.pick},
                       .k_origins = &scratch.k_origins,
                       .v_origins = &scratch.v_origins},
               keys);
    }
  }
}

/// Delivers the gradients of the rows of a piece. q was multiplied by scale · log₂ e as it was packed, so dk only lacks
/// a factor ln 2.
template <class T>
HWY_INLINE void finish_piece(const AttentionBackwardHead<T>& head, const AttentionHeadScratch<T>& s,
                             const AttentionPiece& piece) {
  const std::int64_t ld = padded(head.head_size), t = piece.query_begin;
  for (std::int64_t at = piece.key_begin; at < piece.key_end && head.dk != nullptr; at += kKeyBlock) {
    const KeyBlock keys(head.key_mask, at, head.keys);
    const std::int64_t rows = std::min(kKeyBlock, piece.key_end - at);
    deliver_rows(s.dk + at * ld, ld, &keys, rows, head.head_size, static_cast<T>(std::numbers::ln2), head.add_dk,
                 head.dk + at * head.dk_stride, head.dk_stride);
    deliver_rows(s.dv + at * ld, ld, &keys, rows, head.head_size, T{1}, head.add_dv, head.dv + at * head.dv_stride,
                 head.dv_stride);
  }
  if (head.dq == nullptr || t >= piece.query_end) return;
  deliver_rows<T>(s.dq + t * ld, ld, nullptr, piece.query_end - t, head.head_size, static_cast<T>(head.scale),
                  head.add_dq, head.dq + t * head.dq_stride, head.dq_stride);
}

template <class T>
void run_phase_on_target(const AttentionBackwardHead<T>& head, T* panel, const AttentionPiece& piece, T* worker_scratch,
                         BackwardPhase phase) {
  const AttentionHeadScratch<T> s(panel, head.queries, head.keys, head.head_size);
  if (phase == BackwardPhase::finish) return finish_piece(head, s, piece);
  const BackwardScratch<T> scratch(head, worker_scratch);
  if (phase == BackwardPhase::start) return start_piece(head, s, piece, scratch);
  if (phase == BackwardPhase::sweep) return sweep_piece(head, s, piece, scratch);
  const AttentionPiece queries{piece.query_begin, piece.query_end, 0, 0};
  start_piece(head, s, queries, scratch);
  for (std::int64_t at = piece.key_begin; at < piece.key_end; at += kKeyBlock) {  // all phases while a block is cached
    const AttentionPiece block{0, 0, at, std::min(at + kKeyBlock, piece.key_end)};
    start_piece(head, s, block, scratch);
    sweep_piece(head, s, {piece.query_begin, piece.query_end, block.key_begin, block.key_end}, scratch);
    finish_piece(head, s, block);
  }
  finish_piece(head, s, queries);
}

MAKI_KERNEL(run_phase_on_target);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {
MAKI_EXPORT(run_phase_on_target);

template <class T>
T* head_of(const HeadSink<T>& sink, std::int64_t b, std::int64_t column) {
  return sink.data == nullptr ? nullptr : sink.data + b * sink.batch_stride + column;
}

template <class T>
struct BackwardOperands {
  HeadRows<const T> q, k, v, y, dy;
  const T* lse;
  HeadSink<T> dq, dk, dv;
};

// Head i, counted over the heads of all sequences.
template <class T>
AttentionBackwardHead<T> backward_head(const AttentionShape& shape, const BackwardOperands<T>& o, std::int64_t i) {
  const std::int64_t b = i / shape.heads, h = i % shape.heads, column = h * shape.head_size;
  AttentionBackwardHead<T> head{};
  head.q = o.q.data + b * o.q.batch_stride + column;
  head.q_stride = o.q.row_stride;
  head.k = o.k.data + b * o.k.batch_stride + column;
  head.k_stride = o.k.row_stride;
  head.v = o.v.data + b * o.v.batch_stride + column;
  head.v_stride = o.v.row_stride;
  head.y = o.y.data + b * o.y.batch_stride + column;
  head.y_stride = o.y.row_stride;
  head.dy = o.dy.data + b * o.dy.batch_stride + column;
  head.dy_stride = o.dy.row_stride;
  head.queries = shape.queries;
  head.keys = shape.keys;
  head.head_size = shape.head_size;
  head.last_key = shape.causal ? shape.keys - shape.queries : shape.keys - 1;
  head.last_key_step = shape.causal ? 1 : 0;
  head.key_mask = shape.key_mask == nullptr ? nullptr : shape.key_mask + b * shape.keys;
  head.first_keys = first_keys(head.key_mask, shape.keys);
  head.scale = shape.scale;
  head.dropout = dropout_rule(shape.dropout_stream, shape.dropout);
  head.first_weight = shape.first_weight + static_cast<std::uint64_t>(i * shape.queries * shape.keys);
  head.lse = o.lse + i * shape.queries;
  head.dq = head_of(o.dq, b, column);
  head.dq_stride = o.dq.row_stride;
  head.add_dq = o.dq.add;
  head.dk = head_of(o.dk, b, column);
  head.dk_stride = o.dk.row_stride;
  head.add_dk = o.dk.add;
  head.dv = head_of(o.dv, b, column);
  head.dv_stride = o.dv.row_stride;
  head.add_dv = o.dv.add;
  return head;
}
}  // namespace

template <class T>
std::int64_t attention_backward_scratch(const AttentionShape& shape) {
  const BackwardPlan plan = BackwardPlan::of<T>(shape);
  return plan.group * plan.panel + workers(plan.heads * plan.pieces) * backward_scratch(shape.head_size);
}

template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch) {
  const auto kernel = MAKI_DISPATCH(run_phase_on_target, T);
  const BackwardPlan plan = BackwardPlan::of<T>(shape);
  const BackwardOperands<T> operands{q, k, v, y, dy, lse, dq, dk, dv};
  const std::int64_t t_size = shape.queries, s_size = shape.keys;
  // Runs a phase of one piece of head i, counted over all sequences, with the scratch of `panel` and `worker`.
  const auto run = [&](std::int64_t i, std::int64_t panel, std::int64_t worker, std::int64_t query_piece,
                       std::int64_t key_piece, BackwardPhase phase) {
    const AttentionPiece piece{query_piece * plan.edge, std::min((query_piece + 1) * plan.edge, t_size),
                               key_piece * plan.edge, std::min((key_piece + 1) * plan.edge, s_size)};
    kernel(backward_head(shape, operands, i), scratch + panel * plan.panel, piece,
           scratch + plan.group * plan.panel + worker * backward_scratch(shape.head_size), phase);
  };

  const std::int64_t n = plan.pieces, row_work = shape.head_size + 8;
  if (n <= 1) {
    parallel_for(n * plan.heads, (t_size * s_size + t_size + s_size) * row_work / 4,
                 [&](std::int64_t i, std::int64_t worker) { run(i, worker, worker, 0, 0, BackwardPhase::all); });
    return;
  }
  for (std::int64_t first = 0; first < plan.heads; first += plan.group) {
    const std::int64_t tasks = std::min(plan.group, plan.heads - first) * n;
    const auto run_diagonal = [&](BackwardPhase phase) {
      parallel_for(tasks, plan.edge * row_work, [&](std::int64_t i, std::int64_t worker) {
        run(first + i / n, i / n, worker, i % n, i % n, phase);
      });
    };
    run_diagonal(BackwardPhase::start);
    for (std::int64_t step = 0; step < n; ++step) {
      parallel_for(tasks, plan.edge * plan.edge * row_work / 4, [&](std::int64_t i, std::int64_t worker) {
        // Query pieces in the order first, last, second, …: of two neighbours, about one has work in a causal head.
        const std::int64_t at = i % n, piece = at % 2 == 0 ? at / 2 : n - 1 - at / 2;
        run(first + i / n, i / n, worker, piece, (step + n - piece) % n, BackwardPhase::sweep);
      });
    }
    run_diagonal(BackwardPhase::finish);
  }
}

template std::int64_t attention_backward_scratch<float>(const AttentionShape&);
template std::int64_t attention_backward_scratch<double>(const AttentionShape&);
template void attention_backward(const AttentionShape&, HeadRows<const float>, HeadRows<const float>,
                                 HeadRows<const float>, HeadRows<const float>, HeadRows<const float>, const float*,
                                 HeadSink<float>, HeadSink<float>, HeadSink<float>, float*);
template void attention_backward(const AttentionShape&, HeadRows<const double>, HeadRows<const double>,
                                 HeadRows<const double>, HeadRows<const double>, HeadRows<const double>, const double*,
                                 HeadSink<double>, HeadSink<double>, HeadSink<double>, double*);

}  // namespace maki::kernels
#endif  // HWY_ONCE
