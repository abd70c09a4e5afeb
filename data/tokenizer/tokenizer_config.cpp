#include "data/tokenizer/tokenizer_config.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/json_members.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"

namespace maki {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kRoles = "special_tokens_map.json";
constexpr const char* kAdded = "added_tokens.json";
constexpr const char* kTemplate = "chat_template.jinja";
constexpr const char* kNamedTemplates = "additional_chat_templates";  // a folder
constexpr const char* kUsualTemplate = "default";

// Empty if there is no such file.
std::string read_if_there(const fs::path& path) {
  constexpr std::size_t kMaxBytes = 8 << 20;  // far above real files, little memory for a hostile one
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  return read_file_limited(posix_file_system(), path.string(), kMaxBytes, throw_as<CorpusError>);
}

// An empty object if there is no such file.
json read_object(const fs::path& path) {
  constexpr int kMaxDepth = 16;  // far beyond real files; bounds what hostile ones take of the stack
  const std::string text = read_if_there(path);
  if (text.empty()) return json::object();
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    check<CorpusError>(depth <= kMaxDepth, "{}: its values may be nested {} deep; these are deeper", path.string(),
                       kMaxDepth);
    return true;
  };
  try {
    json object = json::parse(text, shallow);
    check<CorpusError>(object.is_object(), "{}: must be a JSON object", path.string());
    return object;
  } catch (const json::exception&) {
    fail<CorpusError>("{}: is not valid JSON in UTF-8", path.string());
  }
}

// The text of a special token, which is a string or an object with flags; empty if there is none.
std::string token_text(const json& token) {
  const json& content = token.is_object() ? member(token, "content") : token;
  return content.is_string() ? content.get<std::string>() : "";
}

// What both files say, of which the first takes precedence.
struct Named {
  std::map<std::string, std::string> roles;
  std::vector<std::string> additional;
  std::set<std::string> texts;  // of all of them

  Named(const json& config, const json& map) {
    for (const char* const role : kTokenRoles) {
      for (const json* const object : {&map, &config}) {
        const std::string text = token_text(member(*object, role));
        if (!text.empty()) roles[role] = text;
      }
    }
    for (const json* const object : {&config, &map}) {
      // The newer name of the list is an object in some files, whose members are named by the model.
      for (const char* const name : {"additional_special_tokens", "extra_special_tokens"}) {
        for (const json& token : member(*object, name)) {
          const std::string text = token_text(token);
          if (!text.empty() && texts.insert(text).second) additional.push_back(text);
        }
      }
    }
    for (const auto& [role, text] : roles) texts.insert(text);
  }
};

// The text by which a tokenizer.json names a token: an added one by itself, all others of bytes in the characters of
// GPT-2.
std::string name_of(const Tokenizer& tokenizer, std::int32_t id) {
  const BpeParts* const parts = tokenizer.bpe_parts();
  const bool added = parts != nullptr && is_added(parts->added, id);
  const std::string_view bytes = tokenizer.bytes(id);
  return is_byte_level(tokenizer) && !added ? to_byte_characters(bytes) : std::string(bytes);
}

// The ids of the tokens with these texts, each the first of its text.
std::map<std::string, std::int32_t> find_tokens(const Tokenizer& tokenizer, const std::set<std::string>& texts,
                                                const fs::path& folder) {
  std::map<std::string, std::int32_t> ids;
  for (const bool by_name : {true, false}) {  // some files name a token by its bytes
    if (ids.size() == texts.size()) break;
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string text = by_name ? name_of(tokenizer, id) : std::string(tokenizer.bytes(id));
      if (texts.contains(text)) ids.emplace(text, id);
    }
  }
  for (const std::string& text : texts) {
    if (ids.contains(text)) continue;
    fail<CorpusError>(
        "{}: the special token {} of {} or {} must be in the vocabulary, which lacks it; add it, or remove "
        "its role",
        folder.string(), truncate_for_message(text), kConfig, kRoles);
  }
  return ids;
}

// The files with a chat template each, by its name.
std::map<std::string, fs::path> template_files(const fs::path& folder) {
  std::map<std::string, fs::path> files = {{kUsualTemplate, folder / kTemplate}};
  const fs::path named = folder / kNamedTemplates;
  if (!is_directory(named.string())) return files;
  std::error_code error;
  for (fs::directory_iterator entry(named, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".jinja") files[entry->path().stem().string()] = entry->path();
  }
  check<CorpusError>(!error, "{}: cannot be listed: {}", named.string(), error.message());
  return files;
}

