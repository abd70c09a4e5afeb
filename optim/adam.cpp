#include "optim/adam.h"

#include <cmath>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"

namespace maki {
namespace {

bool is_fraction(double x) { return x >= 0 && x < 1; }

}  // namespace

void check_adam_options(const char* name, const AdamOptions& o, DType dtype) {
  check(is_fraction(o.beta1) && is_fraction(o.beta2), "{}: beta1 and beta2 must be in [0, 1); got {} and {}", name,
        o.beta1, o.beta2);
  check(std::isfinite(o.eps) && o.eps > 0, "{}: eps must be finite and above 0; got {}", name, o.eps);
  check(dtype == DType::float64 || static_cast<float>(o.eps) > 0, "{}: eps must be above 0 in float32; got {}", name,
        o.eps);
  check(std::isfinite(o.weight_decay) && o.weight_decay >= 0,
        "{}: weight_decay must be finite and not negative; got {}", name, o.weight_decay);
}

void update_adam(const AdamOptions& options, bool decoupled, bool decay, const OptimizerStep& step,
                 const Tensor& gradient, Tensor& value, Tensor& exp_avg, Tensor& exp_avg_sq, BFloat16* rounded) {
  const auto t = static_cast<double>(step.number);
  const kernels::AdamStep s{.grad_scale = step.grad_scale,
                            .learning_rate = step.learning_rate,
                            .beta1 = options.beta1,
                            .beta2 = options.beta2,
                            .eps = options.eps,
                            .weight_decay = decay ? options.weight_decay : 0,
                            .decoupled = decoupled,
                            .correction1 = 1 - std::pow(options.beta1, t),
                            .correction2 = 1 - std::pow(options.beta2, t)};
  dispatch(value.dtype(), [&]<class T>() {
    kernels::adam_step(s, value.numel(), gradient.data<T>(), value.data<T>(), exp_avg.data<T>(), exp_avg_sq.data<T>(),
                       rounded);
  });
}

Adam::Adam(const char* name, ParameterStore& store, const AdamOptions& options, bool decoupled)
    : FlatOptimizer(store, {{.name = "exp_avg"}, {.name = "exp_avg_sq", .may_be_negative = false}}),
      options_(options),
      decoupled_(decoupled) {
  check_adam_options(name, options, store.dtype());
}

void Adam::update_group(const OptimizerStep& step, FlatUpdate& group) {
  update_adam(options_, decoupled_, group.decay, step, group.gradient, group.value, group.moments[0], group.moments[1],
              group.take_rounded());
}

AdamW::AdamW(ParameterStore& store, const AdamWOptions& options)
    : Adam("adamw", store,
           {.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps, .weight_decay = options.weight_decay},
           true) {}

}  // namespace maki
