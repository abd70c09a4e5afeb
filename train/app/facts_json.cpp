#include "train/app/facts_json.h"

namespace maki {
namespace {

nlohmann::ordered_json json_of(const Fact& fact) {
  return std::visit(
      []<class T>(const T& value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<T, Facts>) {
          if (!value.empty() && !value.front().name.empty()) return to_json(value);
          nlohmann::ordered_json list = nlohmann::ordered_json::array();
          for (const Fact& each : value) list.push_back(json_of(each));
          return list;
        } else {
          return value;
        }
      },
      fact.value);
}

}  // namespace

nlohmann::ordered_json to_json(const Facts& facts) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const Fact& fact : facts) object[fact.name] = json_of(fact);
  return object;
}

nlohmann::ordered_json to_json(const std::vector<ReportLine>& lines) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const ReportLine& line : lines) object.update(to_json(line.facts));
  return object;
}

}  // namespace maki
