#include "data/tokenizer/json_members.h"

#include <limits>

#include "autograd/core/check.h"
#include "data/io/error.h"

namespace maki {

using nlohmann::json;

const json& member(const json& object, const char* name) {
  static const json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

std::string text_of(const json& value) {
  return truncate_for_message(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

void refuse(const char* what, const json& value, const char* known) {
  fail<CorpusError>("tokenizer: {} must be {}; got {}", what, known, text_of(value));
}

void add_token(const json& token, const json& id, VocabularyText& vocabulary) {
  const json& content = member(token, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty() || !id.is_number_unsigned() ||
      id.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
    refuse("added_tokens", token, "a list of tokens with a content and an id below 2^31");
  const bool special = member(token, "special") != json(false);
  vocabulary.added.add(content.get_ref<const std::string&>());
  vocabulary.added_tokens.push_back({.id = id.get<std::int32_t>(),
                                     .special = special,
                                     .always = !special,
                                     .lstrip = is_true(token, "lstrip"),
                                     .rstrip = is_true(token, "rstrip"),
                                     .single_word = is_true(token, "single_word"),
                                     .normalized = is_true(token, "normalized")});
}

}  // namespace maki
