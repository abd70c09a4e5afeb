#include "optim/parameter_optimizer.h"

#include <algorithm>
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

void ParameterOptimizer::update(const OptimizerStep& step, FlatRange range) {
  const Tensor &values = store().values(), &gradients = store().gradients();  // which looks at every parameter
  next_.assign(moments().size(), 0);
  begin(range);
  for (const ParamGroup group : {ParamGroup::decay, ParamGroup::no_decay}) {
    for (const auto& parameter : store().parameters()) {
      if (parameter->group() != group) continue;
      const std::int64_t first = parameter->offset(), size = parameter->shape().numel();
      const std::int64_t begin = std::clamp<std::int64_t>(range.begin - first, 0, size);
      const std::int64_t end = std::clamp<std::int64_t>(range.end - first, 0, size);
      const bool updates = begin < end || size == 0;
      const auto part = [&](const Tensor& flat, std::int64_t offset, const Shape& shape) {
        if (end - begin == size) return flat.slice_flat(offset, shape);
        return flat.slice_flat(offset + begin, Shape{end - begin});
      };
      ParameterUpdate update{*parameter, part(values, first, parameter->shape()),
                             part(gradients, first, parameter->shape()), std::move(moments_)};
      for (std::size_t i = 0; i < next_.size(); ++i) {
        const Moment& moment = moments()[i];
        if (next_[i] == moment.parts.size() || moment.parts[next_[i]].parameter != parameter.get()) continue;
        const MomentLayout::Part& own = moment.parts[next_[i]++];
        if (updates) update.moments.emplace_back(moment.name, part(moment.values, own.offset, own.shape));
      }
      if (updates) update_parameter(step, update);
      moments_ = std::move(update.moments);
      moments_.clear();
    }
  }
  finish(step);
}

}  // namespace maki
