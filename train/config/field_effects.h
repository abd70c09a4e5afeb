// Which fields have an effect only together with a value of another field.
#pragma once

#include <span>

#include "train/config/config.h"

namespace maki {

/// Throws Error, which says what each of them needs, if one of the fields that a user has given, by name, has no effect
/// with this configuration: an option that is silently ignored would be taken for one that did not help.
void require_effect(const Config& config, std::span<const std::string> given);

}  // namespace maki
