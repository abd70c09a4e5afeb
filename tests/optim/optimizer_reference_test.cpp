// Optimizers against a textbook loop in long double, on parameters of irregular sizes in all three groups.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/optimizer.h"
#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/optim/small_store.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Real = long double;

// The update of one element as the papers and PyTorch define it. a and b are its moments.
class Reference {
 public:
  Reference(const OptimizerOptions& options, int step) : options_(options) {
    std::visit(
        [&]<class O>(const O& o) {
          if constexpr (!std::is_same_v<O, SgdOptions>) {
            correction1_ = 1 - std::pow(static_cast<Real>(o.beta1), step);
            correction2_ = 1 - std::pow(static_cast<Real>(o.beta2), step);
          }
        },
        options);
  }

  void operator()(Real& value, Real& a, Real& b, Real g, Real lr, bool decays) const {
    if (const SgdOptions* const o = std::get_if<SgdOptions>(&options_)) {
      if (decays) g += o->weight_decay * value;
      a = o->momentum * a + g;
      value -= lr * (o->nesterov ? g + o->momentum * a : a);
    } else if (const AdamOptions* const adam = std::get_if<AdamOptions>(&options_)) {
      if (decays) g += adam->weight_decay * value;
      adapt(value, a, b, g, lr, *adam);
    } else {
      const AdamWOptions& adamw = std::get<AdamWOptions>(options_);
      if (decays) value *= 1 - lr * adamw.weight_decay;
      adapt(value, a, b, g, lr, adamw);
    }
  }

 private:
  template <class O>
  void adapt(Real& value, Real& a, Real& b, Real g, Real lr, const O& o) const {
    a = o.beta1 * a + (1 - static_cast<Real>(o.beta1)) * g;
    b = o.beta2 * b + (1 - static_cast<Real>(o.beta2)) * g * g;
    value -= lr * (a / correction1_) / (std::sqrt(b / correction2_) + o.eps);
  }

  OptimizerOptions options_;
  Real correction1_ = 1, correction2_ = 1;
};

// Rounding errors of single steps. `worst` is that of the worst element, relative to the size of the terms that are
// added for it. whole() is the relative error of the array in the 2-norm. The first is stricter; the second tolerates
// sums that cancel, which float32 needs.
struct Errors {
  Real worst = 0, difference = 0, norm = 0;

  void add(Real expected, double got, Real size) {
    const Real d = std::abs(expected - got);
    worst = max_or_nan(worst, d / std::max(size, std::numeric_limits<Real>::min()));
    difference += d * d;
    norm += expected * expected;
  }
  double whole() const { return static_cast<double>(std::sqrt(difference / norm)); }
};

// Each step of the reference begins with the state that the optimizer is in, so that errors do not accumulate.
template <class T>
std::array<Errors, 3> compare(const OptimizerOptions& options, int steps) {
  ParameterStore store(dtype_of<T>());
  fill(store);
  const auto optimizer = make(store, options);
  const std::vector<Moment>& moments = optimizer->moments();
  std::array<Errors, 3> errors;
  for (int s = 0; s < steps; ++s) {
    draw_gradients<T>(store, static_cast<std::uint64_t>(s));
    const Tensor gradients = copy_of<T>(store.gradients()), values = copy_of<T>(store.values());
    const Tensor a0 = moments.size() > 0 ? copy_of<T>(moments[0].values) : zeros(gradients.shape(), store.dtype());
    const Tensor b0 = moments.size() > 1 ? copy_of<T>(moments[1].values) : zeros(gradients.shape(), store.dtype());
    const double lr = 0.01 / (1 + s), scale = s % 3 == 0 ? 1 : 0.37;
    optimizer->step(lr, scale);
    const Reference reference(options, s + 1);
    for (std::int64_t i = 0; i < gradients.numel(); ++i) {
      Real value = values.at(i), a = a0.at(i), b = b0.at(i);
      const Real g = scale * static_cast<Real>(gradients.at(i)), before = std::abs(value);
      const Real moment_size = std::abs(a) + std::abs(g) + before;
      reference(value, a, b, g, lr, i < store.range(ParamGroup::decay).end);
      errors[0].add(value, store.values().at(i), before + std::abs(value));
      if (moments.size() > 0) errors[1].add(a, moments[0].values.at(i), moment_size);
      if (moments.size() > 1) errors[2].add(b, moments[1].values.at(i), b + 1e-3L * moment_size * moment_size);
    }
  }
  return errors;
}

