// Attention, backward: see attention.h. Weights are recomputed from q, k and the saved lse. With p the weights, keep
// the dropout factors, r_t = Σ_c y[t,c] · dy[t,c] (which is Σ_s p ∘ dp):
//
//   dp = (dy vᵀ) ∘ keep      ds = p ∘ (dp − r)
//   dv = (p ∘ keep)ᵀ dy      dq = scale · ds k      dk = scale · dsᵀ q
//
// Dao et al. 2022, arXiv:2205.14135, algorithm 4. One ordered sweep a head: key blocks outside, query tiles inside, so
// every product is computed once, dk and dv of a block are finished in scratch, and dq collects block after block.
// Heads are what threads share out.
#include <algorithm>
#include <array>
#include <numbers>

#include "autograd/core/parallel.h"
#include "autograd/kernels/attention.h"
#include "autograd/kernels/attention_tile.h"
#include "autograd/kernels/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// The scratch of a head, d = padded(head_size), t = padded(queries).
template <class T>
struct BackwardScratch {
  T *q, *dy, *dq, *row_sum;  // [t, d] three times, [t]
  T *kt, *vt, *k, *dk, *dv;  // [d, kKeyBlock] twice, [kKeyBlock, d] three times
  T *p, *ds, *keep;          // [kBackwardTile, kKeyBlock] twice, [kKeyBlock]
  bool q_finite = true, dy_finite = true, k_finite = true;

  BackwardScratch(T* at, std::int64_t t, std::int64_t d)
      : q(at),
        dy(q + t * d),
        dq(dy + t * d),
        row_sum(dq + t * d),
        kt(row_sum + t),
        vt(kt + kKeyBlock * d),
        k(vt + kKeyBlock * d),
        dk(k + kKeyBlock * d),
        dv(dk + kKeyBlock * d),
        p(dv + kKeyBlock * d),
        ds(p + kBackwardTile * kKeyBlock),
        keep(ds + kBackwardTile * kKeyBlock) {}
};

/// s → p ∘ keep and dp → ds in place, of one row over its `visible` keys; 0 from there to `width`.
template <class T>
HWY_INLINE void RowGradient(T* s, T* ds, const T* keep, std::int64_t visible, std::int64_t width, T lse, T row_sum) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kN = Lanes<T>();
  const auto shift = hn::Set(d, lse), sum = hn::Set(d, row_sum);
  for (std::int64_t j = 0; j < width; j += kN) {
    const auto seen = hn::FirstN(d, static_cast<std::size_t>(std::clamp<std::int64_t>(visible - j, 0, kN)));
    const auto p = Exp2Negative(d, hn::Sub(hn::LoadU(d, s + j), shift));
    auto dp = hn::LoadU(d, ds + j), kept = p;
    if (keep != nullptr) {
      dp = hn::Mul(dp, hn::LoadU(d, keep + j));
      kept = hn::Mul(p, hn::LoadU(d, keep + j));
    }
    hn::StoreU(hn::IfThenElseZero(seen, kept), d, s + j);
    hn::StoreU(hn::IfThenElseZero(seen, hn::Mul(p, hn::Sub(dp, sum))), d, ds + j);
  }
}

