// Backward attention of operands rounded to bfloat16: the pairs of backward.cpp, in the same order, but transposed
// (bf16_panels-inl.h), for a tile of 64 queries and a block of 64 keys:
//
//   sᵀ = k qᵀ · scale · log₂ e     dpᵀ = v dyᵀ     dv += (p ∘ keep)ᵀ dy     dk += dsᵀ q     dqᵀ += kᵀ dsᵀ
//
// q, k and v minus their origins, dy, p ∘ keep and ds are rounded; the sums r of y · dy and all elementwise arithmetic
// are not.
#include <algorithm>
#include <numbers>

#include "autograd/kernels/attention/bf16.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/dispatch.h"
#include "autograd/kernels/simd/flush_subnormals.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention/bf16_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention/bf16_panels-inl.h"
#include "autograd/kernels/attention/phases-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

#if MAKI_HAVE_BF16

/// The scores of a panel and what its queries have in common with all keys.
struct PanelGradient {
  PanelScores s;
  const float *dp, *keep;      // dpᵀ [keys, 32]; dropout factors [keys, 32], kKeyBlock apart, or null
  const float *lse, *row_sum;  // [queries]; [32]
  std::int64_t queries;        // from the first one of the panel on; may exceed 32
};

/// Where gradient_panel() packs the weights and gradients of 32 queries.
template <class Kernel>
struct PackedGradients {
  Panels<typename Kernel::Element> p_rows, ds_rows, ds_columns;
};

/// From sᵀ and dpᵀ: packs p ∘ keep and ds = p ∘ (dp ∘ keep − r), with zeros for what is not seen. Where one key has all
/// the weight (p = 1), ds is 0 except for NaN; see row_gradient() in pair-inl.h.
template <class Kernel>
HWY_NOINLINE void gradient_panel(const PanelGradient& g, const PanelVisibility& seen,
                                 const PackedGradients<Kernel>& to) {
  const LaneFloats d;
  const std::int64_t steps = bf16_padded_size(seen.most);
  for (std::int64_t j = 0; j < steps; j += 4) {
    LaneVec p[4][kVecsPerPanel], ds[4][kVecsPerPanel];
    MAKI_UNROLL for (int v = 0; v < kVecsPerPanel; ++v) {
      const std::int64_t c = v * kLaneCount;
      const LaneVec lse = LoadPartial(d, g.lse + c, g.queries - c), sum = hn::Load(d, g.row_sum + c);
      MAKI_UNROLL for (int i = 0; i < 4; ++i) {
        const LaneVec weight = exp2_of_score(hn::Sub(g.s.at(j + i, c), lse));
        LaneVec dp = hn::Load(d, g.dp + (j + i) * kBf16Panel + c);
        p[i][v] = weight;
        if (g.keep != nullptr) {
          const LaneVec keep = hn::LoadU(d, g.keep + (j + i) * kKeyBlock + c);
          dp = hn::Mul(dp, keep);
          p[i][v] = hn::Mul(weight, keep);
        }
        ds[i][v] = hn::Mul(hn::IfThenZeroElse(hn::Eq(weight, hn::Set(d, 1.0F)), weight), hn::Sub(dp, sum));
        if (j + 4 > seen.least) {
          const auto sees = lanes_that_see(seen, j + i, c);
          p[i][v] = hn::IfThenElseZero(sees, p[i][v]);
          ds[i][v] = hn::IfThenElseZero(sees, ds[i][v]);
        }
      }
    }
    MAKI_UNROLL for (int i = 0; i < 4; ++i) {
      Kernel::store_row(p[i], (j + i) % kBf16Panel, to.p_rows.from(j).data);
      Kernel::store_row(ds[i], (j + i) % kBf16Panel, to.ds_rows.from(j).data);
    }
    MAKI_UNROLL for (int v = 0; v < kVecsPerPanel; ++v) {
      const LaneVec x[4] = {ds[0][v], ds[1][v], ds[2][v], ds[3][v]};
      Kernel::store_steps(x, j, v * kLaneCount, to.ds_columns.data, to.ds_columns.stride);
    }
  }
}

/// One head (see phases-inl.h), with the scratch of its panel and of the worker.
template <class Kernel>
struct Bf16Backward {
  const AttentionBackwardHead<float>& head;
  Bf16HeadScratch s;
  Bf16PairScratch own;
  Origins<float> k_origins, v_origins;
  std::int64_t d, queries, keys;  // padded sizes: of a row in float32, of the panel's rows

