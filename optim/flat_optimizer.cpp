#include "optim/flat_optimizer.h"

#include <utility>

namespace maki {

FlatOptimizer::FlatOptimizer(ParameterStore& store, std::vector<FlatMoment> moments)
    : Optimizer(store), flat_moments_(std::move(moments)) {}

std::vector<MomentSpec> FlatOptimizer::moments_of(const Parameter& parameter) const {
  std::vector<MomentSpec> specs;
  for (const FlatMoment& moment : flat_moments_) {
    specs.push_back({moment.name, parameter.shape(), moment.may_be_negative});
  }
  return specs;
}

void FlatOptimizer::update(const OptimizerStep& step) {
  for (const ParamGroup group : {ParamGroup::decay, ParamGroup::no_decay}) {
    const FlatRange range = store().range(group);
    const auto part = [&](const Tensor& flat) { return flat.slice_flat(range.begin, Shape{range.size()}); };
    FlatUpdate update{group == ParamGroup::decay, part(store().values()), part(store().gradients()), {}};
    for (const Moment& moment : moments()) update.moments.push_back(part(moment.values));
    update_group(step, update);
  }
}

}  // namespace maki