/// Weights and their gradients for kTileRows rows from `row` on, and what they add to dq. `local`: row in the tile.
template <class T>
HWY_NOINLINE void BackwardGroup(const AttentionBackwardTile<T>& head, const BackwardScratch<T>& s, std::int64_t row,
                                std::int64_t local, const KeyBlock& keys, const std::int64_t* visible) {
  constexpr std::int64_t kN = Lanes<T>(), kStep = std::max<std::int64_t>(kN, kTileRows);
  // Weights are written for whole register tiles of keys: AcrossRows reads them so.
  const std::int64_t d = padded(head.head_size), most = visible[kTileRows - 1];
  const std::int64_t width = (most + kStep - 1) / kStep * kStep;
  const std::int64_t columns = (head.head_size + kN - 1) / kN * kN;
  T* const p = s.p + local * kKeyBlock;
  T* const ds = s.ds + local * kKeyBlock;
  Product<kTileRows, false, Store::set>(width, head.head_size, s.q + row * d, d, s.kt, kKeyBlock, p, kKeyBlock);
  Product<kTileRows, false, Store::set>(width, head.head_size, s.dy + row * d, d, s.vt, kKeyBlock, ds, kKeyBlock);
  for (int r = 0; r < kTileRows; ++r) {
    const std::int64_t t = std::min(row + r, head.queries - 1);
    const T* keep = nullptr;
    if (head.dropout.stream != nullptr) {
      DropoutRow(head.dropout, head.first_weight + static_cast<std::uint64_t>(t * head.keys), keys, visible[r], s.keep);
      keep = s.keep;
    }
    RowGradient(p + r * kKeyBlock, ds + r * kKeyBlock, keep, visible[r], width, head.lse[t], s.row_sum[t]);
  }
  if (head.dq == nullptr) return;
  if (s.k_finite || visible[0] == most) {
    Product<kTileRows, false, Store::add>(columns, most, ds, kKeyBlock, s.k, d, s.dq + row * d, d);
    return;
  }
  for (int r = 0; r < kTileRows; ++r) {  // NaN among keys that only some of the rows see
    Product<1, false, Store::add>(columns, visible[r], ds + r * kKeyBlock, kKeyBlock, s.k, d, s.dq + (row + r) * d, d);
  }
}

/// to [keys, d] += weightsᵀ · from over `rows` rows of a tile, each key from the first row that sees it. from_row
/// [keys]: that row.
template <class T>
HWY_NOINLINE void AcrossRows(const T* weights, const T* from, std::int64_t rows, std::int64_t keys,
                             std::int64_t columns, std::int64_t d, const std::int64_t* from_row, bool finite, T* to) {
  for (std::int64_t j = 0; j < keys; j += kTileRows) {
    const std::int64_t last = std::min(j + kTileRows, keys) - 1, start = from_row[j];
    if (start >= rows) return;
    if (finite || from_row[last] == start) {
      Product<kTileRows, true, Store::add>(columns, rows - start, weights + start * kKeyBlock + j, kKeyBlock,
                                           from + start * d, d, to + j * d, d);
      continue;
    }
    for (std::int64_t i = j; i <= last && from_row[i] < rows; ++i) {  // NaN in a row that sees only some of the keys
      Product<1, true, Store::add>(columns, rows - from_row[i], weights + from_row[i] * kKeyBlock + i, kKeyBlock,
                                   from + from_row[i] * d, d, to + i * d, d);
    }
  }
}

/// One tile of queries, from row `first` on, against the packed block of keys.
template <class T>
HWY_INLINE void BackwardPair(const AttentionBackwardTile<T>& head, const BackwardScratch<T>& s, std::int64_t first,
                             const KeyBlock& keys) {
  constexpr std::int64_t kN = Lanes<T>();
  const std::int64_t d = padded(head.head_size), rows = std::min(kBackwardTile, head.queries - first);
  const std::int64_t columns = (head.head_size + kN - 1) / kN * kN;
  std::int64_t from_row[kKeyBlock], seen = 0;  // from_row[j]: the first row of the tile that sees key j
  for (std::int64_t local = 0; local < rows; local += kTileRows) {
    std::int64_t visible[kTileRows];
    for (int r = 0; r < kTileRows; ++r) {
      const std::int64_t t = std::min(first + local + r, head.queries - 1);
      visible[r] = keys.visible(head.last_key + t * head.last_key_step);
      while (seen < visible[r]) from_row[seen++] = std::min(local + r, rows);
    }
    if (visible[kTileRows - 1] == 0) continue;
    BackwardGroup(head, s, first + local, local, keys, visible);
  }
  if (head.dk == nullptr || seen == 0) return;
  AcrossRows(s.p, s.dy + first * d, rows, seen, columns, d, from_row, s.dy_finite, s.dv);
  AcrossRows(s.ds, s.q + first * d, rows, seen, columns, d, from_row, s.q_finite, s.dk);
}

