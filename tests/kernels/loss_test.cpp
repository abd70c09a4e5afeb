// cross_entropy and embedding against plain long double references, on every SIMD target.
#include <limits>

#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/embedding.h"
#include "tests/kernels/reference.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::vector<std::int32_t> random_ids(std::int64_t n, std::int64_t below, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, 4712);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(below)));
  }
  return ids;
}

// --- cross_entropy

struct LossCase {
  std::int64_t rows, vocabulary;
  double smoothing = 0, mean = 0, std = 1;
  bool some_ignored = false;
};
constexpr std::int32_t kIgnored = -7;

std::vector<std::int32_t> targets_of(const LossCase& c) {
  auto targets = random_ids(c.rows, c.vocabulary, static_cast<std::uint64_t>(c.rows + c.vocabulary));
  for (std::size_t i = 0; c.some_ignored && i < targets.size(); i += 3) targets[i] = kIgnored;
  return targets;
}

template <class T>
struct LossResult {
  double loss;
  std::vector<T> gradient;
};

template <class T>
LossResult<T> run(const LossCase& c, const std::vector<T>& logits, const std::vector<std::int32_t>& targets,
                  double scale, bool add) {
  const kernels::CrossEntropyRows rows{c.rows, c.vocabulary, targets.data(), kIgnored, c.smoothing};
  Output<T> stats(c.rows * kernels::kCrossEntropyStats, false), gradient(c.rows * c.vocabulary, add);
  Output<double> scratch(kernels::cross_entropy_scratch(rows.rows, rows.vocabulary), false);
  const double loss = kernels::cross_entropy_forward(rows, logits.data(), stats.data(), scratch.data());
  scratch.values();
  kernels::cross_entropy_backward(rows, logits.data(), stats.values().data(), scale, gradient.sink());
  return {loss, gradient.values()};
}

template <class T>
LossResult<long double> reference(const LossCase& c, const std::vector<T>& logits,
                                  const std::vector<std::int32_t>& targets, long double scale, long double start) {
  LossResult<long double> r{0, Reference(logits.size(), start)};
  const auto n = static_cast<std::size_t>(c.vocabulary);
  const long double smoothing = c.smoothing, uniform = smoothing / static_cast<long double>(c.vocabulary);
  long double loss = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnored) continue;
    const T* const x = logits.data() + i * n;
    const auto max = static_cast<long double>(*std::max_element(x, x + n));
    const auto target = static_cast<std::size_t>(targets[i]);
    long double sum = 0, others = 0;  // for 1 − p_t, which would cancel in long double, too
    for (std::size_t j = 0; j < n; ++j) {
      const long double e = std::exp(static_cast<long double>(x[j]) - max);
      sum += e;
      others += j == target ? 0 : e;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const long double log_p = static_cast<long double>(x[j]) - max - std::log(sum);
      const long double weight = uniform + (j == target ? 1 - smoothing : 0);
      if (weight != 0) loss -= weight * log_p;
      r.gradient[i * n + j] += scale * (j == target ? smoothing - uniform - others / sum : std::exp(log_p) - uniform);
    }
  }
  r.loss = static_cast<double>(loss);
  return r;
}

template <class T>
void require_loss(const LossCase& c, bool add) {
  INFO(c.rows << " rows, vocabulary " << c.vocabulary << ", smoothing " << c.smoothing << ", std " << c.std << ", add "
              << add);
  const auto logits =
      random_values<T>(c.rows * c.vocabulary, static_cast<std::uint64_t>(c.rows * 31 + c.vocabulary), c.mean, c.std);
  const auto targets = targets_of(c);
  const LossResult<T> r = run(c, logits, targets, 0.25, add);
  const LossResult<long double> expected = reference(c, logits, targets, 0.25L, add ? 2 : 0);
  REQUIRE(r.loss == Approx(expected.loss).epsilon(bound_of<T>()).margin(bound_of<T>()));
  REQUIRE(distance(r.gradient, expected.gradient, 1e-20L) < bound_of<T>());
}

// --- embedding

