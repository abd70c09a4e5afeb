// Optimizers against the textbook's loop in long double, on parameters of ragged sizes in all three groups.
#include "optim/optimizer.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/kernels/target.h"
#include "tests/catch.h"

using namespace maki;

namespace {

// Sizes around the vector widths, and one that spans several blocks of the kernel.
void fill(ParameterStore& store) {
  for (const std::int64_t size : {1, 3, 7, 15, 17, 33}) {
    store.add("vector." + std::to_string(size), {size}, init::normal(1));
    store.add("matrix." + std::to_string(size), {size, 5}, init::normal(1));
  }
  store.add("large", {37, 301}, init::normal(1));
  store.add("fixed", {4, 3}, init::normal(1), Group::frozen);
  store.seal(7);
}

// Another gradient each step, of very different sizes; padding stays as the store made it.
template <class T>
void draw_gradients(ParameterStore& store, std::uint64_t step) {
  T* const flat = store.gradients().data<T>();
  for (const auto& parameter : store.parameters()) {
    if (!parameter->trainable()) continue;
    const RandomStream stream(step, Purpose::test, parameter->name());
    for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      flat[parameter->offset() + i] =
          static_cast<T>(stream.normal(2 * k) * std::pow(10.0, 6 * stream.uniform(2 * k + 1) - 4));
    }
  }
}

using Real = long double;

// One element's update as the papers and PyTorch have it. a and b are its moments.
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

