// The messages with which a configuration refuses a text, and the configuration read from a text.
#pragma once

#include <string>

#include "autograd/core/check.h"
#include "tests/files.h"
#include "train/run/config/config.h"

namespace maki::tests {

/// What setting the field `name` to this text is refused with; empty if it is accepted.
inline std::string set(const std::string& name, const std::string& text) {
  return error_message<Error>([&] {
    Config config;
    set_field(config, find_field(name), text);
  });
}

/// The message for a whole configuration in TOML, which it calls some.toml.
inline std::string toml(const std::string& text) {
  return error_message<Error>([&] {
    Config config;
    apply_toml(config, text, "some.toml");
  });
}

/// The default configuration with what the TOML text sets. Throws Error if it is refused.
inline Config read_back(const std::string& text) {
  Config config;
  apply_toml(config, text, "echo");
  return config;
}

}  // namespace maki::tests