  /// With dropout the values have no origin, because the weights of a row do not add up to 1.
  Bf16Backward(const AttentionBackwardHead<float>& of, float* panel, float* worker)
      : head(of),
        s(of.queries, of.keys, of.head_size, panel),
        own(of.head_size, worker),
        k_origins(of, own.k_origins),
        v_origins(of, own.v_origins),
        d(padded(of.head_size)),
        queries(AttentionHeadScratch<float>::rows(of.queries)),
        keys(AttentionHeadScratch<float>::rows(of.keys)) {
    k_origins.compute(head, head.k, head.k_stride);
    if (head.dropout.stream == nullptr) {
      v_origins.compute(head, head.v, head.v_stride);
    } else {
      v_origins.clear(head.head_size);
    }
  }

  void start_distances(std::int64_t /*begin*/, std::int64_t /*end*/) const {}
  void finish_distances(std::int64_t /*begin*/, std::int64_t /*end*/) const {}

  void start_queries(std::int64_t t, std::int64_t rows) const {
    const auto pack = [&](const float* x, std::int64_t stride, float* columns, float* steps) {
      const auto to_columns = panels_in<Kernel>(columns, head.head_size).from(t);
      Kernel::pack_b(head.head_size, rows, x + t * stride, stride, true, to_columns.data, to_columns.stride);
      const auto to_steps = panels_in<Kernel>(steps, queries).from(0, t);
      Kernel::pack_b(rows, head.head_size, x + t * stride, stride, false, to_steps.data, to_steps.stride);
    };
    pack(head.q, head.q_stride, s.q_columns, s.q_steps);
    pack(head.dy, head.dy_stride, s.dy_columns, s.dy_steps);
    for (std::int64_t r = t; r < t + rows; ++r) {
      s.row_sum[r] = dot_minus_origin(head.dy + r * head.dy_stride, head.y + r * head.y_stride, v_origins.of_row(r),
                                      head.head_size);
    }
    std::fill_n(s.dq + t * head.head_size, kBackwardTileQueries * head.head_size, 0.0F);
  }

  void start_keys(const KeyBlock& block, std::int64_t at) const {
    std::fill_n(s.dk + at * d, kKeyBlock * d, 0.0F);
    std::fill_n(s.dv + at * d, kKeyBlock * d, 0.0F);
    if (block.count == 0) return;
    const auto pack = [&](const float* x, std::int64_t stride, const float* origin, float* to) {
      pack_head_rows<float>({x + at * stride, stride, block.pick, origin}, block.count, head.head_size, 1, own.rows, d);
      pack_as_rows<Kernel>(own.rows, d, block.count, head.head_size, panels_in<Kernel>(to, head.head_size).from(at));
    };
    // Early rows do not read these products; if all rows are early, the origin of the last is as good as any.
    pack(head.v, head.v_stride, v_origins.of_row(head.queries - 1), s.v_rows);
    pack(head.k, head.k_stride, k_origins.of_row(head.queries - 1), s.k_rows);
    pack_transposed<Kernel>(own.rows, d, block.count, head.head_size, panels_in<Kernel>(s.kt, keys).from(0, at));
  }

  /// sᵀ and dpᵀ of the panel of queries that begins at t.
  void scores(std::int64_t t, const KeyBlock& block, std::int64_t at, const PanelVisibility& seen) const {
    const std::int64_t columns = head.head_size;
    if (k_origins.first_row_of_seven < std::min(head.queries, t + kBf16Panel)) {
      const auto product = [&](float* rows, float* by, float* to) {
        panel_product<Kernel>(padded(seen.most), kBf16Panel, columns, panels_in<Kernel>(rows, columns).from(at),
                              panels_in<Kernel>(by, columns).from(t), to, kBf16Panel, false);
      };
      product(s.k_rows, s.q_columns, own.s);
      product(s.v_rows, s.dy_columns, own.dp);
    }
    early_columns(k_origins, {head.k + at * head.k_stride, head.k_stride, block.pick}, {head.q, head.q_stride}, t, seen,
                  columns, own.row, own.s);
    early_columns(v_origins, {head.v + at * head.v_stride, head.v_stride, block.pick}, {head.dy, head.dy_stride}, t,
                  seen, columns, own.row, own.dp);
  }