// By name. A template in a file of its own replaces that of the same name in tokenizer_config.json, as in transformers.
std::map<std::string, std::string> chat_templates(const fs::path& folder, const json& config) {
  constexpr std::size_t kMaxBytes = 256 << 10;  // of all templates together; real ones have some kilobytes
  std::map<std::string, std::string> templates;
  std::size_t bytes = 0;
  const auto add = [&](const std::string& name, const std::string& text) {
    bytes += name.size() + text.size();
    check<CorpusError>(bytes <= kMaxBytes, "{}: chat templates may have at most {} bytes; these have more",
                       folder.string(), kMaxBytes);
    templates[name] = text;
  };
  const json& stored = member(config, "chat_template");
  if (stored.is_string()) add(kUsualTemplate, stored.get<std::string>());
  for (const json& each : stored.is_array() ? stored : json::array()) {
    const json &name = member(each, "name"), &text = member(each, "template");
    check<CorpusError>(name.is_string() && text.is_string(), "{}: a chat_template must have a name and a template",
                       (folder / kConfig).string());
    add(name.get<std::string>(), text.get<std::string>());
  }
  for (const auto& [name, path] : template_files(folder)) {
    if (const std::string text = read_if_there(path); !text.empty()) add(name, text);
  }
  return templates;
}

nlohmann::ordered_json special_tokens(const Tokenizer& tokenizer) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  const std::map<std::string, std::int32_t> roles = complete_use(tokenizer).roles;
  for (const char* const role : kTokenRoles) {
    if (const auto found = roles.find(role); found != roles.end()) j[role] = name_of(tokenizer, found->second);
  }
  for (const std::int32_t id : tokenizer.use().additional)
    j["additional_special_tokens"].push_back(name_of(tokenizer, id));
  return j;
}

std::string text_of_file(const nlohmann::ordered_json& j) {
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> files_beside_vocabulary() { return {kConfig, kRoles, kAdded, kTemplate, kNamedTemplates}; }

void add_tokens_beside(const fs::path& folder, VocabularyText& vocabulary) {
  const json config = read_object(folder / kConfig), map = read_object(folder / kRoles),
             added = read_object(folder / kAdded);
  check<CorpusError>(!is_true(config, "add_prefix_space"),
                     "{}: add_prefix_space must be false, because no space is put before a text here; got true",
                     (folder / kConfig).string());
  std::set<std::string> known;
  for (std::size_t i = 0; i < vocabulary.added.size(); ++i) known.emplace(vocabulary.added[i]);
  const json listed =
      member(config, "added_tokens_decoder").is_object() ? config["added_tokens_decoder"] : json::object();
  for (const auto& [key, token] : listed.items()) {
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    check<CorpusError>(error == std::errc() && end == key.data() + key.size(),
                       "{}: the members of added_tokens_decoder must be named by ids; got {}",
                       (folder / kConfig).string(), truncate_for_message(key));
    if (known.insert(token_text(token)).second) add_token(token, json(id), vocabulary);
  }
  Named named(config, map);
  for (const auto& [text, id] : added.items()) {
    if (known.insert(text).second)
      add_token({{"content", text}, {"special", named.texts.contains(text)}}, id, vocabulary);
  }
  vocabulary.roles = std::move(named.texts);
}

TokenUse read_token_use(const fs::path& folder, const Tokenizer& tokenizer) {
  const json config = read_object(folder / kConfig);
  const Named named(config, read_object(folder / kRoles));
  const std::map<std::string, std::int32_t> ids = find_tokens(tokenizer, named.texts, folder);
  TokenUse use;
  for (const auto& [role, text] : named.roles) use.roles[role] = ids.at(text);
  for (const std::string& text : named.additional) use.additional.push_back(ids.at(text));
  if (const auto end = use.roles.find("eos_token"); end != use.roles.end()) use.ends = {end->second};
  use.chat_templates = chat_templates(folder, config);
  return use;
}

TokenUse complete_use(const Tokenizer& tokenizer) {
  TokenUse use = tokenizer.use();
  const std::optional<std::int32_t> end = tokenizer.end_of_text();
  if (use == TokenUse()) use.begin = use.pad = end;
  use.ends = tokenizer.ends();
  if (end) use.roles.emplace("eos_token", *end);
  if (use.begin) use.roles.emplace("bos_token", *use.begin);
  if (use.pad) use.roles.emplace("pad_token", *use.pad);
  if (const auto eos = use.roles.find("eos_token"); eos != use.roles.end()) use.roles.emplace("pad_token", eos->second);
  return use;
}

std::string tokenizer_config_json(const Tokenizer& tokenizer, std::int64_t context) {
  nlohmann::ordered_json j = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                              {"model_max_length", context},
                              {"clean_up_tokenization_spaces", false}};
  j.update(special_tokens(tokenizer));
  const std::map<std::string, std::string>& templates = tokenizer.use().chat_templates;
  if (templates.size() == 1 && templates.contains(kUsualTemplate)) {
    j["chat_template"] = templates.at(kUsualTemplate);
  } else {
    for (const auto& [name, text] : templates) j["chat_template"].push_back({{"name", name}, {"template", text}});
  }
  return text_of_file(j);
}

std::string special_tokens_map_json(const Tokenizer& tokenizer) { return text_of_file(special_tokens(tokenizer)); }

}  // namespace maki
