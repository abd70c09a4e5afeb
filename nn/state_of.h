// A state as the type that its model made.
#pragma once

#include <cstdint>

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

/// Throws Error, with the name of the model, unless its state has as many layers as it has.
inline void check_layers(const char* model, std::int64_t of_state, std::int64_t of_model) {
  check(of_state == of_model,
        "{}: the state must have as many layers as the model, {}; got {}; a state belongs to the model that made it",
        model, of_model, of_state);
}

}  // namespace maki
