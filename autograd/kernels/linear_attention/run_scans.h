// How many scans of one shape are distributed over threads: each head by one worker or, if there are too few heads, in
// segments (scan.h). The bits are the same either way, so the choice may depend on the number of threads.
#pragma once

#include "autograd/core/parallel.h"
#include "autograd/kernels/linear_attention/linear_attention.h"
#include "autograd/kernels/linear_attention/scan.h"

namespace maki::kernels {

/// The kernels for the SIMD target in use; see scan.cpp.
template <class T>
struct ScanKernels {
  void (*sum_segment)(const LinearScan<T>&, std::int64_t, std::int64_t, T*, T*);
  void (*run_causal)(const LinearScan<T>&, std::int64_t, std::int64_t, const T*, T*, T*);
  void (*run_full)(const LinearScan<T>&, std::int64_t, std::int64_t, const T*, T*);
  void (*add_states)(std::int64_t, const T*, T*);
  void (*denominator_gradients)(std::int64_t, std::int64_t, HeadRows<const T>, HeadRows<const T>, const T*, T, T*);
};
template <class T>
ScanKernels<T> scan_kernels();

/// How `heads` scans of one shape are distributed.
struct ScanPlan {
  std::int64_t heads, segment, query_segments, key_segments;
  bool causal, whole;  // whole: every head by one worker, without segments
  ScanSize size;

  ScanPlan(std::int64_t heads_, bool causal_, std::int64_t queries, std::int64_t keys, const ScanSize& size_)
      : heads(heads_),
        segment(segment_rows(size_.chunk)),
        query_segments(ceil_div(queries, segment)),
        key_segments(ceil_div(keys, segment)),
        causal(causal_),
        size(size_) {
    // The number of threads, at most 2 · heads; 1 inside a parallel region. Segments, which read the rows of b and c
    // twice, are used if there are fewer than two heads per thread.
    const std::int64_t team = workers(2 * heads);
    whole = causal && (key_segments <= 1 || team == 1 || 2 * team <= heads);
  }

  /// Elements of the states of all segments.
  std::int64_t states() const { return whole ? 0 : heads * key_segments * size.state(); }
  std::int64_t scratch() const {
    const std::int64_t tasks = whole ? heads : heads * std::max(query_segments, key_segments);
    return states() + workers(tasks) * size.scratch();
  }
};

/// Runs the scans make(0) … make(heads − 1), all of the shape that the plan was made for. `from` and `last` are the
/// states [heads, state] at both ends, or null; both are null unless the scans are causal. `scratch` has plan.scratch()
/// elements.
template <class T, class Make>
void run_scans(const ScanPlan& plan, const Make& make, const T* from, T* last, T* scratch) {
  const ScanKernels<T> kernels = scan_kernels<T>();
  const std::int64_t state = plan.size.state(), n = plan.key_segments, segment = plan.segment;
  T* const sums = scratch;  // [heads, key segments, state]
  T* const own = scratch + plan.states();
  const auto scratch_of = [&](std::int64_t worker) { return own + worker * plan.size.scratch(); };
  const std::int64_t row_work = plan.size.depth * plan.size.width / 4 + 64;
  const auto at_head = [&](auto* states, std::int64_t i) { return states == nullptr ? nullptr : states + i * state; };
  if (plan.whole) {
    parallel_for(plan.heads, segment * row_work, [&](std::int64_t i, std::int64_t worker) {
      const LinearScan<T> scan = make(i);
      kernels.run_causal(scan, 0, scan.queries, at_head(from, i), at_head(last, i), scratch_of(worker));
    });
    return;
  }
  parallel_for(plan.heads * n, segment * row_work, [&](std::int64_t i, std::int64_t worker) {
    const LinearScan<T> scan = make(i / n);
    const std::int64_t begin = i % n * segment;
    kernels.sum_segment(scan, begin, std::min(begin + segment, scan.keys), sums + i * state, scratch_of(worker));
  });
  // The sum of each segment becomes that of all segments up to it.
  parallel_for(plan.heads, n * state, [&](std::int64_t i) {
    T* const of_head = sums + i * n * state;
    if (from != nullptr && n > 0) kernels.add_states(state, from + i * state, of_head);
    for (std::int64_t s = 1; s < n; ++s) kernels.add_states(state, of_head + (s - 1) * state, of_head + s * state);
  });
  const std::int64_t m = plan.query_segments;
  parallel_for(plan.heads * m, segment * row_work, [&](std::int64_t i, std::int64_t worker) {
    const LinearScan<T> scan = make(i / m);
    const std::int64_t s = i % m, begin = s * segment, end = std::min(begin + segment, scan.queries);
    T* const of_head = sums + i / m * n * state;
    if (plan.causal) {
      const T* const base = s > 0 ? of_head + (s - 1) * state : at_head(from, i / m);
      kernels.run_causal(scan, begin, end, base, s == m - 1 ? at_head(last, i / m) : nullptr, scratch_of(worker));
    } else {
      kernels.run_full(scan, begin, end, n == 0 ? nullptr : of_head + (n - 1) * state, scratch_of(worker));
    }
  });
}

}  // namespace maki::kernels
