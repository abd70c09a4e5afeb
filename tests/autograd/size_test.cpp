// Files and functions stay small enough to be read at once.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxFileLines = 400, kMaxFunctionLines = 50;

struct Source {
  std::string path;
  std::vector<std::string> lines;
};

std::vector<Source> sources() {
  std::vector<Source> list;
  const fs::path root = MAKI_SOURCE_DIR;
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train", "examples", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      Source source{fs::relative(entry.path(), root).string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      list.push_back(source);
    }
  }
  return list;
}

// The functions whose signature begins at this indentation: first line and number of lines. Relies on clang-format.
std::vector<std::pair<std::size_t, std::size_t>> functions(const std::vector<std::string>& lines, std::size_t indent) {
  const std::string margin(indent, ' ');
  const std::regex other(R"(\s*(namespace|struct|class|enum|union|extern|public:|private:|HWY_BEFORE|HWY_AFTER)\b.*)");
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const bool begins = line.size() > indent && line.starts_with(margin) &&
                        std::string(" }#/").find(line[indent]) == std::string::npos && !std::regex_match(line, other);
    if (!begins) continue;
    std::size_t open = i;
    bool has_parameters = line.find('(') != std::string::npos;
    while (open + 1 < lines.size() && !lines[open].empty() && !lines[open].ends_with('{') &&
           !lines[open].ends_with(';')) {
      has_parameters |= lines[++open].find('(') != std::string::npos;
    }
    if (!lines[open].ends_with('{') || !has_parameters) continue;
    std::size_t end = open + 1;
    while (end < lines.size() && !lines[end].starts_with(margin + "}")) ++end;
    found.emplace_back(i, end - i + 1);
    i = end;
  }
  return found;
}

}  // namespace

TEST_CASE("no file has more than 400 lines") {
  std::size_t count = 0;
  for (const Source& source : sources()) {
    INFO(source.path << " has " << source.lines.size() << " lines");
    CHECK(source.lines.size() <= kMaxFileLines);
    ++count;
  }
  REQUIRE(count > 150);
}

TEST_CASE("no function has more than 50 lines, tables apart") {
  std::size_t count = 0;
  for (const Source& source : sources()) {
    for (const std::size_t indent : {0u, 2u}) {
      for (const auto& [first, lines] : functions(source.lines, indent)) {
        ++count;
        const bool table = source.lines[first].find("make_fields()") != std::string::npos;
        INFO(source.path << ", line " << first + 1 << ": " << lines << " lines: " << source.lines[first]);
        CHECK((table || lines <= kMaxFunctionLines));
      }
    }
  }
  REQUIRE(count > 1000);
}