/// to [cols] (+)= factor · from.
template <bool kAdd, class T>
HWY_INLINE void DeliverRow(const T* from, std::int64_t cols, T factor, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kN = Lanes<T>();
  const auto times = hn::Set(d, factor);
  std::int64_t c = 0;
  for (; c + kN <= cols; c += kN) {
    auto x = hn::Mul(hn::LoadU(d, from + c), times);
    if constexpr (kAdd) x = hn::Add(hn::LoadU(d, to + c), x);
    hn::StoreU(x, d, to + c);
  }
  for (; c < cols; ++c) to[c] = (kAdd ? to[c] : T{0}) + from[c] * factor;
}

/// to [rows, cols] (+)= factor · from [rows, ld]; with a mask, the rows of keys that it hides are zeros.
template <class T>
HWY_NOINLINE void Deliver(const T* from, std::int64_t ld, const KeyBlock* keys, std::int64_t rows, std::int64_t cols,
                          T factor, bool add, T* to, std::int64_t stride) {
  for (std::int64_t r = 0, next = 0; r < rows; ++r) {
    T* const row = to + r * stride;
    if (keys != nullptr && keys->pick != nullptr && (next == keys->count || keys->pick[next] != r)) {
      if (!add) std::fill(row, row + cols, T{0});
    } else if (add) {
      DeliverRow<true>(from + next++ * ld, cols, factor, row);
    } else {
      DeliverRow<false>(from + next++ * ld, cols, factor, row);
    }
  }
}