  void pair(std::int64_t t, std::int64_t rows, const KeyBlock& block, std::int64_t at) const {
    const auto p_rows = panels_in<Kernel>(own.p_rows, kBackwardTileQueries);
    const auto ds_rows = panels_in<Kernel>(own.ds_rows, kBackwardTileQueries);
    const auto ds_columns = panels_in<Kernel>(own.ds_columns, kKeyBlock);
    std::int64_t most = 0, sees[kKeyBlock / kBf16Panel] = {};  // the first panel of queries that sees a panel of keys
    for (std::int64_t row = 0; row < rows; row += kBf16Panel) {
      const PanelVisibility seen(head, block, t + row);
      if (seen.most == 0) continue;
      for (; most < seen.most; most += kBf16Panel) sees[most / kBf16Panel] = row;
      scores(t + row, block, at, seen);
      const float* keep = nullptr;
      if (head.dropout.stream != nullptr) keep = dropout_by_key(head, block, t + row, seen, own.keep, own.turned);
      gradient_panel<Kernel>(
          {{own.s, score_factor(head)}, own.dp, keep, head.lse + t + row, s.row_sum + t + row, head.queries - t - row},
          seen, {p_rows.from(0, row), ds_rows.from(0, row), ds_columns.from(row)});
      if (!head.dq) continue;
      panel_product<Kernel>(head.head_size, kBf16Panel, seen.most, panels_in<Kernel>(s.kt, keys).from(0, at),
                            ds_columns.from(row), s.dq + t * head.head_size + row, kBackwardTileQueries, true);
    }
    if (!head.dk) return;
    for (std::int64_t j = 0; j < most; j += kBf16Panel) {
      const std::int64_t row = sees[j / kBf16Panel];
      const auto product = [&](Panels<typename Kernel::Element> weights, float* steps, float* to) {
        panel_product<Kernel>(kBf16Panel, head.head_size, rows - row, weights.from(j, row),
                              panels_in<Kernel>(steps, queries).from(0, t + row), to + (at + j) * d, d, true);
      };
      product(p_rows, s.dy_steps, s.dv);
      product(ds_rows, s.q_steps, s.dk);
    }
  }

  void finish_keys(const KeyBlock& block, std::int64_t at, std::int64_t size) const {
    deliver_rows(s.dk + at * d, d, &block, size, head.head_size, static_cast<float>(head.scale), head.dk.from(at));
    deliver_rows(s.dv + at * d, d, &block, size, head.head_size, 1.0F, head.dv.from(at));
  }

  void finish_queries(std::int64_t t, std::int64_t rows) const {
    const float* const dq = s.dq + t * head.head_size;
    for (std::int64_t c = 0; c < head.head_size; c += kKeyBlock) {
      const std::int64_t columns = std::min(kKeyBlock, head.head_size - c);
      pack_head_transposed<float, kKeyBlock>({dq + c * kBackwardTileQueries, kBackwardTileQueries}, columns, rows,
                                             own.turned);
      deliver_rows<float>(own.turned, kKeyBlock, nullptr, rows, columns, static_cast<float>(head.scale),
                          head.dq.from(t, c));
    }
  }
};

template <class Kernel>
void run_phase_in_bf16(const AttentionBackwardHead<float>& head, float* panel, const AttentionPiece& piece,
                       float* worker_scratch, BackwardPhase phase) {
  [[maybe_unused]] const typename Kernel::ThreadScope scope;
  const FlushSubnormals flush;
  run_phase(head, Bf16Backward<Kernel>(head, panel, worker_scratch), piece, phase);
}

#endif  // MAKI_HAVE_BF16

Bf16BackwardKernel backward_kernel_on([[maybe_unused]] Bf16Unit unit) {
#if MAKI_HAVE_BF16
  if (unit == Bf16Unit::amx) return &run_phase_in_bf16<Bf16Amx>;
  if (unit == Bf16Unit::pairs) return &run_phase_in_bf16<Bf16Pairs>;
#endif
  return nullptr;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(backward_kernel_on);
Bf16BackwardKernel bf16_backward_kernel() {
  require_target();
  return MAKI_ON_TARGET(backward_kernel_on)(bf16_unit());
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
