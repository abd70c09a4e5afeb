// Tests of the gradient checker itself: it must accept a correct backward for many seeds and reject each of a list of
// wrong ones.
#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "autograd/core/check.h"
#include "autograd/tape.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr std::int64_t kRows = 30, kCols = 40;

using Values = std::vector<double>;
struct WrongBackward {
  const char* name;
  std::function<void(Values& dx, Values& db, const Values& dy)> corrupt;
};

// f(x) is 2 sin x, or 2 |x|, which has a kink at 0.
struct Function {
  double (*value)(double), (*slope)(double);
};
const Function kSmooth{[](double x) { return 2 * std::sin(x); }, [](double x) { return 2 * std::cos(x); }};
const Function kKinked{[](double x) { return 2 * std::abs(x); }, [](double x) { return x > 0 ? 2.0 : -2.0; }};

// y = f(x) + b x, with x [R, C] and b [C] broadcast over the rows.
// Backward: dx = (f'(x) + b) dy, db = Σ_rows x dy, both then corrupted by `wrong`.
Tensor forward(const Tensor& x, const Tensor& b, const WrongBackward& wrong, const Function& f = kSmooth) {
  Tensor y = empty_like(x);
  const std::span<const double> xs = x.values<double>(), bs = b.values<double>();
  const std::span<double> ys = y.values<double>();
  const std::size_t cols = bs.size();
  for (std::size_t i = 0; i < xs.size(); ++i) ys[i] = f.value(xs[i]) + bs[i % cols] * xs[i];
  return record("seeded", y, {x, b}, [x, b, cols, &wrong, &f](Grads& g) {
    Values dx(static_cast<std::size_t>(x.numel())), db(cols), dy(dx.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      dy[i] = g.out<double>()[i];
      const double v = x.at(static_cast<std::int64_t>(i));
      dx[i] = (f.slope(v) + b.at(static_cast<std::int64_t>(i % cols))) * dy[i];
      db[i % cols] += v * dy[i];
    }
    wrong.corrupt(dx, db, dy);
    const Sink<double> sx = g.in<double>(0), sb = g.in<double>(1);
    for (std::size_t i = 0; i < dx.size(); ++i) sx.put(static_cast<std::int64_t>(i), dx[i]);
    for (std::size_t i = 0; i < db.size(); ++i) sb.put(static_cast<std::int64_t>(i), db[i]);
  });
}

bool accepted(const WrongBackward& wrong, std::uint64_t seed, GradcheckOptions options = {},
              const Function& f = kSmooth, const Shape& shape = {kRows, kCols}) {
  ParameterStore store(DType::float64);
  Parameter& x = store.add("x", shape, init::normal(1));
  Parameter& b = store.add("b", {shape.cols()}, init::normal(1));
  store.seal(seed);
  options.seed = seed;
  const auto results = gradcheck(
      store, [&] { return forward(x, b, wrong, f); }, options);
  REQUIRE(results.size() == 2);
  return results[0].passed(1e-9) && results[1].passed(1e-9);
}

const WrongBackward kCorrect{"correct", [](Values&, Values&, const Values&) {}};

void scale(Values& values, double factor) {
  for (double& value : values) value *= factor;
}

