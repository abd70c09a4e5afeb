// Which fields have an effect only together with a value of another field.
#pragma once

#include <span>

#include "train/config/config.h"

namespace maki {

/// Throws Error if one of the fields that a user has given, by name (as in TOML), has no effect with this
/// configuration: an option that is silently ignored would be taken for one that did not help. The message says of the
/// first of them what it needs. Fields of the learning rate have no effect beside phases; other fields and names
/// without an entry in the table of field_effects.cpp are accepted.
void require_effect(const Config& config, std::span<const std::string> given);

}  // namespace maki
