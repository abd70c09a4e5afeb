// The gradient norm against a sum in long double, and the clipping factor that follows from it.
#include "optim/clip.h"

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"

using namespace maki;

namespace {

template <class T>
Tensor random_flat(std::int64_t n, double size) {
  const RandomStream stream(5, RandomPurpose::test, static_cast<std::uint64_t>(n));
  Tensor x = empty({n}, dtype_of<T>());
  for (std::int64_t i = 0; i < n; ++i) {
    x.data<T>()[i] = static_cast<T>(size * stream.normal(static_cast<std::uint64_t>(i)));
  }
  return x;
}

double reference_norm(const Tensor& x) {
  long double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    sum += static_cast<long double>(x.at(i)) * static_cast<long double>(x.at(i));
  }
  return static_cast<double>(std::sqrt(sum));
}

const std::vector<std::int64_t> kSizes = {0, 1, 2, 15, 16, 17, 63, 64, 65, 8191, 8192, 8193, 50001};

}  // namespace

TEST_CASE("the global norm agrees with a sum in long double on every target") {
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const std::int64_t n : kSizes) {
      for (const double size : {1e-30, 1.0, 1e30}) {  // 1e30 squared is beyond float32
        INFO(target << ", " << n << " elements of size " << size);
        const Tensor x = random_flat<float>(n, size), y = random_flat<double>(n, size);
        REQUIRE(std::abs(global_norm(x) - reference_norm(x)) <= 1e-14 * reference_norm(x));
        REQUIRE(std::abs(global_norm(y) - reference_norm(y)) <= 1e-14 * reference_norm(y));
      }
    }
  }
  kernels::force_target("");
}

TEST_CASE("one NaN or Inf anywhere makes the norm not finite") {
  for (const std::int64_t n : {1, 16, 65, 8193}) {
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        Tensor x = random_flat<float>(n, 1);
        REQUIRE(std::isfinite(global_norm(x)));
        x.data<float>()[at] = bad;
        INFO("element " << at << " of " << n);
        REQUIRE_FALSE(std::isfinite(global_norm(x)));
      }
    }
  }
}

TEST_CASE("the norm has the same bits at every number of threads") {
  const int before = threads();
  const Tensor x = random_flat<float>(123457, 1);
  set_threads(1);
  const double expected = global_norm(x);
  for (const int n : {2, 3, 4, 8}) {
    set_threads(n);
    REQUIRE(global_norm(x) == expected);
  }
  set_threads(before);
}

TEST_CASE("the norm of a store counts every gradient once and nothing else") {
  ParameterStore store(DType::float64);
  store.add("a", {3}, init::constant(0));
  store.add("b", {2, 2}, init::constant(0));
  store.seal();
  REQUIRE(grad_norm(store) == 0);  // nothing written
  for (std::int64_t i = 0; i < 4; ++i) store.gradients().data<double>()[store.find("b").offset() + i] = 2;
  store.gradients().data<double>()[store.find("a").offset()] = 3;
  REQUIRE(grad_norm(store) == 5);
}

TEST_CASE("clipping scales gradients whose norm exceeds the limit and no others") {
  REQUIRE(clip_factor(0.5, 1) == 1);
  REQUIRE(clip_factor(0, 1) == 1);
  REQUIRE(clip_factor(4, 1) == 1 / (4 + 1e-6));
  REQUIRE(clip_factor(1e30, 0) == 1);
  REQUIRE_THROWS_AS(clip_factor(1, -1), Error);
  REQUIRE_THROWS_AS(clip_factor(1, std::nan("")), Error);
}