std::vector<WrongBackward> wrong_backwards() {
  static Values stale(kRows * kCols, 0.0);
  return {
      {"x scaled by 1.001", [](Values& dx, Values&, const Values&) { scale(dx, 1.001); }},
      {"x scaled by 1 + 1e-7", [](Values& dx, Values&, const Values&) { scale(dx, 1 + 1e-7); }},
      {"b scaled by 0.999", [](Values&, Values& db, const Values&) { scale(db, 0.999); }},
      {"one sign of x", [](Values& dx, Values&, const Values&) { dx[17] = -dx[17]; }},
      {"one sign of b", [](Values&, Values& db, const Values&) { db[3] = -db[3]; }},
      {"all signs",
       [](Values& dx, Values& db, const Values&) {
         scale(dx, -1);
         scale(db, -1);
       }},
      {"missing sum over the broadcast axis",
       [](Values& dx, Values& db, const Values&) { std::copy_n(dx.begin(), kCols, db.begin()); }},
      {"mean over the broadcast axis", [](Values&, Values& db, const Values&) { scale(db, 1.0 / kRows); }},
      {"transposed",
       [](Values& dx, Values&, const Values&) {
         const Values copy = dx;
         for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = copy[(i % kRows) * kCols + i / kRows];
       }},
      {"shifted by one", [](Values& dx, Values&, const Values&) { std::rotate(dx.begin(), dx.begin() + 1, dx.end()); }},
      {"stale: added to what an earlier call left",
       [](Values& dx, Values&, const Values&) {
         for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = stale[i] += dx[i] + 1e-3;
       }},
      {"zero for x, not for b", [](Values& dx, Values&, const Values&) { scale(dx, 0); }},
      {"zero for b, not for x", [](Values&, Values& db, const Values&) { scale(db, 0); }},
      {"zero everywhere",
       [](Values& dx, Values& db, const Values&) {
         scale(dx, 0);
         scale(db, 0);
       }},
      {"NaN in one entry of a thousand",
       [](Values& dx, Values&, const Values&) { dx[999] = std::numeric_limits<double>::quiet_NaN(); }},
      {"Inf in one entry",
       [](Values&, Values& db, const Values&) { db[39] = std::numeric_limits<double>::infinity(); }},
      {"the cotangent ignored",
       [](Values& dx, Values&, const Values& dy) {
         for (std::size_t i = 0; i < dx.size(); ++i) dx[i] /= dy[i];
       }},
      {"the cotangent passed through", [](Values& dx, Values&, const Values& dy) { dx = dy; }},
      {"one row dropped", [](Values& dx, Values&, const Values&) { std::fill_n(dx.begin(), kCols, 0.0); }},
      {"the last column dropped", [](Values&, Values& db, const Values&) { db.back() = 0; }},
  };
}

}  // namespace

TEST_CASE("the checker accepts a correct backward, also of 10,000 small functions") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) REQUIRE(accepted(kCorrect, seed));
  GradcheckOptions sampled;  // as `maki gradcheck` does
  sampled.directions = 3;
  sampled.entries = 4;
  sampled.halvings = 4;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    INFO("seed " << seed);
    REQUIRE(accepted(kCorrect, seed, {}, kSmooth, {2, 3}));
    REQUIRE(accepted(kCorrect, seed, sampled, kSmooth, {2, 3}));
  }
}

TEST_CASE("the checker rejects every wrong backward") {
  REQUIRE(wrong_backwards().size() >= 20);
  for (const WrongBackward& wrong : wrong_backwards()) {
    INFO(wrong.name);
    REQUIRE_FALSE(accepted(wrong, 1));
  }
}

TEST_CASE("the entry whose gradient is NaN is named as the worst, whatever follows it") {
  const WrongBackward wrong{
      "NaN", [](Values& dx, Values&, const Values&) { dx[5] = std::numeric_limits<double>::quiet_NaN(); }};
  ParameterStore store(DType::float64);
  Parameter& x = store.add("x", {kRows, kCols}, init::normal(1));
  Parameter& b = store.add("b", {kCols}, init::normal(1));
  store.seal(1);
  const GradcheckResult result = gradcheck(store, [&] { return forward(x, b, wrong); }).front();
  REQUIRE(std::isnan(result.worst_analytic));
  REQUIRE_FALSE(result.passed(1e-9));
}

TEST_CASE("random directions and the largest entries also distinguish a correct backward from wrong ones") {
  GradcheckOptions sampled;
  sampled.directions = 3;
  sampled.entries = 16;
  REQUIRE(accepted(kCorrect, 1, sampled));
  int rejected = 0;
  for (const WrongBackward& wrong : wrong_backwards()) rejected += accepted(wrong, 1, sampled) ? 0 : 1;
  REQUIRE(rejected == static_cast<int>(wrong_backwards().size()));
}

