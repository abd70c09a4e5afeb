#include "data/tokenizer/token_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/io/error.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

std::string token_use_json(const TokenUse& use) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  if (!use.ends.empty()) j["ends"] = use.ends;
  if (use.begin) j["begin"] = *use.begin;
  if (use.pad) j["pad"] = *use.pad;
  if (!use.roles.empty()) j["roles"] = use.roles;
  if (!use.additional.empty()) j["additional"] = use.additional;
  if (!use.chat_templates.empty()) j["chat_templates"] = use.chat_templates;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

TokenUse parse_token_use(std::string_view saved, std::int64_t vocab_size) {
  TokenUse use;
  const auto require = [](bool good) {
    check<CorpusError>(good, "tokenizer: what is saved about the use of its tokens is damaged");
  };
  constexpr std::size_t kMaxBytes = 2 << 20;  // far above real chat templates
  constexpr int kMaxDepth = 2;                // an object with lists and objects of plain values
  require(saved.size() <= kMaxBytes);
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    require(depth <= kMaxDepth);
    return true;
  };
  try {
    const nlohmann::json j = nlohmann::json::parse(saved, shallow);
    if (j.contains("ends")) j["ends"].get_to(use.ends);
    if (j.contains("begin")) use.begin = j["begin"].get<std::int32_t>();
    if (j.contains("pad")) use.pad = j["pad"].get<std::int32_t>();
    if (j.contains("roles")) j["roles"].get_to(use.roles);
    if (j.contains("additional")) j["additional"].get_to(use.additional);
    if (j.contains("chat_templates")) j["chat_templates"].get_to(use.chat_templates);
  } catch (const nlohmann::json::exception&) {
    require(false);
  }
  require(token_use_json(use) == saved);
  for (const std::int32_t id : use.ends) check_token_id(id, vocab_size);
  for (const std::int32_t id : use.additional) check_token_id(id, vocab_size);
  for (const auto& id : {use.begin, use.pad}) check_token_id(id.value_or(0), vocab_size);
  for (const auto& [role, id] : use.roles) {
    require(std::ranges::find(kTokenRoles, role) != std::end(kTokenRoles));
    check_token_id(id, vocab_size);
  }
  return use;
}

}  // namespace maki
