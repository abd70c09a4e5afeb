// The messages with which a configuration refuses a text, and the configuration read from a text.
#pragma once

#include <string>

#include "autograd/core/check.h"
#include "tests/files.h"
#include "train/config/config.h"

namespace maki::tests {

inline std::string set(const std::string& name, const std::string& text) {
  return error_message<Error>([&] {
    Config config;
    set_field(config, find_field(name), text);
  });
}

inline std::string toml(const std::string& text) {
  return error_message<Error>([&] {
    Config config;
    apply_toml(config, text, "some.toml");
  });
}

inline Config read_back(const std::string& text) {
  Config config;
  apply_toml(config, text, "echo");
  return config;
}

}  // namespace maki::tests
