// Whether fields have an effect: the conditions of their rows in config_fields.cpp, checked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config/config.h"

namespace maki {

/// Throws Error if one of the fields that a user has given, by name (as in TOML), has no effect with this
/// configuration: an option that is silently ignored would be taken for one that did not help. The message says of the
/// first of them what it needs. A value that asks for nothing, such as false, is accepted. Fields of the learning rate
/// have no effect beside phases. What config.corpus denotes is looked up, if it names anything.
void require_effect(const Config& config, std::span<const std::string> given);

/// Throws Error for a value without an effect in a field whose value alone says that something was asked for, wherever
/// it comes from (Condition::always): for validate().
void require_effective_values(const Config& config);

/// Whether the conditions of this field hold. One of a corpus that is not known holds.
bool has_effect(const Config& config, std::string_view name);

/// The value of a field, as the text of its option; for kCorpus, corpus_kind().
std::string value_text(const Config& config, std::string_view name);

/// What config.corpus denotes: "a file", "a directory", "tokens" or "a built-in text"; empty without sources, or if the
/// first does not exist. Standard input is "a file". Throws what token_file_paths() throws.
std::string corpus_kind(const Config& config);

}  // namespace maki
