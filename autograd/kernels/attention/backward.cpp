// Backward attention (see attention.h). The forward pass is y = (p ∘ keep) v with p = softmax(scale · q kᵀ) and the
// dropout factors keep; p is recomputed from q, k and lse, a base-2 logarithm (attention.h). With
// r_t = Σ_c y[t,c] · dy[t,c], which equals Σ_s p ∘ dp:
//
//   dp = (dy vᵀ) ∘ keep      ds = p ∘ (dp − r)
//   dv = (p ∘ keep)ᵀ dy      dq = scale · ds k      dk = scale · dsᵀ q
//
// (Dao et al. 2022, arXiv:2205.14135, algorithm 4). Every pair of a query tile and a key block is computed once and
// adds to dq of its tile and to dk and dv of its block, in an order that depends on the shape alone. If there are many
// heads, one thread computes a whole head, or all heads that share their keys and values. If there are few, or very
// long ones (plan.h), each head is cut into n × n pieces, and step w of n computes in parallel those with query piece +
// key piece = w mod n, no two of which share a row. With a position term, pieces of one step must not share a distance
// either, which holds for those whose sum is exactly w, so there are 2n − 1 steps.
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
#include "autograd/kernels/attention/phases-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// One head (see phases-inl.h), with the scratch of its panel and of the worker (see backward_scratch()).
template <class T>
struct VectorBackward {
  const AttentionBackwardHead<T>& head;
  AttentionHeadScratch<T> s;
  RelativeHeadScratch<T> relative;  // if there is a position term
  T *p, *ds, *keep;
  Origins<T> k_origins, v_origins;
  T* position;  // relative_scratch(), if there is a position term
  std::int64_t ld;

  /// With dropout the values have no origin, because the weights of a row do not add up to 1.
  VectorBackward(const AttentionBackwardHead<T>& of, T* panel, T* worker)
      : head(of),
        s(panel, of.queries, of.keys, of.head_size),
        relative(panel + AttentionHeadScratch<T>::size(of.queries, of.keys, of.head_size), of.queries, of.keys,
                 of.head_size),
        p(worker),
        ds(p + kBackwardTileQueries * kKeyBlock),
        keep(ds + kBackwardTileQueries * kKeyBlock),
        k_origins(of, keep + kKeyBlock),
        v_origins(of, keep + kKeyBlock + 3 * padded(of.head_size)),
        position(worker + backward_scratch(of.head_size)),
        ld(padded(of.head_size)) {
    k_origins.compute(head, head.k, head.k_stride);
    if (head.dropout.stream == nullptr) {
      v_origins.compute(head, head.v, head.v_stride);
    } else {
      v_origins.clear(head.head_size);
    }
  }

  void start_distances(std::int64_t begin, std::int64_t end) const {
    if (head.distances) start_head_distances(head, relative, begin, end);
  }

  /// Packs q and dy of a tile, computes r, and sets dq to 0.
  void start_queries(std::int64_t t, std::int64_t rows) const {
    const std::int64_t columns = head.head_size, tile = t / kBackwardTileQueries;
    const T factor = static_cast<T>(head.scale * std::numbers::log2e);
    const auto pack_queries = [&](const T* origin, T* to, T* dq) {
      const PackSource<T> from{head.q + t * head.q_stride, head.q_stride, nullptr, origin, head.rounds_operands};
      const bool finite = pack_head_rows(from, rows, columns, factor, to + t * ld, ld);
      std::fill(to + (t + rows) * ld, to + (t + kBackwardTileQueries) * ld, T{0});
      std::fill(dq + t * ld, dq + (t + kBackwardTileQueries) * ld, T{0});
      return finite;
    };
    bool finite = pack_queries(head.distances.minus_u, s.q, s.dq);
    if (head.distances) finite = pack_queries(head.distances.minus_v, relative.q, relative.dq) && finite;
    s.q_finite[tile] = finite;
    const PackSource<T> dy{head.dy + t * head.dy_stride, head.dy_stride, nullptr, nullptr, head.rounds_operands};
    s.dy_finite[tile] = pack_head_rows(dy, rows, columns, T{1}, s.dy + t * ld, ld);
    std::fill(s.dy + (t + rows) * ld, s.dy + (t + kBackwardTileQueries) * ld, T{0});
    for (std::int64_t row = t; row < t + rows; ++row) {
      s.row_sum[row] = dot_minus_origin(head.dy + row * head.dy_stride, head.y + row * head.y_stride,
                                        v_origins.of_row(row), columns);
    }
  }

