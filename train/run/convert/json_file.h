// Small JSON files that describe a model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace maki {

/// Reads an object from a file. Its size and depth are limited (to 512 KiB and 8 levels), so that it needs little
/// memory whatever it contains. Throws CheckpointError, naming the file, if it cannot be read, is beyond these limits
/// or is no JSON object.
nlohmann::json read_json_object(const std::string& path);

/// Reads members of an object, with the name of the file in messages. Requires: both outlive this.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, const std::string& path) : object_(object), path_(path) {}

  bool has(const char* name) const { return object_.contains(name) && !object_[name].is_null(); }
  /// Each throws CheckpointError if the member has another type, or the value is out of range; and, if there is no
  /// default, if it is absent. Null counts as absent. Integers are in the range from 1 to `most`; numbers are finite.
  std::int64_t integer(const char* name, std::int64_t most) const;
  std::int64_t integer(const char* name, std::int64_t most, std::int64_t absent) const;
  double number(const char* name, double absent) const;
  bool boolean(const char* name, bool absent) const;
  std::string text(const char* name, const std::string& absent) const;

 private:
  const nlohmann::json& object_;
  const std::string& path_;
};

}  // namespace maki
