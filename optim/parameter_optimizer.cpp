#include "optim/parameter_optimizer.h"

#include <cstddef>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"

namespace maki {

Tensor& ParameterUpdate::moment(std::string_view name) {
  for (auto& [moment, values] : moments) {
    if (moment == name) return values;
  }
  fail("optimizer: parameter {} has no moment {}; declare it in moments_of()", parameter.name(), name);
}

void ParameterOptimizer::update(const OptimizerStep& step) {
  next_.assign(moments().size(), 0);
  for (const ParamGroup group : {ParamGroup::decay, ParamGroup::no_decay}) {
    for (const auto& parameter : store().parameters()) {
      if (parameter->group() != group) continue;
      const auto part = [&](const Tensor& flat) { return flat.slice_flat(parameter->offset(), parameter->shape()); };
      ParameterUpdate update{*parameter, part(store().values()), part(store().gradients()), std::move(moments_)};
      for (std::size_t i = 0; i < next_.size(); ++i) {
        const Moment& moment = moments()[i];
        if (next_[i] == moment.parts.size() || moment.parts[next_[i]].parameter != parameter.get()) continue;
        const MomentLayout::Part& own = moment.parts[next_[i]++];
        update.moments.emplace_back(moment.name, moment.values.slice_flat(own.offset, own.shape));
      }
      update_parameter(step, update);
      moments_ = std::move(update.moments);
      moments_.clear();
    }
  }
  round_values();
}

// A pass of its own, because the rules of the parameters need not know of the rounded copy.
void ParameterOptimizer::round_values() {
  BFloat16* const rounded = store().rounded_memory();
  if (rounded == nullptr) return;
  const std::int64_t n = store().range(ParamGroup::decay).size();
  kernels::round_values(n, std::as_const(store()).values().data<float>(), rounded);
  store().mark_rounded();
}

}  // namespace maki