  void start_keys(const KeyBlock& keys, std::int64_t at) const {
    const std::int64_t columns = head.head_size;
    std::fill(s.dk + at * ld, s.dk + (at + kKeyBlock) * ld, T{0});
    std::fill(s.dv + at * ld, s.dv + (at + kKeyBlock) * ld, T{0});
    if (k_origins.first_row_of_seven == head.queries)
      return;  // all rows are early rows (attention.h), which read the keys in place
    const PackSource<T> k{head.k + at * head.k_stride, head.k_stride, keys.pick, k_origins.of_seven,
                          head.rounds_operands};
    const PackSource<T> v{head.v + at * head.v_stride, head.v_stride, keys.pick, v_origins.of_seven,
                          head.rounds_operands};
    s.k_finite[at / kKeyBlock] = pack_head_rows(k, keys.count, columns, T{1}, s.k + at * ld, ld);
    pack_head_transposed<T>({s.k + at * ld, ld}, keys.count, columns, s.kt + at * ld);
    pack_head_transposed(v, keys.count, columns, s.vt + at * ld);
  }

  void pair(std::int64_t t, std::int64_t rows, const KeyBlock& keys, std::int64_t at) const {
    const bool q_finite = s.q_finite[t / kBackwardTileQueries] != 0;
    run_pair(head,
             Pair<T>{.first_row = t,
                     .rows = rows,
                     .early = std::max<std::int64_t>(k_origins.first_row_of_seven - t, 0),
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
                     .p = p,
                     .ds = ds,
                     .keep = keep,
                     .q_finite = q_finite,
                     .dy_finite = s.dy_finite[t / kBackwardTileQueries] != 0,
                     .k_finite = s.k_finite[at / kKeyBlock] != 0,
                     .plain_k = {head.k + at * head.k_stride, head.k_stride, keys.pick},
                     .plain_v = {head.v + at * head.v_stride, head.v_stride, keys.pick},
                     .k_origins = &k_origins,
                     .v_origins = &v_origins,
                     .distances = head.distances ? pair_distances(head, relative, position, t, rows, keys, q_finite)
                                                 : PairDistances<T>{}},
             keys);
  }

  /// q was multiplied by scale · log₂ e as it was packed, so dk only lacks a factor ln 2.
  void finish_keys(const KeyBlock& keys, std::int64_t at, std::int64_t size) const {
    deliver_rows(s.dk + at * ld, ld, &keys, size, head.head_size, static_cast<T>(std::numbers::ln2), head.dk.from(at));
    deliver_rows(s.dv + at * ld, ld, &keys, size, head.head_size, T{1}, head.dv.from(at));
  }

  /// The rows of head.dr stand in descending order of distance, hence the negative stride.
  void finish_distances(std::int64_t begin, std::int64_t end) const {
    if (!head.distances || begin >= end) return;
    deliver_rows<T>(relative.dr + begin * ld, ld, nullptr, end - begin, head.head_size,
                    static_cast<T>(std::numbers::ln2),
                    {head.dr.data - begin * head.dr.stride, -head.dr.stride, head.dr.by});
  }

