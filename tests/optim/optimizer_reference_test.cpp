// Optimizers against a textbook loop in long double, on parameters of irregular sizes in all three groups.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
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
          if constexpr (!std::is_same_v<O, Sgd>) {
            correction1_ = 1 - std::pow(static_cast<Real>(o.beta1), step);
            correction2_ = 1 - std::pow(static_cast<Real>(o.beta2), step);
          }
        },
        options);
  }

  void operator()(Real& value, Real& a, Real& b, Real g, Real lr, bool decays) const {
    if (const Sgd* const o = std::get_if<Sgd>(&options_)) {
      if (decays) g += o->weight_decay * value;
      a = o->momentum * a + g;
      value -= lr * (o->nesterov ? g + o->momentum * a : a);
    } else if (const Adam* const adam = std::get_if<Adam>(&options_)) {
      if (decays) g += adam->weight_decay * value;
      adapt(value, a, b, g, lr, *adam);
    } else {
      const AdamW& adamw = std::get<AdamW>(options_);
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
    const Real relative = d / std::max(size, std::numeric_limits<Real>::min());
    worst = relative <= worst ? worst : relative;  // keeps a NaN
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
  Optimizer optimizer(store, options);
  const std::vector<Optimizer::Moment>& moments = optimizer.moments();
  std::array<Errors, 3> errors;
  for (int s = 0; s < steps; ++s) {
    draw_gradients<T>(store, static_cast<std::uint64_t>(s));
    const Tensor gradients = copy_of<T>(store.gradients()), values = copy_of<T>(store.values());
    const Tensor a0 = moments.size() > 0 ? copy_of<T>(moments[0].values) : zeros(gradients.shape(), store.dtype());
    const Tensor b0 = moments.size() > 1 ? copy_of<T>(moments[1].values) : zeros(gradients.shape(), store.dtype());
    const double lr = 0.01 / (1 + s), scale = s % 3 == 0 ? 1 : 0.37;
    optimizer.step(lr, scale);
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

}  // namespace

TEST_CASE("each optimizer follows the reference in long double") {
  ParameterStore store;
  fill(store);
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (std::size_t i = 0; i < kAllOptimizers.size(); ++i) {
      INFO(target << ", optimizer " << i);
      const std::array<Errors, 3> wide = compare<double>(kAllOptimizers[i], 6),
                                  narrow = compare<float>(kAllOptimizers[i], 3);
      for (std::size_t k = 0; k <= Optimizer(store, kAllOptimizers[i]).moments().size(); ++k) {  // values, then moments
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

TEST_CASE("after a hundred steps each optimizer agrees with the reference") {
  for (std::size_t kind = 0; kind < kAllOptimizers.size(); ++kind) {
    ParameterStore store(DType::float64);
    store.add("weight", {13, 3}, init::normal(1));
    store.seal(3);
    Optimizer optimizer(store, kAllOptimizers[kind]);
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
      optimizer.step(0.01);
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
