// A state as the type that its model made.
#pragma once

#include "autograd/core/check.h"
#include "nn/model.h"

namespace maki {

/// The state as a T. Throws Error, with the name of the model and the rule, if it is of another type.
template <class T>
T& state_of(State& state, const char* model, const char* rule = "next_logits() needs a state made by start()") {
  T* const own = dynamic_cast<T*>(&state);
  check(own != nullptr, "{}: {}", model, rule);
  return *own;
}

}  // namespace maki
