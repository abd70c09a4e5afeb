// Linear attention as scans: which rows of which operand they read, and where their results go. The formulas are in
// linear_attention.h.
#include "autograd/kernels/linear_attention/linear_attention.h"

#include "autograd/kernels/linear_attention/run_scans.h"

namespace maki::kernels {
namespace {

// Which scan of a head: y of forward, or one of the gradients.
enum class Role : std::uint8_t { y, dq, dk, dv };

// All that the scans of one call read; dy and `gradients` only in backward.
template <class T>
struct Operands {
  const LinearAttentionShape& shape;
  HeadRows<const T> q, k, v, dy;
  T* to_inverse;                    // [B, H, T], which forward writes
  const T *inverse, *denominators;  // [B, H, T]: the same in backward; dd, the gradients of the denominators
};

inline constexpr std::int64_t kForwards = 1, kBackwards = -1;

// The rows of head i of an operand with `rows` rows of `cols` columns per head, in either direction of time.
template <class T>
ScanRows<T> head_rows(const LinearAttentionShape& shape, HeadRows<const T> x, std::int64_t i, std::int64_t rows,
                      std::int64_t cols, std::int64_t direction) {
  const T* const first = x.data + i / shape.heads * x.batch_stride + i % shape.heads * cols;
  return {.data = direction == kForwards || rows == 0 ? first : first + (rows - 1) * x.row_stride,
          .stride = direction * x.row_stride,
          .cols = cols};
}
template <class T>
PerRow<T> head_numbers(const LinearAttentionShape& shape, const T* x, std::int64_t i, std::int64_t direction) {
  const T* const first = x + i * shape.queries;
  return {.data = direction == kForwards || shape.queries == 0 ? first : first + shape.queries - 1, .step = direction};
}

// Longer chunks than the sequence would only take memory.
std::int64_t chunk_of(const LinearAttentionShape& shape) {
  return std::min(shape.chunk == 0 ? kDefaultChunkRows : shape.chunk,
                  std::max({shape.queries, shape.keys, std::int64_t{1}}));
}

// The operands of a scan: a of T or S rows, b and c of the others.
template <class T>
LinearScan<T> scan_of(const Operands<T>& o, Role role, std::int64_t i) {
  static constexpr T kOne = 1;
  const LinearAttentionShape& s = o.shape;
  const std::int64_t time = role == Role::dk || role == Role::dv ? kBackwards : kForwards;
  ScanRows<T> q = head_rows(s, o.q, i, s.queries, s.features, time), k = head_rows(s, o.k, i, s.keys, s.features, time),
              v = head_rows(s, o.v, i, s.keys, s.head_size, time), dn;
  LinearScan<T> scan;
  scan.causal = s.causal;
  scan.queries = role == Role::dk || role == Role::dv ? s.keys : s.queries;
  scan.keys = role == Role::dk || role == Role::dv ? s.queries : s.keys;
  scan.chunk = chunk_of(s);
  if (role != Role::y) {
    dn = head_rows(s, o.dy, i, s.queries, s.head_size, time);
    dn.scale = head_numbers(s, o.inverse, i, time);
  }
  if (role == Role::dq || role == Role::dk) {  // the inner product with one column more is dn·v + dd · 1
    dn.tail = head_numbers(s, o.denominators, i, time);
    v.tail = {.data = &kOne, .step = 0};
  }
  const auto assign = [&](const ScanRows<T>& a, const ScanRows<T>& b, const ScanRows<T>& c) {
    scan.a = a;
    scan.b = b;
    scan.c = c;
  };
  if (role == Role::y) {
    assign(q, k, v);
    scan.inverse = o.to_inverse + i * s.queries;
    scan.floor = static_cast<T>(s.floor);
  } else if (role == Role::dq) {
    assign(dn, v, k);
  } else if (role == Role::dk) {
    assign(v, dn, q);
  } else {
    assign(k, q, dn);
  }
  return scan;
}

// Points the scan of head i to its rows of the output.
template <class T>
void set_output(const LinearAttentionShape& shape, HeadSink<T> out, Role role, std::int64_t i, LinearScan<T>& scan) {
  const std::int64_t cols = scan.c.cols;
  const bool backwards = role == Role::dk || role == Role::dv;
  T* const first = out.data + i / shape.heads * out.batch_stride + i % shape.heads * cols;
  scan.out = backwards && scan.queries > 0 ? first + (scan.queries - 1) * out.row_stride : first;
  scan.out_stride = backwards ? -out.row_stride : out.row_stride;
  scan.add = out.add;
}

ScanPlan plan_of(const LinearAttentionShape& s, Role role) {
  const bool inner = role == Role::dq || role == Role::dk;  // inner products of rows of v
  const ScanSize size(chunk_of(s), inner ? s.head_size + 1 : s.features, inner ? s.features : s.head_size);
  const bool swapped = role == Role::dk || role == Role::dv;
  return ScanPlan(s.batch * s.heads, s.causal, swapped ? s.keys : s.queries, swapped ? s.queries : s.keys, size);
}

template <class T>
void run(const Operands<T>& o, Role role, HeadSink<T> out, const T* from, T* last, T* scratch) {
  if (out.data == nullptr) return;
  const auto make = [&](std::int64_t i) {
    LinearScan<T> scan = scan_of(o, role, i);
    set_output(o.shape, out, role, i, scan);
    return scan;
  };
  run_scans<T>(plan_of(o.shape, role), make, from, last, scratch);
}

// Copies the states of all heads between [F, D] with [F] and the layout of scratch.
template <class T, class Copy>
void for_each_state(const LinearAttentionShape& shape, const ScanSize& size, const Copy& copy) {
  parallel_for(shape.batch * shape.heads, size.state(), [&](std::int64_t i) {
    for (std::int64_t f = 0; f < shape.features; ++f) {
      copy((i * shape.features + f) * shape.head_size, i * size.state() + f * size.width, shape.head_size, true);
    }
    copy(i * shape.features, i * size.state() + size.depth * size.width, shape.features, false);
  });
}

}  // namespace

template <class T>
std::int64_t linear_attention_forward_scratch(const LinearAttentionShape& shape) {
  const ScanPlan plan = plan_of(shape, Role::y);
  return plan.scratch() + (shape.carries ? 2 * plan.heads * plan.size.state() : 0);
}

template <class T>
std::int64_t linear_attention_backward_scratch(const LinearAttentionShape& shape) {
  std::int64_t most = 0;
  for (const Role role : {Role::dq, Role::dk, Role::dv}) most = std::max(most, plan_of(shape, role).scratch());
  return most + shape.batch * shape.heads * shape.queries;
}

template <class T>
void linear_attention_forward(const LinearAttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k,
                              HeadRows<const T> v, HeadRows<T> y, T* inverse, const LinearAttentionEnds<T>& ends,
                              T* scratch) {
  const ScanSize size = plan_of(shape, Role::y).size;
  const std::int64_t states = shape.batch * shape.heads * size.state();
  T *from = nullptr, *last = nullptr;
  if (ends.from_sums != nullptr) {
    from = scratch;
    std::fill(from, from + states, T{0});
    for_each_state<T>(shape, size, [&](std::int64_t dense, std::int64_t padded_at, std::int64_t n, bool sums) {
      std::copy_n((sums ? ends.from_sums : ends.from_norms) + dense, n, from + padded_at);
    });
  }
  if (ends.to_sums != nullptr) last = scratch + states;
  const Operands<T> operands{shape, q, k, v, {}, inverse, nullptr, nullptr};
  run<T>(operands, Role::y, {y.data, y.row_stride, y.batch_stride, false}, from, last,
         scratch + (shape.carries ? 2 * states : 0));
  if (last == nullptr) return;
  for_each_state<T>(shape, size, [&](std::int64_t dense, std::int64_t padded_at, std::int64_t n, bool sums) {
    std::copy_n(last + padded_at, n, (sums ? ends.to_sums : ends.to_norms) + dense);
  });
}

template <class T>
void linear_attention_backward(const LinearAttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k,
                               HeadRows<const T> v, HeadRows<const T> y, HeadRows<const T> dy, const T* inverse,
                               HeadSink<T> dq, HeadSink<T> dk, HeadSink<T> dv, T* scratch) {
  T* const dd = scratch;
  const auto kernel = scan_kernels<T>().denominator_gradients;
  parallel_for(shape.batch * shape.heads, shape.queries * (shape.head_size + 8), [&](std::int64_t i) {
    const auto head = [&](HeadRows<const T> x) {
      x.data += i / shape.heads * x.batch_stride + i % shape.heads * shape.head_size;
      return x;
    };
    kernel(shape.queries, shape.head_size, head(y), head(dy), inverse + i * shape.queries, static_cast<T>(shape.floor),
           dd + i * shape.queries);
  });
  T* const rest = scratch + shape.batch * shape.heads * shape.queries;
  const Operands<T> operands{shape, q, k, v, dy, nullptr, inverse, dd};
  run<T>(operands, Role::dq, dq, nullptr, nullptr, rest);
  run<T>(operands, Role::dk, dk, nullptr, nullptr, rest);
  run<T>(operands, Role::dv, dv, nullptr, nullptr, rest);
}

template std::int64_t linear_attention_forward_scratch<float>(const LinearAttentionShape&);
template std::int64_t linear_attention_forward_scratch<double>(const LinearAttentionShape&);
template std::int64_t linear_attention_backward_scratch<float>(const LinearAttentionShape&);
template std::int64_t linear_attention_backward_scratch<double>(const LinearAttentionShape&);
template void linear_attention_forward(const LinearAttentionShape&, HeadRows<const float>, HeadRows<const float>,
                                       HeadRows<const float>, HeadRows<float>, float*,
                                       const LinearAttentionEnds<float>&, float*);
template void linear_attention_forward(const LinearAttentionShape&, HeadRows<const double>, HeadRows<const double>,
                                       HeadRows<const double>, HeadRows<double>, double*,
                                       const LinearAttentionEnds<double>&, double*);
template void linear_attention_backward(const LinearAttentionShape&, HeadRows<const float>, HeadRows<const float>,
                                        HeadRows<const float>, HeadRows<const float>, HeadRows<const float>,
                                        const float*, HeadSink<float>, HeadSink<float>, HeadSink<float>, float*);
template void linear_attention_backward(const LinearAttentionShape&, HeadRows<const double>, HeadRows<const double>,
                                        HeadRows<const double>, HeadRows<const double>, HeadRows<const double>,
                                        const double*, HeadSink<double>, HeadSink<double>, HeadSink<double>, double*);

}  // namespace maki::kernels