// Gradient, value and two moments of the first n of 128 elements after one step.
template <class T>
std::array<std::vector<T>, 4> stepped(bool adam, std::int64_t n) {
  std::array<std::vector<T>, 4> arrays;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const RandomStream stream(k, RandomPurpose::test);
    for (std::uint64_t i = 0; i < 128; ++i) arrays[k].push_back(static_cast<T>(0.5 + stream.uniform(i)));
  }
  auto& [gradient, value, a, b] = arrays;
  if (adam) {
    kernels::adam_step<T>({.learning_rate = 0.1}, n, gradient.data(), value.data(), a.data(), b.data());
  } else {
    kernels::sgd_step<T>({.learning_rate = 0.1, .momentum = 0.9}, n, gradient.data(), value.data(), a.data());
  }
  return arrays;
}

// A store's storage is padded to whole vectors, but the kernels do not know that.
template <class T>
void require_every_length(bool adam) {
  const auto none = stepped<T>(adam, 0), all = stepped<T>(adam, 128);
  REQUIRE(none[1] != all[1]);
  for (std::int64_t n = 1; n < 128; ++n) {
    const auto some = stepped<T>(adam, n);
    for (std::size_t k = 0; k < some.size(); ++k) {
      std::vector<T> expected = none[k];
      std::copy_n(all[k].begin(), n, expected.begin());
      INFO(n << " elements, array " << k);
      REQUIRE(some[k] == expected);
    }
  }
}

}  // namespace

TEST_CASE("each optimizer follows the reference in long double") {
  ParameterStore store;
  fill(store);
  const std::vector<std::string> targets = kernels::available_targets();
  for (const std::string& target : targets) {
    kernels::force_target(target);
    const int steps = target == targets.front() ? 100 : 6;  // long on the best target, which training uses
    for (std::size_t i = 0; i < kAllOptimizers.size(); ++i) {
      INFO(target << ", optimizer " << i);
      const std::array<Errors, 3> wide = compare<double>(kAllOptimizers[i], steps),
                                  narrow = compare<float>(kAllOptimizers[i], 3);
      for (std::size_t k = 0; k <= make(store, kAllOptimizers[i])->moments().size(); ++k) {  // values, then moments
        INFO("array " << k);
        REQUIRE(wide[k].norm > 0);
        REQUIRE(static_cast<double>(wide[k].worst) < 1e-14);
        REQUIRE(wide[k].whole() < 1e-15);
        REQUIRE(narrow[k].whole() < 5e-7);
      }
    }
  }
  kernels::force_target("");
}

TEST_CASE("a step of any number of elements updates exactly these elements") {
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const bool adam : {false, true}) {
      INFO(target << ", adam " << adam);
      require_every_length<float>(adam);
      require_every_length<double>(adam);
    }
  }
  kernels::force_target("");
}

TEST_CASE("after a hundred steps each optimizer agrees with the reference") {
  for (std::size_t kind = 0; kind < kAllOptimizers.size(); ++kind) {
    ParameterStore store(DType::float64);
    store.add("weight", {13, 3}, init::normal(1));
    store.seal(3);
    const auto optimizer = make(store, kAllOptimizers[kind]);
    const std::int64_t n = 39;
    std::vector<Real> value(n), a(n), b(n);
    for (std::int64_t i = 0; i < n; ++i) value[static_cast<std::size_t>(i)] = store.values().at(i);
    for (int s = 0; s < 100; ++s) {
      draw_gradients<double>(store, static_cast<std::uint64_t>(s));
      const Reference reference(kAllOptimizers[kind], s + 1);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        reference(value[k], a[k], b[k], store.gradients().at(i), 0.01L, true);
      }
      optimizer->step(0.01);
    }
    Real difference = 0, norm = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Real d = store.values().at(i) - value[static_cast<std::size_t>(i)];
      difference += d * d;
      norm += value[static_cast<std::size_t>(i)] * value[static_cast<std::size_t>(i)];
    }
    INFO("optimizer " << kind);
    REQUIRE(static_cast<double>(std::sqrt(difference / norm)) < 1e-12);
  }
}