template <class T>
std::vector<T> run_backward(const kernels::EmbeddingShape& s, const std::vector<std::int32_t>& ids,
                            const std::vector<T>& dy, bool add) {
  Output<T> dtable(s.vocabulary * s.cols, add);
  Output<std::int32_t> scratch(kernels::embedding_backward_scratch(s), false);
  kernels::embedding_backward(s, ids.data(), dy.data(), dtable.sink(), scratch.data());
  scratch.values();
  return dtable.values();
}

template <class T>
void require_embedding(const kernels::EmbeddingShape& s, std::int64_t used, bool add) {
  INFO("table " << s.vocabulary << " × " << s.cols << ", " << s.id_count << " ids below " << used << ", add " << add);
  const auto ids = random_ids(s.id_count, used, static_cast<std::uint64_t>(s.vocabulary + s.cols));
  const auto table = random_values<T>(s.vocabulary * s.cols, 1), dy = random_values<T>(s.id_count * s.cols, 2, 1);
  Output<T> y(s.id_count * s.cols, false);
  kernels::embedding_forward(s, table.data(), ids.data(), y.data());
  const auto got = y.values();
  Reference expected(static_cast<std::size_t>(s.vocabulary * s.cols), add ? 2 : 0);
  bool gathered = got.size() == dy.size();
  for (std::int64_t i = 0; i < s.id_count; ++i) {
    for (std::int64_t j = 0; j < s.cols; ++j) {
      const auto from = static_cast<std::size_t>(i * s.cols + j);
      const auto place = static_cast<std::size_t>(ids[static_cast<std::size_t>(i)] * s.cols + j);
      gathered = gathered && got[from] == table[place];
      expected[place] += static_cast<long double>(dy[from]);
    }
  }
  REQUIRE(gathered);
  REQUIRE(distance(run_backward(s, ids, dy, add), expected) < (sizeof(T) == 4 ? 1e-6 : 2e-15));
}

}  // namespace

TEST_CASE("cross_entropy agrees with its formula at every shape, on every target") {
  on_every_target([] {
    for (const std::int64_t vocabulary : {1, 2, 3, 7, 8, 9, 16, 17, 64, 65, 257, 600}) {
      for (const std::int64_t rows : {1, 2, 70}) {
        require_loss<float>({.rows = rows, .vocabulary = vocabulary, .mean = 10}, false);
        require_loss<double>({.rows = rows, .vocabulary = vocabulary, .some_ignored = true}, false);
        require_loss<double>({.rows = rows, .vocabulary = vocabulary, .smoothing = 0.1, .std = 5}, true);
        require_loss<float>({.rows = rows, .vocabulary = vocabulary, .smoothing = 1, .some_ignored = true}, true);
      }
    }
    require_loss<float>({.rows = 2, .vocabulary = 50257}, false);
  });
}

TEST_CASE("cross_entropy of a confident model keeps the precision of its gradient") {
  on_every_target([] {
    for (const std::int64_t vocabulary : {2, 65, 300}) {
      // The logit of the target is about 14 above the others, so 1 − p is about 1e-6 per other class. As a difference
      // of float32 numbers, which are 6e-8 apart just below 1, it would have one digit.
      const LossCase c{.rows = 3, .vocabulary = vocabulary};
      auto logits = random_values<float>(c.rows * vocabulary, 5);
      const auto targets = targets_of(c);
      for (std::size_t i = 0; i < 3; ++i) {
        logits[i * static_cast<std::size_t>(vocabulary) + static_cast<std::size_t>(targets[i])] = 14;
      }
      const LossResult<float> r = run(c, logits, targets, 1, false);
      const LossResult<long double> expected = reference(c, logits, targets, 1, 0);
      REQUIRE(distance(r.gradient, expected.gradient) < 2e-6);
      REQUIRE(r.loss == Approx(expected.loss).epsilon(2e-6).margin(0));
    }
  });
}