const std::vector<OptimizerOptions> kAll = {
    Sgd{},
    Sgd{.weight_decay = 0.1},
    Sgd{.momentum = 0.9, .weight_decay = 0.01},
    Sgd{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
    Adam{},
    Adam{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.1},
    AdamW{},
    AdamW{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && dispatch(a.dtype(), [&]<class T>() {
           return std::memcmp(a.data<T>(), b.data<T>(), sizeof(T) * static_cast<std::size_t>(a.numel())) == 0;
         });
}

template <class T>
Tensor copy(const Tensor& x) {
  return tensor(x.values<T>(), x.shape());
}

// Rounding errors of single steps: of the worst element, relative to the numbers that are added for it, and of values
// and moments as a whole. The first is sharper; the second forgives a sum that cancels, as in float32 it may.
struct Errors {
  Real worst = 0, difference = 0, norm = 0;

  void add(Real expected, double got, Real size) {
    const Real d = std::abs(expected - got);
    const Real relative = d / std::max(size, std::numeric_limits<Real>::min());
    worst = relative <= worst ? worst : relative;  // NaN stays
    difference += d * d;
    norm += expected * expected;
  }
  double whole() const { return static_cast<double>(std::sqrt(difference / norm)); }
};

// Each step begins in the very state the optimizer is in, so that errors do not add up.
template <class T>
std::array<Errors, 3> compare(const OptimizerOptions& options, int steps) {
  ParameterStore store(dtype_of<T>());
  fill(store);
  Optimizer optimizer(store, options);
  const std::vector<Optimizer::Moment>& moments = optimizer.moments();
  std::array<Errors, 3> errors;
  for (int s = 0; s < steps; ++s) {
    draw_gradients<T>(store, static_cast<std::uint64_t>(s));
    const Tensor gradients = copy<T>(store.gradients()), values = copy<T>(store.values());
    const Tensor a0 = moments.size() > 0 ? copy<T>(moments[0].values) : zeros(gradients.shape(), store.dtype());
    const Tensor b0 = moments.size() > 1 ? copy<T>(moments[1].values) : zeros(gradients.shape(), store.dtype());
    const double lr = 0.01 / (1 + s), scale = s % 3 == 0 ? 1 : 0.37;
    optimizer.step(lr, scale);
    const Reference reference(options, s + 1);
    for (std::int64_t i = 0; i < gradients.numel(); ++i) {
      Real value = values.at(i), a = a0.at(i), b = b0.at(i);
      const Real g = scale * static_cast<Real>(gradients.at(i)), before = std::abs(value);
      const Real moment_size = std::abs(a) + std::abs(g) + before;
      reference(value, a, b, g, lr, i < store.range(Group::decay).end);
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
    for (std::size_t i = 0; i < kAll.size(); ++i) {
      INFO(target << ", optimizer " << i);
      const std::array<Errors, 3> wide = compare<double>(kAll[i], 6), narrow = compare<float>(kAll[i], 3);
      for (std::size_t k = 0; k <= Optimizer(store, kAll[i]).moments().size(); ++k) {  // values, then moments
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

TEST_CASE("a hundred steps of each optimizer end where the reference ends") {
  for (std::size_t kind = 0; kind < kAll.size(); ++kind) {
    ParameterStore store(DType::float64);
    store.add("weight", {13, 3}, init::normal(1));
    store.seal(3);
    Optimizer optimizer(store, kAll[kind]);
    const std::int64_t n = 39;
    std::vector<Real> value(n), a(n), b(n);
    for (std::int64_t i = 0; i < n; ++i) value[static_cast<std::size_t>(i)] = store.values().at(i);
    for (int s = 0; s < 100; ++s) {
      draw_gradients<double>(store, static_cast<std::uint64_t>(s));
      const Reference reference(kAll[kind], s + 1);
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

TEST_CASE("the moments are what a checkpoint needs: named, flat, and enough to go on from") {
  for (std::size_t kind = 0; kind < kAll.size(); ++kind) {
    INFO("optimizer " << kind);
    ParameterStore straight, resumed;
    fill(straight);
    fill(resumed);
    Optimizer one(straight, kAll[kind]), two(resumed, kAll[kind]);
    for (std::uint64_t s = 0; s < 4; ++s) {
      draw_gradients<float>(straight, s);
      one.step(0.01);
    }
    // A fresh optimizer takes over values, moments and the number of steps.
    std::memcpy(resumed.values().data<float>(), straight.values().data<float>(),
                sizeof(float) * static_cast<std::size_t>(straight.values().numel()));
    REQUIRE(one.moments().size() == two.moments().size());
    for (std::size_t i = 0; i < one.moments().size(); ++i) {
      REQUIRE(one.moments()[i].name == two.moments()[i].name);
      REQUIRE(one.moments()[i].values.numel() == straight.trainable().size());
      std::memcpy(two.moments()[i].values.data<float>(), one.moments()[i].values.data<float>(),
                  sizeof(float) * static_cast<std::size_t>(straight.trainable().size()));
    }
    two.set_steps(one.steps());
    for (std::uint64_t s = 4; s < 8; ++s) {
      draw_gradients<float>(straight, s);
      draw_gradients<float>(resumed, s);
      one.step(0.01);
      two.step(0.01);
    }
    REQUIRE(two.steps() == 8);
    REQUIRE(same_bits(straight.values(), resumed.values()));
  }
  ParameterStore store;
  fill(store);
  REQUIRE(Optimizer(store, Sgd{}).moments().empty());
  REQUIRE(Optimizer(store, Sgd{.momentum = 0.5}).moments().at(0).name == "momentum");
  REQUIRE(Optimizer(store, AdamW{}).moments().at(0).name == "exp_avg");
  REQUIRE(Optimizer(store, Adam{}).moments().at(1).name == "exp_avg_sq");
}

TEST_CASE("at learning rate 0 nothing moves, frozen parameters and padding never do") {
  for (std::size_t kind = 0; kind < kAll.size(); ++kind) {
    INFO("optimizer " << kind);
    ParameterStore store;
    fill(store);
    Optimizer optimizer(store, kAll[kind]);
    const Tensor before = copy<float>(store.values());
    draw_gradients<float>(store, 1);
    optimizer.step(0);
    REQUIRE(same_bits(store.values(), before));

    std::vector<bool> owned(static_cast<std::size_t>(store.values().numel()));
    for (std::uint64_t s = 0; s < 5; ++s) {
      draw_gradients<float>(store, s);
      optimizer.step(0.1);
    }
    for (const auto& parameter : store.parameters()) {
      int moved = 0;
      for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
        owned[static_cast<std::size_t>(parameter->offset() + i)] = true;
        moved += parameter->value().at(i) != before.at(parameter->offset() + i);
      }
      INFO(parameter->name());
      REQUIRE(moved == (parameter->trainable() ? parameter->shape().numel() : 0));
    }
    int padding = 0;
    for (std::int64_t i = 0; i < store.values().numel(); ++i) {
      if (owned[static_cast<std::size_t>(i)]) continue;
      ++padding;
      REQUIRE(store.values().at(i) == 0);
      for (const auto& moment : optimizer.moments()) {
        if (i < moment.values.numel()) REQUIRE(moment.values.at(i) == 0);
      }
    }
    REQUIRE(padding > 50);
  }
}

TEST_CASE("weight decay acts on matrices alone, and without a gradient") {
  ParameterStore store(DType::float64);
  Parameter& matrix = store.add("matrix", {2, 2}, init::constant(1));
  Parameter& vector = store.add("vector", {2}, init::constant(1));
  store.seal();
  Optimizer optimizer(store, AdamW{.weight_decay = 0.5});
  optimizer.step(0.1);
  REQUIRE(matrix.value().at(3) == Approx(0.95));
  REQUIRE(vector.value().at(1) == 1);
}

TEST_CASE("a step raises the version and leaves no gradient behind") {
  ParameterStore store;
  Parameter& weight = store.add("weight", {4}, init::constant(1));
  store.seal();
  Optimizer optimizer(store, Sgd{});
  const std::uint64_t version = store.version();
  draw_gradients<float>(store, 1);
  optimizer.step(1);
  REQUIRE(store.version() > version);
  const Tensor after = copy<float>(store.values());
  optimizer.step(1);  // nothing was written since
  REQUIRE(same_bits(store.values(), after));
  REQUIRE(weight.gradient().at(0) == 0);
}

TEST_CASE("updates have equal bits at every number of threads") {
  const int before = threads();
  for (std::size_t kind = 0; kind < kAll.size(); ++kind) {
    Tensor expected;
    for (const int n : {1, 2, 3, 4, 8}) {
      set_threads(n);
      ParameterStore store;
      fill(store);
      Optimizer optimizer(store, kAll[kind]);
      for (std::uint64_t s = 0; s < 3; ++s) {
        draw_gradients<float>(store, s);
        optimizer.step(0.01, 0.5);
      }
      if (!expected) expected = store.values();
      INFO("optimizer " << kind << ", threads " << n);
      REQUIRE(same_bits(store.values(), expected));
    }
  }
  set_threads(before);
}

TEST_CASE("optimizers refuse values out of range") {
  ParameterStore store;
  fill(store);
  REQUIRE_THROWS_AS(Optimizer(store, Sgd{.momentum = 1}), Error);
  REQUIRE_THROWS_WITH(Optimizer(store, Sgd{.nesterov = true}), ContainsSubstring("nesterov"));
  REQUIRE_THROWS_WITH(Optimizer(store, AdamW{.beta1 = -0.1}), ContainsSubstring("beta1"));
  REQUIRE_THROWS_AS(Optimizer(store, Adam{.beta2 = 1}), Error);
  REQUIRE_THROWS_AS(Optimizer(store, Adam{.eps = 0}), Error);
  REQUIRE_THROWS_AS(Optimizer(store, AdamW{.weight_decay = -1}), Error);
  Optimizer optimizer(store, AdamW{});
  REQUIRE_THROWS_AS(optimizer.step(-1), Error);
  REQUIRE_THROWS_AS(optimizer.step(std::nan("")), Error);
  REQUIRE_THROWS_AS(optimizer.step(1, std::nan("")), Error);
  REQUIRE_THROWS_AS(optimizer.set_steps(-1), Error);
}
