#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "autograd/core/check.h"

namespace maki {
namespace {

// Difference quotients of two step sizes agree if their relative difference is at most this, a hundredth of the error
// of a gradient that `maki gradcheck` accepts.
constexpr double kQuotientTolerance = 1e-8;
// They agree as well if the rounding of the forward pass explains their difference. It is estimated as this share of
// the magnitude of its result: nine times the rounding of one float64 operation, 1.1e-16.
constexpr double kRoundingNoise = 1e-15;

// One derivative to compare: with respect to one entry (`direction` is empty) or along a direction.
struct Probe {
  std::string name;
  std::int64_t entry;
  std::vector<double> direction;
  double analytic;
};

// Leaves a store as it was found, without gradients, also if a check ends with an exception.
class Restoration {
 public:
  explicit Restoration(ParameterStore& store) : store_(store), values_(store.values().clone()) {}
  Restoration(const Restoration&) = delete;
  Restoration& operator=(const Restoration&) = delete;
  ~Restoration() {
    std::ranges::copy(std::as_const(values_).values<double>(), store_.values().values<double>().begin());
    store_.mark_changed();
    store_.clear_gradients();
  }

 private:
  ParameterStore& store_;
  Tensor values_;
};

class Checker {
 public:
  Checker(ParameterStore& store, const std::function<Tensor()>& forward, const GradcheckOptions& options)
      : store_(store), forward_(forward), options_(options) {}

  std::vector<GradcheckResult> run() {
    differentiate();
    std::vector<GradcheckResult> results;
    double largest = 0;
    for (const auto& parameter : store_.parameters()) {
      if (!parameter->trainable()) continue;
      results.push_back(compare(*parameter));
      largest = std::max({largest, results.back().analytic_norm, results.back().numeric_norm});
    }
    const double floor = std::max(options_.floor, options_.relative_floor * largest);
    for (GradcheckResult& result : results) {
      const double scale = std::max({result.analytic_norm, result.numeric_norm, floor});
      // 0/0 is NaN, which fails: gradients that are all zero pass only if the caller gave a floor.
      result.error /= scale;
    }
    return results;
  }

 private:
  Tensor record_forward() {
    const Recording on(tape_, options_.random);
    Tensor y = forward_();
    check(y.dtype() == DType::float64, "gradcheck: the output must be float64; got {}", to_string(y.dtype()));
    return y;
  }

  void differentiate() {
    store_.clear_gradients();
    const Tensor y = record_forward();
    const RandomStream stream(options_.seed, RandomPurpose::gradcheck);
    cotangent_ = empty_like(y);
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      cotangent_.data<double>()[i] = stream.normal(static_cast<std::uint64_t>(i));
    }
    tape_.backward(y, cotangent_);
  }

  // ⟨cotangent, forward()⟩, summed in long double because the difference quotients cancel most of its digits.
  long double evaluate() {
    store_.mark_changed();
    const Tensor y = record_forward();
    tape_.clear();
    const std::span<const double> weights = std::as_const(cotangent_).values<double>(), values = y.values<double>();
    long double sum = 0;
    magnitude_ = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += static_cast<long double>(weights[i]) * static_cast<long double>(values[i]);
      magnitude_ += std::abs(weights[i] * values[i]);
    }
    return sum;
  }

  struct Difference {
    double value;
    bool halved;
  };

