#include "optim/sgd.h"

#include <cmath>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"

namespace maki {

Sgd::Sgd(ParameterStore& store, const SgdOptions& options)
    : FlatOptimizer(store,
                    options.momentum > 0 ? std::vector<FlatMoment>{{.name = "momentum"}} : std::vector<FlatMoment>{}),
      options_(options) {
  const SgdOptions& o = options;
  check(o.momentum >= 0 && o.momentum < 1, "sgd: momentum must be in [0, 1); got {}", o.momentum);
  check(!o.nesterov || o.momentum > 0, "sgd: nesterov requires a momentum above 0; got {}", o.momentum);
  check(std::isfinite(o.weight_decay) && o.weight_decay >= 0,
        "sgd: weight_decay must be finite and not negative; got {}", o.weight_decay);
}

void Sgd::update_group(const OptimizerStep& step, FlatUpdate& group) {
  const kernels::SgdStep s{.grad_scale = step.grad_scale,
                           .learning_rate = step.learning_rate,
                           .momentum = options_.momentum,
                           .weight_decay = group.decay ? options_.weight_decay : 0,
                           .nesterov = options_.nesterov};
  const Tensor& gradient = group.gradient;
  dispatch(gradient.dtype(), [&]<class T>() {
    T* const velocity = group.moments.empty() ? nullptr : group.moments[0].data<T>();
    kernels::sgd_step(s, gradient.numel(), gradient.data<T>(), group.value.data<T>(), velocity, group.take_rounded());
  });
}

}  // namespace maki
