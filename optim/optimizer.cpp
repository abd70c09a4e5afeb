#include "optim/optimizer.h"

#include <cmath>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"

namespace maki {
namespace {

bool is_fraction(double x) { return x >= 0 && x < 1; }

void check_decay(const char* op, double weight_decay) {
  check(std::isfinite(weight_decay) && weight_decay >= 0, "{}: weight_decay must be finite and not negative; got {}",
        op, weight_decay);
}

void check_options(const Sgd& o) {
  check(is_fraction(o.momentum), "sgd: momentum must be in [0, 1); got {}", o.momentum);
  check(!o.nesterov || o.momentum > 0, "sgd: nesterov requires a momentum above 0; got {}", o.momentum);
  check_decay("sgd", o.weight_decay);
}

template <class A>
void check_adam(const char* op, const A& o) {
  check(is_fraction(o.beta1) && is_fraction(o.beta2), "{}: beta1 and beta2 must be in [0, 1); got {} and {}", op,
        o.beta1, o.beta2);
  check(std::isfinite(o.eps) && o.eps > 0, "{}: eps must be finite and above 0; got {}", op, o.eps);
  check_decay(op, o.weight_decay);
}
void check_options(const Adam& o) { check_adam("adam", o); }
void check_options(const AdamW& o) { check_adam("adamw", o); }

kernels::AdamStep adam_of(const Adam& o) {
  return {.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay, .decoupled = false};
}
kernels::AdamStep adam_of(const AdamW& o) {
  return {.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay, .decoupled = true};
}

}  // namespace

std::vector<std::string> moment_names(const OptimizerOptions& options) {
  const Sgd* const sgd = std::get_if<Sgd>(&options);
  if (sgd == nullptr) return {"exp_avg", "exp_avg_sq"};
  if (sgd->momentum > 0) return {"momentum"};
  return {};
}

Optimizer::Optimizer(ParameterStore& store, const OptimizerOptions& options) : store_(store), options_(options) {
  std::visit([](const auto& o) { check_options(o); }, options_);
}

std::vector<Optimizer::Moment>& Optimizer::moments() {
  if (moments_.empty()) {
    const std::int64_t size = store_.values().numel() - store_.range(ParamGroup::frozen).size();
    for (const std::string& name : moment_names(options_)) {
      moments_.push_back({name, zeros(Shape{size}, store_.dtype())});
    }
  }
  return moments_;
}

void Optimizer::set_steps(std::int64_t steps) {
  check(steps >= 0, "optimizer: the number of steps must not be negative; got {}", steps);
  steps_ = steps;
}

template <class T>
void Optimizer::update(FlatRange range, double learning_rate, double grad_scale, bool decay) {
  const std::int64_t n = range.size();
  const T* const gradient = store_.gradients().data<T>() + range.begin;
  T* const value = store_.values().data<T>() + range.begin;
  const auto moment = [&](std::size_t i) {
    return i < moments_.size() ? moments_[i].values.template data<T>() + range.begin : nullptr;
  };
  if (const Sgd* const o = std::get_if<Sgd>(&options_)) {
    const kernels::SgdStep s{.grad_scale = grad_scale,
                             .learning_rate = learning_rate,
                             .momentum = o->momentum,
                             .weight_decay = decay ? o->weight_decay : 0,
                             .nesterov = o->nesterov};
    kernels::sgd_step(s, n, gradient, value, moment(0));
    return;
  }
  const Adam* const adam = std::get_if<Adam>(&options_);
  kernels::AdamStep s = adam != nullptr ? adam_of(*adam) : adam_of(std::get<AdamW>(options_));
  s.grad_scale = grad_scale;
  s.learning_rate = learning_rate;
  if (!decay) s.weight_decay = 0;
  s.correction1 = 1 - std::pow(s.beta1, static_cast<double>(steps_ + 1));
  s.correction2 = 1 - std::pow(s.beta2, static_cast<double>(steps_ + 1));
  kernels::adam_step(s, n, gradient, value, moment(0), moment(1));
}

void Optimizer::step(double learning_rate, double grad_scale) {
  check(std::isfinite(learning_rate) && learning_rate >= 0,
        "optimizer: the learning rate must be finite and not negative; got {}", learning_rate);
  check(std::isfinite(grad_scale) && grad_scale >= 0,
        "optimizer: the gradient scale must be finite and not negative; got {}", grad_scale);
  moments();
  dispatch(store_.dtype(), [&]<class T>() {
    update<T>(store_.range(ParamGroup::decay), learning_rate, grad_scale, true);
    update<T>(store_.range(ParamGroup::no_decay), learning_rate, grad_scale, false);
  });
  ++steps_;
  store_.mark_changed();
  store_.clear_gradients();
}

}  // namespace maki
