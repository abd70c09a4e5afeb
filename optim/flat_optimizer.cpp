#include "optim/flat_optimizer.h"

#include <algorithm>
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

void FlatOptimizer::update(const OptimizerStep& step, FlatRange whole) {
  for (const ParamGroup group : {ParamGroup::decay, ParamGroup::no_decay}) {
    const FlatRange all = store().range(group);
    const FlatRange range{std::max(all.begin, whole.begin), std::min(all.end, whole.end)};
    if (range.size() <= 0) continue;
    const auto part = [&](const Tensor& flat) { return flat.slice_flat(range.begin, Shape{range.size()}); };
    update_.decay = group == ParamGroup::decay;
    update_.value = part(store().values());
    update_.gradient = part(store().gradients());
    const bool complete = range.size() == all.size();  // else the others are rounded once they are known
    update_.rounded = update_.decay && complete ? store().rounded_memory() : nullptr;
    update_.moments.clear();
    for (std::size_t i = 0; i < flat_moments_.size(); ++i) update_.moments.push_back(part(moments()[i].values));
    const bool rounds = update_.rounded != nullptr;
    update_group(step, update_);
    if (rounds && update_.rounded == nullptr) store().mark_rounded();  // the update has taken it
  }
  update_.value = update_.gradient = {};  // otherwise they would keep blocks alive that the store has replaced
  update_.moments.clear();
}

}  // namespace maki
