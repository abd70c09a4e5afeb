#include "tests/docs/tour.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>

#include "tests/files.h"

namespace maki::tests {
namespace {

constexpr const char* kOmission = "…";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    while (line.ends_with(' ') || line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

[[noreturn]] void reject(std::size_t line, const std::string& reason) {
  throw std::runtime_error("line " + std::to_string(line) + ": " + reason);
}

// The words and numbers of a line. "0.5^63" is 0.5, ^ and 63; the minus of "0-15" is no sign.
struct Part {
  std::string text;
  bool number = false;
};

std::vector<Part> parts_of(const std::string& line) {
  static const std::regex pattern(R"((\d[\d,]*(\.\d+)?(e[+-]?\d+)?)|(\s+)|([^\d\s]+))");
  std::vector<Part> parts;
  for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
    if ((*it)[4].matched) continue;
    const bool number = (*it)[1].matched;
    const bool sign = number && !parts.empty() && parts.back().text == "-";  // a minus after a space
    if (sign) parts.pop_back();
    parts.push_back({(sign ? "-" : "") + it->str(), number});
  }
  return parts;
}

bool is_integer(const std::string& number) { return number.find_first_of(".e") == std::string::npos; }

double value_of(std::string number) {
  std::erase(number, ',');
  return std::stod(number);
}

// One unit of the last digit: 0.01 for 3.14, 0.1e-5 for 1.2e-5.
double last_unit(const std::string& number) {
  const std::size_t exponent = number.find('e'), point = number.find('.');
  const std::string digits = number.substr(0, exponent);
  const double decimals = point < digits.size() ? static_cast<double>(digits.size() - point - 1) : 0;
  const double power = exponent == std::string::npos ? 0 : std::stod(number.substr(exponent + 1));
  return std::pow(10, power - decimals);
}

bool close(const std::string& expected, const std::string& printed) {
  if (is_integer(expected)) return expected == printed;
  const double a = value_of(expected), b = value_of(printed);
  return std::abs(a - b) <= std::max(0.1 * std::abs(a), 2.001 * last_unit(expected));
}

bool same_line(std::string expected, const std::string& printed, const std::string& mode) {
  const bool open = expected.ends_with(kOmission);
  if (open) expected.resize(expected.size() - std::string(kOmission).size());
  const std::vector<Part> a = parts_of(expected), b = parts_of(printed);
  if (open ? a.size() > b.size() : a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].number != b[i].number) return false;
    if (!a[i].number && a[i].text != b[i].text) return false;
    if (a[i].number && mode != "numbers" && !close(a[i].text, b[i].text)) return false;
  }
  return true;
}

// Whether expected lines from i on agree with printed lines from j on; `furthest` is the largest i that was reached.
struct Matcher {
  const std::vector<std::string>&expected, &printed;
  const std::string& mode;
  std::size_t furthest = 0, reached = 0;
  std::set<std::pair<std::size_t, std::size_t>> failed = {};

  bool match(std::size_t i, std::size_t j) {
    if (i > furthest) furthest = i, reached = j;
    if (i == expected.size()) return j == printed.size();
    if (failed.contains({i, j})) return false;
    bool agrees = false;
    if (expected[i] == kOmission) {
      for (std::size_t k = j; k <= printed.size() && !agrees; ++k) agrees = match(i + 1, k);
    } else {
      agrees = j < printed.size() && same_line(expected[i], printed[j], mode) && match(i + 1, j + 1);
    }
    if (!agrees) failed.insert({i, j});
    return agrees;
  }
};

// A line that is printed now in the place of one that the page shows, which may cut it off.
std::string cut_like(const std::string& shown, const std::string& now) {
  if (!shown.ends_with(kOmission)) return now;
  std::size_t end = std::min(shown.size() - std::string(kOmission).size(), now.size());
  while (end > 0 && end < now.size() && (static_cast<unsigned char>(now[end]) & 0xC0) == 0x80) --end;
  return now.substr(0, end) + kOmission;
}

// Where most lines of a run of lines between two omissions are printed now; nullopt if none is.
std::optional<std::size_t> likely_place(std::span<const std::string> run, const std::vector<std::string>& now,
                                        const std::string& mode) {
  std::size_t best = 0, place = 0;
  for (std::size_t at = 0; at + run.size() <= now.size(); ++at) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < run.size(); ++i)
      same += !run[i].empty() && same_line(run[i], now[at + i], mode) ? 1 : 0;
    if (same > best) best = same, place = at;
  }
  return best > 0 ? std::optional(place) : std::nullopt;
}