/// Copies of q and dy in scratch, and r_t; dq starts at 0.
template <class T>
HWY_INLINE void BackwardStart(const AttentionBackwardTile<T>& head, BackwardScratch<T>& s) {
  const hn::ScalableTag<T> d;
  const std::int64_t ld = padded(head.head_size), rows = padded(head.queries);
  const T factor = static_cast<T>(head.scale * std::numbers::log2e);
  s.q_finite = PackRows(head.q, head.q_stride, nullptr, head.queries, head.head_size, factor, s.q, ld);
  s.dy_finite = PackRows(head.dy, head.dy_stride, nullptr, head.queries, head.head_size, T{1}, s.dy, ld);
  std::fill(s.q + head.queries * ld, s.q + rows * ld, T{0});
  std::fill(s.dy + head.queries * ld, s.dy + rows * ld, T{0});
  std::fill(s.dq, s.dq + rows * ld, T{0});
  for (std::int64_t t = 0; t < head.queries; ++t) {
    auto sum = hn::Zero(d);
    for (std::int64_t c = 0; c < head.head_size; c += Lanes<T>()) {
      const auto y = LoadFirst(d, head.y + t * head.y_stride + c, head.head_size - c);
      sum = hn::MulAdd(y, hn::LoadU(d, s.dy + t * ld + c), sum);
    }
    s.row_sum[t] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

template <class T>
HWY_INLINE void BackwardHead(const AttentionBackwardTile<T>& head, T* scratch) {
  const std::int64_t d = padded(head.head_size);
  BackwardScratch<T> s(scratch, padded(head.queries), d);
  BackwardStart(head, s);
  for (std::int64_t first = 0; first < head.keys; first += kKeyBlock) {
    const KeyBlock keys(head.key_mask, first, head.keys);
    const T* const k = head.k + first * head.k_stride;
    s.k_finite = PackRows(k, head.k_stride, keys.pick, keys.count, head.head_size, T{1}, s.k, d);
    PackTransposed(s.k, d, nullptr, keys.count, head.head_size, s.kt);
    PackTransposed(head.v + first * head.v_stride, head.v_stride, keys.pick, keys.count, head.head_size, s.vt);
    std::fill(s.dk, s.dk + kKeyBlock * d, T{0});
    std::fill(s.dv, s.dv + kKeyBlock * d, T{0});
    const std::int64_t begin = head.last_key_step == 0 ? 0 : std::max<std::int64_t>(first - head.last_key, 0);
    for (std::int64_t t = begin / kBackwardTile * kBackwardTile; t < head.queries && keys.count > 0;
         t += kBackwardTile) {
      BackwardPair(head, s, t, keys);
    }
    if (head.dk == nullptr) continue;
    const std::int64_t extent = std::min(kKeyBlock, head.keys - first);
    Deliver(s.dk, d, &keys, extent, head.head_size, static_cast<T>(std::numbers::ln2), head.add_dk,
            head.dk + first * head.dk_stride, head.dk_stride);
    Deliver(s.dv, d, &keys, extent, head.head_size, T{1}, head.add_dv, head.dv + first * head.dv_stride,
            head.dv_stride);
  }
  if (head.dq == nullptr) return;
  Deliver<T>(s.dq, d, nullptr, head.queries, head.head_size, static_cast<T>(head.scale), head.add_dq, head.dq,
             head.dq_stride);
}

void attention_backward_head_f32(const AttentionBackwardTile<float>& head, float* scratch) {
  BackwardHead(head, scratch);
}
void attention_backward_head_f64(const AttentionBackwardTile<double>& head, double* scratch) {
  BackwardHead(head, scratch);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {
HWY_EXPORT(attention_backward_head_f32);
HWY_EXPORT(attention_backward_head_f64);

void backward_head(const AttentionBackwardTile<float>& head, float* scratch) {
  HWY_DYNAMIC_DISPATCH(attention_backward_head_f32)(head, scratch);
}
void backward_head(const AttentionBackwardTile<double>& head, double* scratch) {
  HWY_DYNAMIC_DISPATCH(attention_backward_head_f64)(head, scratch);
}

template <class T>
T* head_of(const HeadSink<T>& sink, std::int64_t b, std::int64_t column) {
  return sink.data == nullptr ? nullptr : sink.data + b * sink.batch_stride + column;
}
}  // namespace

template <class T>
std::int64_t attention_backward_scratch(const AttentionShape& shape) {
  return threads() * backward_tile_scratch(shape.queries, shape.head_size);
}

template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch) {
  require_target();
  const std::int64_t t_size = shape.queries, s_size = shape.keys;
  const std::int64_t work = (t_size * s_size + t_size + s_size) * (shape.head_size + 8) / 4;
  parallel_for(shape.batch * shape.heads, work, [&](std::int64_t i) {
    const std::int64_t b = i / shape.heads, h = i % shape.heads, column = h * shape.head_size;
    AttentionBackwardTile<T> head{};
    head.q = q.data + b * q.batch_stride + column, head.q_stride = q.row_stride;
    head.k = k.data + b * k.batch_stride + column, head.k_stride = k.row_stride;
    head.v = v.data + b * v.batch_stride + column, head.v_stride = v.row_stride;
    head.y = y.data + b * y.batch_stride + column, head.y_stride = y.row_stride;
    head.dy = dy.data + b * dy.batch_stride + column, head.dy_stride = dy.row_stride;
    head.queries = t_size, head.keys = s_size, head.head_size = shape.head_size;
    head.last_key = shape.causal ? s_size - t_size : s_size - 1;
    head.last_key_step = shape.causal ? 1 : 0;
    head.key_mask = shape.key_mask == nullptr ? nullptr : shape.key_mask + b * s_size;
    head.scale = shape.scale;
    head.dropout = dropout_rule(shape.dropout_stream, shape.dropout);
    head.first_weight = static_cast<std::uint64_t>(i * t_size * s_size);
    head.lse = lse + i * t_size;
    head.dq = head_of(dq, b, column), head.dq_stride = dq.row_stride, head.add_dq = dq.add;
    head.dk = head_of(dk, b, column), head.dk_stride = dk.row_stride, head.add_dk = dk.add;
    head.dv = head_of(dv, b, column), head.dv_stride = dv.row_stride, head.add_dv = dv.add;
    backward_head(head, scratch + omp_get_thread_num() * backward_tile_scratch(t_size, shape.head_size));
  });
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
