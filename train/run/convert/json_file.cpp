#include "train/run/convert/json_file.h"

#include <cmath>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {
namespace {

// Far above a config.json, which has some KiB; they bound the memory that a hostile file takes.
constexpr std::size_t kMaxJsonBytes = 512 << 10;
constexpr int kMaxJsonDepth = 8;

std::string shown(const nlohmann::json& value) {
  return truncate_for_message(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

nlohmann::json read_json_object(const std::string& path) {
  const std::string text = read_file_limited(posix_file_system(), path, kMaxJsonBytes);
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    check<CheckpointError>(depth <= kMaxJsonDepth, "{}: its values may be nested {} deep; these are deeper", path,
                           kMaxJsonDepth);
    return true;
  };
  try {
    nlohmann::json object = nlohmann::json::parse(text, shallow);
    check<CheckpointError>(object.is_object(), "{}: must be a JSON object", path);
    return object;
  } catch (const nlohmann::json::exception&) {
    fail<CheckpointError>("{}: is not valid JSON in UTF-8", path);
  }
}

std::int64_t JsonFields::integer(const char* name, std::int64_t most) const {
  check<CheckpointError>(has(name), "{}: must contain {}", path_, name);
  const nlohmann::json& value = object_[name];
  const bool good = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  check<CheckpointError>(good, "{}: {} must be a whole number from 1 to {}; got {}", path_, name, most, shown(value));
  return value.get<std::int64_t>();
}

std::int64_t JsonFields::integer(const char* name, std::int64_t most, std::int64_t absent) const {
  return has(name) ? integer(name, most) : absent;
}

double JsonFields::number(const char* name, double absent) const {
  if (!has(name)) return absent;
  const nlohmann::json& value = object_[name];
  check<CheckpointError>(value.is_number() && std::isfinite(value.get<double>()), "{}: {} must be a number; got {}",
                         path_, name, shown(value));
  return value.get<double>();
}

bool JsonFields::boolean(const char* name, bool absent) const {
  if (!has(name)) return absent;
  const nlohmann::json& value = object_[name];
  check<CheckpointError>(value.is_boolean(), "{}: {} must be true or false; got {}", path_, name, shown(value));
  return value.get<bool>();
}

std::string JsonFields::text(const char* name, const std::string& absent) const {
  if (!has(name)) return absent;
  const nlohmann::json& value = object_[name];
  check<CheckpointError>(value.is_string(), "{}: {} must be a string; got {}", path_, name, shown(value));
  return value.get<std::string>();
}

}  // namespace maki