  void finish_queries(std::int64_t t, std::int64_t rows) const {
    const T factor = static_cast<T>(head.scale);
    deliver_rows<T>(s.dq + t * ld, ld, nullptr, rows, head.head_size, factor, head.dq.from(t));
    if (!head.distances) return;
    deliver_rows<T>(relative.dq + t * ld, ld, nullptr, rows, head.head_size, factor, head.position_dq.from(t));
  }
};

template <class T>
void run_phase_on_target(const AttentionBackwardHead<T>& head, T* panel, const AttentionPiece& piece, T* worker_scratch,
                         BackwardPhase phase) {
  run_phase(head, VectorBackward<T>(head, panel, worker_scratch), piece, phase);
}

MAKI_KERNEL(run_phase_on_target);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {
MAKI_EXPORT(run_phase_on_target);

template <class T>
std::int64_t worker_scratch(const AttentionShape& shape) {
  if (runs_in_bf16<T>(shape)) return Bf16PairScratch(shape.head_size, nullptr).size;
  return backward_scratch(shape.head_size) + (shape.relative ? relative_scratch(shape.head_size) : 0);
}

template <class T>
auto head_kernel(const AttentionShape& shape) {
  if constexpr (std::is_same_v<T, float>) {
    if (runs_in_bf16<T>(shape)) return bf16_backward_kernel();
  }
  return MAKI_DISPATCH(run_phase_on_target, T);
}

// Rough estimates for parallel_for(), in elementary operations. A row costs one for each column, and those of an
// exponential. A pair of a query and a key costs a quarter of that: the multiply-adds of its products run many times as
// fast as elementary operations.
constexpr std::int64_t kExponentialWork = 8, kPairsPerRow = 4;
std::int64_t row_work_of(const AttentionShape& shape) { return shape.head_size + kExponentialWork; }

// Calls run(head, panel, worker, query_piece, key_piece, phase) for the phases of all pieces of all heads. Heads that
// share their keys and values finish one after the other, because they add to the same gradients.
template <class Run>
void run_pieces(const BackwardPlan& plan, const AttentionShape& shape, const Run& run) {
  const std::int64_t n = plan.pieces, share = shape.heads_per_kv_head(), row_work = row_work_of(shape);
  for (std::int64_t first = 0; first < plan.heads; first += plan.group) {
    const std::int64_t end = std::min(first + plan.group, plan.heads), tasks = (end - first) * n;
    parallel_for(tasks, plan.edge * row_work, [&](std::int64_t i, std::int64_t worker) {
      run(first + i / n, i / n, worker, i % n, i % n, BackwardPhase::start);
    });
    for (std::int64_t step = 0; step < plan.steps; ++step) {
      parallel_for(tasks, plan.edge * plan.edge * row_work / kPairsPerRow, [&](std::int64_t i, std::int64_t worker) {
        // Query pieces in the order first, last, second, …, so that about one of two neighbouring tasks has work in a
        // causal head.
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
  return plan.group * plan.panel + workers(plan.heads * plan.pieces) * worker_scratch<T>(shape);
}

template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch, const RelativeRows<T>& relative,
                        const RelativeSinks<T>& relative_sinks) {
  const auto kernel = head_kernel<T>(shape);
  const std::int64_t own_scratch = worker_scratch<T>(shape);
  const BackwardPlan plan = BackwardPlan::of<T>(shape);
  const BackwardOperands<T> operands{{q, k, v, relative}, y, dy, lse, dq, dk, dv, relative_sinks};
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
           scratch + plan.group * plan.panel + worker * own_scratch, phase);
  };

  const std::int64_t n = plan.pieces, share = shape.heads_per_kv_head(), kv_heads = plan.heads / share;
  // Both ways add in the same order, so the number of threads may choose between them.
  if (n > 1 || (share > 1 && kv_heads < workers(plan.heads))) return run_pieces(plan, shape, run);
  const std::int64_t work = (t_size * s_size + t_size + s_size) * row_work_of(shape) / kPairsPerRow;
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
