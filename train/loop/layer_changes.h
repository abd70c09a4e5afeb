// How large the parameters of each layer are, and how much a step changes them: a layer whose updates vanish or grow
// far beyond those of the others is seen before the loss shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "train/run/listener.h"

namespace maki {

/// The layer of a parameter: its name up to the first part that is a number, or without one its first part. "h.0" of
/// "h.0.attn.c_attn.weight", "wte" of "wte.weight".
std::string layer_of(const std::string& parameter);

class LayerChanges {
 public:
  /// Requires: the store outlives the object, and is sealed before the first call.
  explicit LayerChanges(const ParameterStore& store) : store_(store) {}

  /// Copies a sample of the parameters: at most 4096 elements of each, evenly spread.
  void before_step();
  /// The layers in the order of their first parameters, without frozen ones. The changes since before_step() are those
  /// of the samples, weighted by the sizes of the parameters.
  std::vector<LayerReport> after_step() const;

 private:
  const ParameterStore& store_;
  std::vector<std::vector<double>> before_;  // of each trainable parameter
};

}  // namespace maki