TEST_CASE("cross_entropy: logits of ±1e30 give finite results, NaN and Inf are not hidden, ignored rows are not read") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    for (const std::int64_t vocabulary : {2, 17, 65}) {
      const auto n = static_cast<std::size_t>(vocabulary);
      const LossCase c{.rows = 1, .vocabulary = vocabulary};
      for (const double smoothing : {0.0, 0.1}) {
        LossCase smooth = c;
        smooth.smoothing = smoothing;
        std::vector<float> logits(n, -1e30f);
        logits[1] = 1e30f;
        for (const std::int32_t target : {0, 1}) {
          const LossResult<float> r = run(smooth, logits, {target}, 1, false);
          REQUIRE(std::isfinite(r.loss));
          if (smoothing == 0) REQUIRE(r.loss == (target == 1 ? 0 : 2 * static_cast<double>(1e30f)));
          for (const float value : r.gradient) REQUIRE(std::isfinite(value));
          if (smoothing == 0) REQUIRE(r.gradient[0] == (target == 0 ? -1.0f : 0.0f));
        }
        for (const float bad : {nan, inf}) {
          for (std::size_t place = 0; place < n; ++place) {
            logits.assign(n, 0.5f);
            logits[place] = bad;
            for (const std::int32_t target : {0, 1}) {
              const LossResult<float> r = run(smooth, logits, {target}, 1, false);
              REQUIRE_FALSE(std::isfinite(r.loss));
              REQUIRE(std::isnan(r.gradient[0]));
              REQUIRE(std::isnan(r.gradient[1]));
            }
          }
        }
      }
      std::vector<float> masked(n, -inf);  // the other classes have probability 0
      masked[1] = 3;
      REQUIRE(run(c, masked, {1}, 1, false).loss == 0);
      REQUIRE(run(c, masked, {0}, 1, false).loss == static_cast<double>(inf));
      const LossResult<float> ignored = run(c, std::vector<float>(n, nan), {kIgnored}, 1, false);
      REQUIRE(ignored.loss == 0);
      for (const float value : ignored.gradient) REQUIRE(value == 0);
    }
  });
}

TEST_CASE("cross_entropy: the same bits with any number of threads") {
  on_every_target([] {
    for (const LossCase& c : {LossCase{.rows = 1000, .vocabulary = 65, .some_ignored = true},
                              LossCase{.rows = 9, .vocabulary = 9001, .smoothing = 0.1}}) {
      const auto logits = random_values<float>(c.rows * c.vocabulary, 3);
      const auto targets = targets_of(c);
      require_same_with_any_threads([&] {
        LossResult<float> r = run(c, logits, targets, 0.1, false);
        float bits[2];
        std::memcpy(bits, &r.loss, sizeof r.loss);
        r.gradient.insert(r.gradient.end(), bits, bits + 2);
        return r.gradient;
      });
    }
  });
}

TEST_CASE("embedding gathers rows and sums their gradients, for small and large tables, on every target") {
  on_every_target([] {
    for (const std::int64_t cols : {1, 3, 17, 32, 33, 130}) {
      for (const bool add : {false, true}) {
        require_embedding<float>({1, cols, 100}, 1, add);
        require_embedding<double>({65, cols, 500}, 60, add);
        require_embedding<float>({1023, cols, 40}, 1023, add);
        require_embedding<double>({1024, cols, 7}, 1024, add);
        require_embedding<float>({1500, cols, 50}, 5, add);
        require_embedding<float>({20, cols, 0}, 20, add);
      }
    }
    require_embedding<float>({2, 5, 30000}, 2, false);  // a frequent id: one long float32 chain would be inexact
  });
}

TEST_CASE("embedding: the same bits with any number of threads") {
  on_every_target([] {
    for (const kernels::EmbeddingShape& s :
         {kernels::EmbeddingShape{65, 128, 3000}, kernels::EmbeddingShape{5000, 40, 3000}}) {
      const auto ids = random_ids(s.id_count, s.vocabulary / 3 + 1, 4);
      const auto dy = random_values<float>(s.id_count * s.cols, 5);
      for (const bool add : {false, true}) {
        require_same_with_any_threads([&] { return run_backward(s, ids, dy, add); });
      }
    }
  });
}
