// What config.json and generation_config.json say about the use of the vocabulary, read and written.
#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/file_system.h"
#include "train/run/convert/hugging_face.h"
#include "train/run/convert/json_file.h"

namespace maki {
namespace {

// One id, or a list of them. Those below 0 stand for no token.
std::vector<std::int32_t> token_ids(const nlohmann::json& object, const char* name, const std::string& path) {
  if (!object.contains(name) || object[name].is_null()) return {};
  const nlohmann::json& value = object[name];
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : value.is_array() ? value : nlohmann::json::array({value})) {
    // Numbers above 2^63 would become negative ones.
    const bool good = id.is_number_unsigned() ? id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max()
                                              : id.is_number_integer();
    check<CheckpointError>(good, "{}: {} must be an id or a list of ids; got {}", path, name,
                           truncate_for_message(value.dump()));
    if (id.get<std::int64_t>() >= 0) ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

TokenUse read_use(const std::string& directory) {
  const std::string path = directory + "/config.json", generation_path = directory + "/generation_config.json";
  const nlohmann::json config = read_json_object(path);
  const nlohmann::json generation =
      file_exists(generation_path) ? read_json_object(generation_path) : nlohmann::json::object();
  const auto ids = [&](const char* name) {
    const std::vector<std::int32_t> first = token_ids(generation, name, generation_path);
    return first.empty() ? token_ids(config, name, path) : first;
  };
  const auto one = [&](const char* name) {
    const std::vector<std::int32_t> list = ids(name);
    return list.empty() ? std::optional<std::int32_t>() : list.front();
  };
  return {.ends = ids("eos_token_id"), .begin = one("bos_token_id"), .pad = one("pad_token_id")};
}

void put_use(nlohmann::ordered_json& j, const TokenUse& use) {
  const auto id_or_null = [](std::optional<std::int32_t> id) {
    return id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json();
  };
  j["bos_token_id"] = id_or_null(use.begin);
  j["eos_token_id"] = use.ends.size() > 1    ? nlohmann::ordered_json(use.ends)
                      : use.ends.size() == 1 ? nlohmann::ordered_json(use.ends[0])
                                             : nlohmann::ordered_json();
  if (use.pad) j["pad_token_id"] = *use.pad;
}

std::string generation_config(const TokenUse& use) {
  nlohmann::ordered_json j;
  put_use(j, use);
  return j.dump(2) + "\n";
}

}  // namespace maki
