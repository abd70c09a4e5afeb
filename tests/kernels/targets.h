// A test on every SIMD target of this machine.
#pragma once

#include <string>

#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"

namespace maki::tests {

/// Runs body() on every target of this CPU. Restores the default target afterwards, unless body() throws, as a failed
/// REQUIRE does.
template <class Body>
void on_every_target(const Body& body) {
  for (const std::string& name : kernels::available_targets()) {
    kernels::force_target(name);
    INFO("target " << kernels::target());
    body();
  }
  kernels::force_target("");
}

}  // namespace maki::tests
