// Which fields have an effect only together with a value of another field, such as the model or the task, or only for
// some kinds of corpora. One table says it for all of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/run/config/config.h"

namespace maki {

/// Throws Error if one of the fields that a user has given, by name (as in TOML), has no effect with this
/// configuration: an option that is silently ignored would be taken for one that did not help. The message says of the
/// first of them what it needs. A value that asks for nothing, such as false, is accepted. Fields of the learning rate
/// have no effect beside phases; other fields and names without an entry in the table of field_effects.cpp are
/// accepted. What config.corpus denotes is looked up, if it names anything.
void require_effect(const Config& config, std::span<const std::string> given);

/// Throws Error for a value without an effect in a field whose value alone says that something was asked for, wherever
/// it comes from: for validate().
void require_effective_values(const Config& config);

/// What config.corpus denotes: "a file", "a directory", "tokens" or "a built-in text"; empty without sources, or if the
/// first does not exist. Standard input is "a file". Throws what token_file_paths() throws.
std::string corpus_kind(const Config& config);

}  // namespace maki
