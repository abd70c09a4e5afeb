#include "optim/parameter_optimizer.h"

#include <cstddef>
#include <utility>

#include "autograd/core/check.h"

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
}

}  // namespace maki