TEST_CASE("kinks between the points of a difference: a correct backward is accepted, every wrong one rejected") {
  GradcheckOptions fixed, halving, sampled;
  fixed.step = halving.step = sampled.step = 1e-2;  // about 20 of the 1,200 entries are within a step of the kink
  halving.halvings = sampled.halvings = 16;
  sampled.directions = 3;
  sampled.entries = 16;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    INFO(seed);
    REQUIRE_FALSE(accepted(kCorrect, seed, fixed, kKinked));  // so some differences do span a kink
    REQUIRE(accepted(kCorrect, seed, halving, kKinked));
    REQUIRE(accepted(kCorrect, seed, sampled, kKinked));
    REQUIRE(accepted(kCorrect, seed, halving));
  }
  for (const WrongBackward& wrong : wrong_backwards()) {
    INFO(wrong.name);
    REQUIRE_FALSE(accepted(wrong, 1, halving, kKinked));
    REQUIRE_FALSE(accepted(wrong, 1, sampled, kKinked));
  }
}

TEST_CASE("the differences that needed a smaller step are counted") {
  for (const double at : {0.5, 1e-4}) {  // the kink farther away than a step, and nearer
    ParameterStore store(DType::float64);
    Parameter& x = store.add("x", {1, kCols}, init::constant(at));
    Parameter& b = store.add("b", {kCols}, init::constant(1));
    store.seal();
    GradcheckOptions options;
    options.halvings = 12;
    const auto results = gradcheck(
        store, [&] { return forward(x, b, kCorrect, kKinked); }, options);
    REQUIRE(results[0].passed(1e-9));
    REQUIRE(results[0].compared == kCols);
    REQUIRE(results[0].halved == (at < 1e-3 ? kCols : 0));
    REQUIRE(results[1].halved == 0);
  }
}

TEST_CASE("a check that compared nothing fails, and so does 0 against 0 without a floor") {
  REQUIRE_FALSE(GradcheckResult{}.passed(1));
  ParameterStore store(DType::float64);
  Parameter& x = store.add("x", {3}, init::constant(1));
  store.seal();
  const auto dead = [&] {
    return record("dead", zeros({3}, DType::float64), {x}, [](Grads& g) {
      const Sink<double> dx = g.in<double>(0);
      for (int i = 0; i < 3; ++i) dx.put(i, 0);
    });
  };
  REQUIRE_FALSE(gradcheck(store, dead)[0].passed(1e-9));
  GradcheckOptions floor;
  floor.floor = 1e-4;
  REQUIRE(gradcheck(store, dead, floor)[0].passed(1e-9));
}

TEST_CASE("the checker requires float64, and restores the values") {
  ParameterStore narrow(DType::float32);
  narrow.add("x", {3}, init::constant(1));
  narrow.seal();
  REQUIRE_THROWS_AS(gradcheck(narrow, [] { return Tensor(); }), Error);

  ParameterStore store(DType::float64);
  Parameter& x = store.add("x", {kRows, kCols}, init::normal(1));
  Parameter& b = store.add("b", {kCols}, init::normal(1));
  store.seal(1);
  const std::vector<double> before(x.value().values<double>().begin(), x.value().values<double>().end());
  gradcheck(store, [&] { return forward(x, b, kCorrect); });
  REQUIRE(std::equal(before.begin(), before.end(), x.value().data<double>()));
  // In the third forward pass a value differs from the one that the check found.
  int passes = 0;
  const auto failing = [&] {
    if (++passes == 3) throw std::runtime_error("no more");
    return forward(x, b, kCorrect);
  };
  REQUIRE_THROWS_WITH(gradcheck(store, failing), "no more");
  REQUIRE(std::equal(before.begin(), before.end(), x.value().data<double>()));
  REQUIRE(std::ranges::all_of(x.gradient().values<double>(), [](double g) { return g == 0; }));
}
