// The base of optimizers that see one parameter at a time, with its name, shape and group. Rules and moments may differ
// from parameter to parameter: Muon, for example, orthogonalizes the updates of hidden matrices and leaves the rest to
// AdamW (see update_adam() in optim/adam.h).
//
//   class Momentum : public ParameterOptimizer {
//     std::vector<MomentSpec> moments_of(const Parameter& p) const override { return {{"momentum", p.shape()}}; }
//     void update_parameter(const OptimizerStep& step, ParameterUpdate& p) override {
//       Tensor& momentum = p.moment("momentum");
//       …
//     }
//   };
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/optimizer.h"

namespace maki {

/// One parameter during a step, or a part of it if it is elementwise. The tensors share the memory of the store and of
/// the moments.
struct ParameterUpdate {
  const Parameter& parameter;  ///< name, shape and group
  Tensor value, gradient;      ///< of the shape of the parameter; of a part, [n]
  std::vector<std::pair<std::string_view, Tensor>> moments;

  bool decay() const { return parameter.group() == ParamGroup::decay; }  ///< whether weight decay applies to it
  /// The moment of this name, in the shape that was declared for this parameter, or of a part, [n]. Throws Error if
  /// none was.
  Tensor& moment(std::string_view name);
};

class ParameterOptimizer : public Optimizer {
 protected:
  explicit ParameterOptimizer(ParameterStore& store) : Optimizer(store) {}

  /// Updates one parameter of group `decay` or `no_decay`. Called in the order of the flat values: one after another,
  /// on the calling thread.
  virtual void update_parameter(const OptimizerStep& step, ParameterUpdate& parameter) = 0;
  /// Called before the first parameter of a range is updated and after the last one, for rules that update several at
  /// once, or need memory: if begin() throws, nothing of the range has changed.
  virtual void begin(FlatRange /*range*/) {}
  virtual void finish(const OptimizerStep& /*step*/) {}
  bool updates_elements_of(const Parameter&) const override { return false; }

 private:
  void update(const OptimizerStep& step, FlatRange range) final;

  // Members, so that they keep their memory and a step allocates none.
  std::vector<std::size_t> next_;  // per moment: its first part that was not reached yet in this step
  std::vector<std::pair<std::string_view, Tensor>> moments_;
};

}  // namespace maki
