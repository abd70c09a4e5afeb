// Members of JSON objects in the files of other programs, and added tokens as these files describe them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/tokenizer/vocabulary_text.h"

namespace maki {

/// The member of an object; null if there is none.
const nlohmann::json& member(const nlohmann::json& object, const char* name);
inline bool is_true(const nlohmann::json& object, const char* name) {
  return member(object, name) == nlohmann::json(true);
}
/// A value in a message.
std::string text_of(const nlohmann::json& value);
/// Throws CorpusError: `what` must be `known`, and is `value`.
[[noreturn]] void refuse(const char* what, const nlohmann::json& value, const char* known);

/// Adds the token of an object with its text as `content`, and flags. Throws CorpusError if it is none, or `id` is no
/// id.
void add_token(const nlohmann::json& token, const nlohmann::json& id, VocabularyText& vocabulary);

}  // namespace maki
