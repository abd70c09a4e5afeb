// The tours: every command is run, in the order of the page, and must print what the page shows.
#include "tests/docs/tour.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "tests/catch.h"
#include "tests/files.h"

using namespace maki::tests;

namespace {

const std::string kDocs = std::string(MAKI_SOURCE_DIR) + "/docs";

Tour tour(const std::string& name) { return read_tour(read_bytes(kDocs + "/" + name)); }

// A folder from which docs/ can be read, and where the commands of a tour leave their runs.
class Workplace {
 public:
  Workplace() {
    std::filesystem::create_directory_symlink(kDocs, folder_ / "docs");
    std::filesystem::create_directory(folder_ / "runs");
  }

  struct Result {
    int status;
    std::string output;  // of both kinds, in the order in which they were written
  };
  Result run(const std::string& command) const {
    write_bytes(folder_ / "command.sh", command);
    const std::string path = std::string(MAKI_FOLDER) + ":" + MAKI_EXAMPLES_FOLDER;
    const std::string line = "cd '" + folder_.path() + "' && PATH='" + path +
                             "':\"$PATH\" LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 bash -e command.sh > output 2>&1";
    const int status = std::system(line.c_str());
    return {status, read_bytes(folder_ / "output")};
  }

 private:
  TemporaryFolder folder_;
};

// What commands that use no run have printed: it is the same in both tours, which share most of these commands.
using Printed = std::map<std::string, Workplace::Result>;

bool uses_run(const std::string& command) { return command.find("runs/") != std::string::npos; }

Workplace::Result run_once(const Workplace& workplace, const std::string& command, Printed& printed) {
  if (uses_run(command)) return workplace.run(command);
  const auto known = printed.find(command);
  return known != printed.end() ? known->second : printed.emplace(command, workplace.run(command)).first->second;
}

void require_true_outputs(const std::string& name, const Workplace& workplace, bool with_runs, Printed& printed) {
  for (const TourBlock& block : tour(name).blocks) {
    if (uses_run(block.command) != with_runs) continue;
    const Workplace::Result result = run_once(workplace, block.command, printed);
    INFO("docs/" << name << ", line " << block.line << ": " << block.command << result.output);
    CHECK(result.status == 0);
    CHECK(difference(block.expected, result.output, block.mode) == "");
  }
}

void require_true_runs(const std::string& name) {
  Printed none;
  require_true_outputs(name, Workplace(), /*with_runs=*/true, none);
}

// Replaces what a page shows by what its commands print, where that differs.
void renew_outputs(const std::string& name, Printed& printed) {
  const Workplace workplace;
  std::istringstream page(read_bytes(kDocs + "/" + name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(page, line);) lines.push_back(line);
  std::map<std::size_t, std::pair<std::size_t, std::string>> changed;  // by line: how many lines, and the new text
  for (const TourBlock& block : tour(name).blocks) {
    const Workplace::Result result = run_once(workplace, block.command, printed);
    const std::string text = renewed(block.expected, result.output, block.mode);
    if (text == block.expected) continue;
    const auto count = std::ranges::count(block.expected, '\n');
    changed[block.output_line] = {static_cast<std::size_t>(count), text};
    std::cout << name << ", line " << block.output_line << ": renewed\n";
  }
  std::string whole;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto block = changed.find(i + 1);
    whole += block == changed.end() ? lines[i] + "\n" : block->second.second;
    if (block != changed.end()) i += block->second.first - 1;
  }
  if (!changed.empty()) write_bytes(kDocs + "/" + name, whole);
}

}  // namespace

// Run by scripts/tour.sh --update.
TEST_CASE("the tours are renewed", "[.update-tours]") {
  Printed printed;
  for (const char* const name : {"tour.md", "tour.ja.md"}) renew_outputs(name, printed);
}

// In three tests, which ctest runs at the same time. Each command has one thread: models as small as these need more
// processor time with two.
TEST_CASE("the tours: every command of both that uses no run prints what they show") {
  const Workplace workplace;
  Printed printed;
  for (const char* const name : {"tour.md", "tour.ja.md"})
    require_true_outputs(name, workplace, /*with_runs=*/false, printed);
}
TEST_CASE("the tours: every command of the English one that uses a run prints what it shows") {
  require_true_runs("tour.md");
}
TEST_CASE("the tours: every command of the Japanese one that uses a run prints what it shows") {
  require_true_runs("tour.ja.md");
}

TEST_CASE("every link of the tours leads to a file that contains what it names") {
  for (const char* name : {"tour.md", "tour.ja.md"}) {
    const std::vector<TourLink> links = tour(name).links;
    REQUIRE(links.size() > 60);
    for (const TourLink& link : links) {
      INFO("docs/" << name << ", line " << link.line << ": [" << link.text << "](" << link.target << ")");
      CHECK(defect(link, kDocs) == "");
    }
  }
}

TEST_CASE("both tours have the same sections, with as many commands in each") {
  const Tour english = tour("tour.md"), japanese = tour("tour.ja.md");
  REQUIRE(english.sections.size() >= 22);
  for (std::size_t i = 0; i < english.sections.size(); ++i) REQUIRE(english.sections[i] == static_cast<int>(i) + 1);
  REQUIRE(english.sections == japanese.sections);
  const auto places = [](const Tour& one) {
    std::vector<int> list;
    for (const TourBlock& block : one.blocks) list.push_back(block.section);
    return list;
  };
  REQUIRE(places(english).size() > 20);
  REQUIRE(places(english) == places(japanese));
}
