// Long float32 sums other than products: their error against sums in double, for 65,536 terms.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/embedding.h"
#include "autograd/kernels/norm.h"
#include "autograd/kernels/reduce.h"
#include "tests/catch.h"
#include "tests/kernels/gemm_case.h"

namespace maki::kernels {
namespace {

constexpr std::int64_t kLongRows = 65536, kCols = 67;

struct Matrix {
  explicit Matrix(double mean) : x(static_cast<std::size_t>(kLongRows * kCols)), sums(static_cast<std::size_t>(kCols)) {
    std::mt19937_64 bits(1);
    std::normal_distribution<double> draw(mean, 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(draw(bits));
      sums[i % sums.size()] += double{x[i]};
    }
  }
  /// |got − sums| / |sums|.
  double error(const std::vector<float>& got) const {
    double off = 0, norm = 0;
    for (std::size_t j = 0; j < sums.size(); ++j) {
      off += (double{got[j]} - sums[j]) * (double{got[j]} - sums[j]);
      norm += sums[j] * sums[j];
    }
    return std::sqrt(off / norm);
  }

  std::vector<float> x;
  std::vector<double> sums;  // of the columns
};

TEST_CASE("sums over 65,536 rows keep their precision", "[sums]") {
  for (const double mean : {0.0, 10.0}) {
    const Matrix m(mean);
    on_every_target_with_amx([&] {
      INFO("mean " << mean);
      std::vector<float> got(static_cast<std::size_t>(kCols));
      const Sink<float> into{got.data(), false};

      column_sum<float>(kLongRows, kCols, m.x.data(), kCols, into);
      REQUIRE(m.error(got) < 5e-7);

      const EmbeddingShape one_id{.vocabulary = 1, .cols = kCols, .id_count = kLongRows};
      const std::vector<std::int32_t> ids(static_cast<std::size_t>(kLongRows), 0);
      std::vector<std::int32_t> places(static_cast<std::size_t>(embedding_backward_scratch(one_id)));
      embedding_backward<float>(one_id, ids.data(), m.x.data(), into, places.data());
      REQUIRE(m.error(got) < 5e-7);

      std::vector<float> stats(static_cast<std::size_t>(kLongRows * kLayerNormStats)), y(m.x.size());
      layer_norm_forward<float>(kLongRows, kCols, m.x.data(), nullptr, nullptr, 1e-5, y.data(), stats.data());
      std::vector<float> scratch(static_cast<std::size_t>(layer_norm_backward_scratch(kLongRows, kCols)));
      layer_norm_backward<float>(kLongRows, kCols, m.x.data(), nullptr, stats.data(), m.x.data(), {}, {}, into,
                                 scratch.data());
      REQUIRE(m.error(got) < 5e-7);

      const ReductionPlan plan = plan_reduction({kLongRows, kCols}, 0b01);
      std::vector<double> partial(static_cast<std::size_t>(reduction_scratch(plan)));
      sum<float>(plan, m.x.data(), 1, partial.data(), into);
      REQUIRE(m.error(got) < 5e-7);
    });
  }
}

TEST_CASE("cross-entropy over a vocabulary of 65,536 keeps its precision", "[sums]") {
  const Matrix m(0);
  const std::int32_t target = 123;
  const CrossEntropyRows rows{
      .rows = 1, .vocabulary = kLongRows, .targets = &target, .ignored = -1, .label_smoothing = 0};
  double total = 0;
  for (std::int64_t j = 0; j < kLongRows; ++j) total += std::exp(double{m.x[static_cast<std::size_t>(j)]});
  on_every_target_with_amx([&] {
    std::vector<float> stats(kCrossEntropyStats), gradient(static_cast<std::size_t>(kLongRows));
    std::vector<double> scratch(static_cast<std::size_t>(cross_entropy_scratch(rows.rows, rows.vocabulary)));
    const double loss = cross_entropy_forward(rows, m.x.data(), stats.data(), scratch.data());
    REQUIRE(std::abs(loss - (std::log(total) - double{m.x[123]})) < 6e-7 * loss);
    cross_entropy_backward(rows, m.x.data(), stats.data(), 1, Sink<float>{gradient.data(), false});
    const double probability = std::exp(double{m.x[77]}) / total;
    REQUIRE(std::abs(double{gradient[77]} - probability) < 6e-7 * probability);
  });
}

}  // namespace
}  // namespace maki::kernels
