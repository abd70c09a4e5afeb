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

/// The reproducible lines of a text, without what a clock has measured; not the last one if it is not whole.
inline std::string measured(const std::string& text) {
  std::string kept;
  for (const std::string& line : reproducible_lines(text.substr(0, text.rfind('\n') + 1)))
    kept += line.substr(0, line.find(",\"tokens_per_second\"")) + "\n";
  return kept;
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
