// The scratch of attention: the parts of a head's panel, and what the kernels of relative attention read and write.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/tile.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"
#include "tests/kernels/targets.h"

namespace maki::kernels {
namespace {

// Whether parts, each a pointer and a number of elements, follow one another within `size` elements from `begin` on.
bool lie_in_order(const float* begin, std::int64_t size,
                  std::initializer_list<std::pair<const float*, std::int64_t>> parts) {
  const float* free = begin;
  for (const auto& [part, count] : parts) {
    if (part < free) return false;
    free = part + count;
  }
  return free <= begin + size;
}

// Forward and backward with a position term on scratch of NaN: nothing is written behind it, no result is NaN, and
// gradients that are added to become twice as large.
template <class T>
void require_own_scratch(const AttentionShape& s) {
  const std::int64_t width = s.heads * s.head_size, own = s.queries * width, all = s.keys * width;
  const std::vector<T> q = numbers<T>(own, 1), kv = numbers<T>(2 * all, 2), dy = numbers<T>(own, 3);
  const std::vector<T> distances = numbers<T>(all, 4), biases = numbers<T>(2 * width, 5);
  const auto outputs = [](std::int64_t n) { return std::vector<T>(static_cast<std::size_t>(n), kNaN<T>); };
  std::vector<T> y = outputs(own), lse = outputs(s.heads * s.queries), dq = outputs(own), position_dq = outputs(own);
  std::vector<T> dkv = outputs(2 * all), dr = outputs(all);
  const RelativeRows<T> term{distances.data(), width, biases.data(), biases.data() + width};
  const HeadRows<const T> rows{q.data(), width, own}, k{kv.data(), 2 * width, 2 * all};
  const HeadRows<const T> v{kv.data() + width, 2 * width, 2 * all};
  Scratch<T> forward(attention_forward_scratch<T>(s) * std::int64_t{sizeof(T)});
  attention_forward<T>(s, rows, k, v, {y.data(), width, own}, lse.data(), forward.data(), term);
  REQUIRE(forward.guard_is_intact());
  const auto run_backward = [&](bool add) {
    Scratch<T> backward(attention_backward_scratch<T>(s) * std::int64_t{sizeof(T)});
    attention_backward<T>(s, rows, k, v, {y.data(), width, own}, {dy.data(), width, own}, lse.data(),
                          {dq.data(), width, own, add}, {dkv.data(), 2 * width, 2 * all, add},
                          {dkv.data() + width, 2 * width, 2 * all, add}, backward.data(), term,
                          {{position_dq.data(), width, own, add}, {dr.data(), width, all, add}});
    REQUIRE(backward.guard_is_intact());
  };
  run_backward(false);
  for (const std::vector<T>* const x : {&y, &lse, &dq, &position_dq, &dkv, &dr}) {
    REQUIRE(std::ranges::all_of(*x, [](T value) { return std::isfinite(value); }));
  }
  const std::vector<T> once[] = {dq, position_dq, dkv, dr};
  run_backward(true);
  const std::vector<T>* before = once;
  for (const std::vector<T>* const x : {&dq, &position_dq, &dkv, &dr}) {
    REQUIRE(std::ranges::equal(*x, *before++, [](T now, T then) { return now == 2 * then; }));
  }
}

}  // namespace

TEST_CASE("attention: the parts of a head's panel do not overlap, and its size has room for all") {
  std::vector<float> memory(1 << 20);
  float* const begin = memory.data();
  for (const std::int64_t queries : {1, 64, 65, 512, 1000}) {
    for (const std::int64_t keys : {1, 64, 65, 512, 1000}) {
      for (const std::int64_t head_size : {1, 16, 33}) {
        INFO(queries << " queries, " << keys << " keys, " << head_size << " columns");
        const std::int64_t tiles = (queries + 63) / 64, blocks = (keys + 63) / 64, d = (head_size + 15) / 16 * 16;
        const std::int64_t t = 64 * tiles, s = 64 * blocks;
        const std::int64_t size = AttentionHeadScratch<float>::size(queries, keys, head_size);
        const AttentionHeadScratch<float> panel(begin, queries, keys, head_size);
        REQUIRE(lie_in_order(begin, size,
                             {{panel.q, t * d},
                              {panel.dy, t * d},
                              {panel.dq, t * d},
                              {panel.row_sum, t},
                              {panel.k, s * d},
                              {panel.dk, s * d},
                              {panel.dv, s * d},
                              {panel.kt, s * d},
                              {panel.vt, s * d},
                              {panel.q_finite, tiles},
                              {panel.dy_finite, tiles},
                              {panel.k_finite, blocks}}));
        const std::int64_t more = RelativeHeadScratch<float>::size(queries, keys, head_size);
        const RelativeHeadScratch<float> relative(begin, queries, keys, head_size);
        REQUIRE(lie_in_order(begin, more,
                             {{relative.q, t * d},
                              {relative.dq, t * d},
                              {relative.r - 16 * d, (s + 32) * d},
                              {relative.dr, s * d},
                              {relative.r_finite, blocks}}));
        REQUIRE((size % 16 == 0 && more % 16 == 0));  // what follows begins at a multiple of 64 bytes
      }
    }
  }
}

TEST_CASE("relative attention: NaN in the scratch shows in no result, nothing is written behind it, and sinks add") {
  tests::on_every_target([] {
    for (AttentionShape s : {AttentionShape{.queries = 1, .keys = 70, .heads = 2, .head_size = 3},
                             AttentionShape{.queries = 70, .keys = 150, .heads = 2, .head_size = 16},
                             AttentionShape{.queries = 130, .keys = 130, .heads = 1, .head_size = 33},
                             AttentionShape{.queries = 530, .keys = 600, .heads = 2, .head_size = 4}}) {
      s.batch = 1;
      s.causal = s.relative = true;
      s.scale = 0.3;
      for (const int threads : {1, 3}) {
        const ThreadsScope team(threads);
        INFO(s.queries << " queries, " << s.keys << " keys, threads " << threads);
        require_own_scratch<float>(s);
        require_own_scratch<double>(s);
      }
    }
  });
}

}  // namespace maki::kernels