  Difference difference(const Parameter& parameter, const Probe& probe) {
    const std::span<double> values = store_.values().values<double>().subspan(
        static_cast<std::size_t>(parameter.offset()), static_cast<std::size_t>(parameter.shape().numel()));
    const std::vector<double> saved(values.begin(), values.end());
    const double at = probe.direction.empty() ? values[static_cast<std::size_t>(probe.entry)] : 0;
    double h = options_.step * std::max(1.0, std::abs(at));
    const auto shifted = [&](double by) {
      if (probe.direction.empty()) {
        values[static_cast<std::size_t>(probe.entry)] = at + by;
      } else {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = saved[i] + by * probe.direction[i];
      }
      return evaluate();
    };
    const auto across = [&](double by) {
      const long double right = shifted(by);
      return right - shifted(-by);
    };
    long double far = across(2 * h), near = across(h);
    const auto slope = [&] { return static_cast<double>((8 * near - far) / (12 * static_cast<long double>(h))); };
    double believed = slope(), last = believed, least_doubt = std::numeric_limits<double>::infinity();
    int halvings = 0;
    for (bool agree = false; halvings < options_.halvings && !agree; ++halvings) {
      h /= 2;
      far = std::exchange(near, across(h));
      const double gap = std::abs(slope() - last), noise = kRoundingNoise * magnitude_ / h;
      last = slope();
      agree = gap <= std::max(noise, kQuotientTolerance * std::abs(last));
      if (gap + noise < least_doubt) {
        least_doubt = gap + noise;
        believed = last;
      }
    }
    std::ranges::copy(saved, values.begin());
    store_.mark_changed();
    return {believed, halvings > 1};
  }

  std::vector<Probe> probes(const Parameter& parameter, std::span<const double> gradient) {
    const auto n = static_cast<std::int64_t>(gradient.size());
    std::vector<std::int64_t> order(gradient.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::vector<Probe> list;
    if (options_.directions > 0) {
      const auto magnitude = [&](std::int64_t i) { return std::abs(gradient[static_cast<std::size_t>(i)]); };
      std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return magnitude(a) > magnitude(b); });
      order.resize(static_cast<std::size_t>(std::min(n, options_.entries)));
    }
    list.reserve(order.size());
    for (const std::int64_t i : order) {
      list.push_back({fmt::format("entry {}", i), i, {}, gradient[static_cast<std::size_t>(i)]});
    }
    for (std::int64_t k = 0; k < options_.directions && n > 0; ++k) list.push_back(direction(parameter, gradient, k));
    return list;
  }

  // A random direction of length 1.
  Probe direction(const Parameter& parameter, std::span<const double> gradient, std::int64_t k) {
    const RandomStream stream(options_.seed + static_cast<std::uint64_t>(k) + 1, RandomPurpose::gradcheck,
                              parameter.name());
    Probe probe{fmt::format("direction {}", k), 0, std::vector<double>(gradient.size()), 0};
    double squares = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      probe.direction[i] = stream.normal(i);
      squares += probe.direction[i] * probe.direction[i];
    }
    for (double& d : probe.direction) d /= std::sqrt(squares);
    probe.analytic = std::inner_product(gradient.begin(), gradient.end(), probe.direction.begin(), 0.0);
    return probe;
  }

  GradcheckResult compare(const Parameter& parameter) {
    const Tensor gradient = parameter.gradient();
    GradcheckResult result;
    result.name = parameter.name();
    result.shape = parameter.shape();
    double differences = 0, analytic = 0, numeric = 0, worst = -1;
    for (const Probe& probe : probes(parameter, gradient.values<double>())) {
      const auto [n, halved] = difference(parameter, probe);
      const double distance = std::abs(probe.analytic - n);
      analytic += probe.analytic * probe.analytic;
      numeric += n * n;
      differences += distance * distance;
      ++result.compared;
      result.halved += halved ? 1 : 0;
      if (!std::isnan(worst) && !(distance <= worst)) {  // the first NaN stays
        worst = distance;
        result.worst = probe.name;
        result.worst_analytic = probe.analytic;
        result.worst_numeric = n;
      }
    }
    result.analytic_norm = std::sqrt(analytic);
    result.numeric_norm = std::sqrt(numeric);
    result.error = std::sqrt(differences);
    return result;
  }

  ParameterStore& store_;
  const std::function<Tensor()>& forward_;
  const GradcheckOptions& options_;
  Tape tape_;
  Tensor cotangent_;
  double magnitude_ = 0;  // Σ |cotangent · output| of the last evaluation
};

}  // namespace

std::vector<GradcheckResult> gradcheck(ParameterStore& store, const std::function<Tensor()>& forward,
                                       const GradcheckOptions& options) {
  check(store.dtype() == DType::float64, "gradcheck: parameters must be float64; got {}", to_string(store.dtype()));
  const Restoration restoration(store);
  return Checker(store, forward, options).run();
}

}  // namespace maki
