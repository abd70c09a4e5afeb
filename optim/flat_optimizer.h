// The base of optimizers that treat every element alike, such as SGD and Adam: one pass over the flat memory of each
// group, whatever the number and shapes of the parameters in it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace maki {

/// All parameters of one group, or a part of them: flat tensors of the same length, padding included, which share the
/// memory of the store and of the moments. Padding is zero in all of them and must stay zero.
struct FlatUpdate {
  bool decay = false;  ///< whether weight decay applies to the group
  Tensor value, gradient;
  std::vector<Tensor> moments;  ///< in the order in which the constructor names them

  /// Where the caller then also stores the new values, rounded, as kernels/optimizer.h does; null: nowhere. If an
  /// update does not call this, a pass of its own rounds the values.
  BFloat16* take_rounded() { return std::exchange(rounded, nullptr); }
  BFloat16* rounded = nullptr;
};

class FlatOptimizer : public Optimizer {
 protected:
  struct FlatMoment {
    std::string name;
    bool may_be_negative = true;
  };
  /// Every parameter has these moments, in its own shape.
  FlatOptimizer(ParameterStore& store, std::vector<FlatMoment> moments);

  /// Updates one group: called for `decay` and then for `no_decay`.
  virtual void update_group(const OptimizerStep& step, FlatUpdate& group) = 0;

 private:
  std::vector<MomentSpec> moments_of(const Parameter& parameter) const final;
  bool updates_elements_of(const Parameter&) const final { return true; }
  void update(const OptimizerStep& step, FlatRange range) final;

  std::vector<FlatMoment> flat_moments_;
  FlatUpdate update_;  // a member, so that its list keeps its memory and a step allocates none
};

}  // namespace maki
