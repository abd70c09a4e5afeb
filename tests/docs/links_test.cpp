// Every link of the documents leads to a file that exists and, behind "#", to a heading of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;

// The lines of a page but those of its blocks of code.
std::vector<std::string> prose_of(const fs::path& page) {
  std::ifstream file(page);
  std::vector<std::string> lines;
  bool code = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      code = !code;
    } else if (!code) {
      lines.push_back(line);
    }
  }
  return lines;
}

// The name of a heading in a link, as GitHub makes it: lower case, "-" for spaces, without marks, of which only those
// of CJK (U+3000 to U+303F, U+30FB, U+FF00 to U+FF20) need bytes above 127 here.
std::string anchor_of(std::string heading) {
  heading = std::regex_replace(heading, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1");
  heading = std::regex_replace(heading, std::regex("\xE3\x80[\x80-\xBF]|\xE3\x83\xBB|\xEF\xBC[\x80-\xA0]"), "");
  std::string anchor;
  for (const char c : heading) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || (c & 0x80) != 0;
    if (letter) anchor += c;
    if (c >= 'A' && c <= 'Z') anchor += static_cast<char>(c - 'A' + 'a');
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& page) {
  static const std::regex heading("^#+ (.*)$"), name(R"re((?:id|name)="([^"]+)")re");
  std::set<std::string> anchors;
  for (const std::string& line : prose_of(page)) {
    std::smatch match;
    if (std::regex_match(line, match, heading)) {
      const std::string anchor = anchor_of(match[1]);
      std::string unique = anchor;
      for (int n = 1; !anchors.insert(unique).second; ++n) unique = anchor + "-" + std::to_string(n);
    } else if (std::regex_search(line, match, name)) {
      anchors.insert(match[1]);
    }
  }
  return anchors;
}

std::vector<fs::path> documents() {
  const fs::path root = MAKI_SOURCE_DIR;
  std::vector<fs::path> pages;
  for (const fs::path& folder : {root, root / "docs", root / "docs/api", root / "docs/decisions"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
    }
  }
  return pages;
}

}  // namespace

TEST_CASE("every link of the documents leads to a file and to a heading of it") {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::map<fs::path, std::set<std::string>> known;  // anchors of pages
  int links = 0, anchors = 0;
  for (const fs::path& page : documents()) {
    for (const std::string& line : prose_of(page)) {
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        const std::string target = (*it)[1];
        if (target.starts_with("http")) continue;
        INFO(page.string() << ": " << target);
        const std::size_t hash = std::min(target.find('#'), target.size());
        const fs::path file = hash == 0 ? page : (page.parent_path() / target.substr(0, hash)).lexically_normal();
        CHECK(fs::exists(file));
        ++links;
        if (hash == target.size() || file.extension() != ".md") continue;
        if (!known.contains(file)) known[file] = anchors_of(file);
        CHECK(known[file].contains(target.substr(hash + 1)));
        ++anchors;
      }
    }
  }
  REQUIRE(links > 500);
  REQUIRE(anchors > 50);
}