// `prose` has the lines of the page, those of blocks being empty; a link may extend over two lines.
std::vector<TourLink> links_of(const std::string& prose) {
  static const std::regex link(R"(\[([^\]]*)\]\(([^)\s]+)\))");
  std::vector<TourLink> links;
  for (std::sregex_iterator it(prose.begin(), prose.end(), link), end; it != end; ++it) {
    const std::string target = (*it)[2];
    if (target.starts_with("#") || target.starts_with("http")) continue;
    const auto line = 1 + std::count(prose.begin(), prose.begin() + it->position(), '\n');
    links.push_back({static_cast<std::size_t>(line), (*it)[1], target});
  }
  return links;
}

}  // namespace

std::string difference(const std::string& expected, const std::string& printed, const std::string& mode) {
  const std::vector<std::string> a = lines_of(expected), b = lines_of(printed);
  if (mode == "sample") return b.empty() ? "nothing was printed" : "";
  Matcher matcher{a, b, mode};
  if (matcher.match(0, 0)) return "";
  const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() ? "\"" + lines[i] + "\"" : std::string("the end");
  };
  return "expected " + line(a, matcher.furthest) + ", printed " + line(b, matcher.reached);
}

std::string renewed(const std::string& expected, const std::string& printed, const std::string& mode) {
  if (difference(expected, printed, mode).empty()) return expected;
  std::vector<std::string> lines = lines_of(expected);
  const std::vector<std::string> now = lines_of(printed);
  if (std::ranges::find(lines, kOmission) == lines.end()) lines.resize(now.size());
  for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end + 1) {
    end = static_cast<std::size_t>(
        std::find(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(), kOmission) - lines.begin());
    const std::span run(lines.begin() + static_cast<std::ptrdiff_t>(begin), end - begin);
    const auto place = begin == 0            ? std::optional(std::size_t{0})
                       : end == lines.size() ? std::optional(now.size() - std::min(now.size(), run.size()))
                                             : likely_place(run, now, mode);
    for (std::size_t i = 0; place && i < run.size() && *place + i < now.size(); ++i)
      run[i] = cut_like(run[i], now[*place + i]);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Tour read_tour(const std::string& markdown) {
  static const std::regex heading(R"(## (\d+)\. .+)");
  Tour tour;
  std::string fence, body, prose;
  std::size_t number = 0, opened = 0;
  bool awaits_output = false;
  std::istringstream stream(markdown);
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::smatch found;
    if (!fence.empty() && line == "```") {
      const bool output = fence.starts_with("```text");
      if (awaits_output != output) reject(opened, output ? "output of no command" : "a command has no output");
      if (fence == "```sh")
        tour.blocks.push_back({opened, tour.sections.empty() ? 0 : tour.sections.back(), body, "", "", 0});
      if (output) {
        TourBlock& block = tour.blocks.back();
        block.expected = body;
        block.mode = fence.size() > 8 ? fence.substr(8) : "";
        block.output_line = opened + 1;
      }
      awaits_output = fence == "```sh";
      fence = body = "";
    } else if (!fence.empty()) {
      body += line + "\n";
    } else if (line.starts_with("```")) {
      static const std::set<std::string> kKinds = {"```sh",          "```text",    "```text numbers",
                                                   "```text sample", "```console", "```cpp"};
      if (!kKinds.contains(line)) reject(number, "unknown kind of block: " + line);
      fence = line, opened = number;
    } else if (std::regex_match(line, found, heading)) {
      tour.sections.push_back(std::stoi(found[1]));
    }
    prose += (fence.empty() ? line : "") + "\n";
  }
  if (!fence.empty()) reject(opened, "the block has no end");
  if (awaits_output) reject(number, "the last command has no output");
  tour.links = links_of(prose);
  return tour;
}

std::string defect(const TourLink& link, const std::string& folder) {
  const std::string path = folder + "/" + link.target.substr(0, link.target.find('#'));
  if (!std::filesystem::exists(path)) return link.target + " does not exist";
  if (!link.text.starts_with("`")) return "";
  static const std::regex code("`([^`]+)`"), name(R"(\w+)");
  std::string names;
  for (std::sregex_iterator it(link.text.begin(), link.text.end(), code), end; it != end; ++it) {
    const std::string text = (*it)[1];
    if (text.ends_with(std::filesystem::path(path).filename().string())) continue;  // the path itself
    for (std::sregex_iterator word(text.begin(), text.end(), name), last; word != last; ++word) {
      if (!std::regex_search(read_bytes(path), std::regex("\\b" + word->str() + "\\b"))) {
        return link.target + " does not contain " + word->str();
      }
    }
  }
  return "";
}

}  // namespace maki::tests
