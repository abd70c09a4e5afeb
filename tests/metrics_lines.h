// The lines of metrics.jsonl as JSON objects.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/files.h"

namespace maki::tests {

/// The lines of a text without those that say where a session began and ended, which the same run may do anywhere.
inline std::vector<std::string> reproducible_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto is = [&](const char* kind) { return line.starts_with(std::string("{\"kind\":\"") + kind); };
    if (!is("session") && !is("end")) lines.push_back(line);
  }
  return lines;
}

/// The lines of a metrics.jsonl, or only those of one kind.
inline std::vector<nlohmann::json> metrics_lines(const std::string& file, const std::string& kind = "") {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_bytes(file));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    if (kind.empty() || object.at("kind") == kind) lines.push_back(std::move(object));
  }
  return lines;
}

}  // namespace maki::tests
