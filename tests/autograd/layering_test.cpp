// Architecture rules, checked by reading the sources: includes point one way, kernels know no tensor, only train prints
// or exits, and what cereal stores has a size that no file decides about.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fs = std::filesystem;

namespace {

struct Line {
  std::string file, text;
};

// All lines of the sources below a folder, paths relative to the root.
std::vector<Line> lines_below(const std::string& folder) {
  std::vector<Line> lines;
  const fs::path root = MAKI_SOURCE_DIR;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".h" && path.extension() != ".cpp") continue;
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) lines.push_back({fs::relative(path, root).string(), text});
  }
  return lines;
}

// The layer of a path is the first of these folders that contains it.
const std::vector<std::string> kLayers = {"autograd/core", "autograd/kernels", "autograd", "nn",
                                          "optim",         "data/io",          "data",     "train/run",
                                          "train/loop",    "train/app"};
std::string layer_of(const std::string& path) {
  for (const std::string& name : kLayers) {
    if (path.starts_with(name + "/")) return name;
  }
  return "outside";
}

// The layers that each layer may include, besides itself.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"autograd/core", {}},
    {"autograd/kernels", {"autograd/core"}},
    {"autograd", {"autograd/core", "autograd/kernels"}},
    {"nn", {"autograd", "autograd/core"}},
    {"optim", {"autograd", "autograd/core", "autograd/kernels"}},
    {"data/io", {"autograd/core"}},
    {"data", {"autograd/core", "data/io"}},
    {"train/run", {"autograd", "autograd/core", "nn", "optim", "data", "data/io"}},
    {"train/loop", {"autograd", "autograd/core", "nn", "optim", "data", "data/io", "train/run"}},
    {"train/app",
     {"autograd", "autograd/core", "autograd/kernels", "nn", "optim", "data", "data/io", "train/run", "train/loop"}},
};

}  // namespace

TEST_CASE("includes point one way") {
  const std::regex include(R"re(^\s*#include "([^"]+)")re");
  int seen = 0;
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train"}) {
    for (const Line& line : lines_below(folder)) {
      std::smatch match;
      if (!std::regex_search(line.text, match, include)) continue;
      const std::string from = layer_of(line.file), to = layer_of(match[1]);
      INFO(line.file << ": " << line.text);
      REQUIRE((from == to || kAllowed.at(from).contains(to)));
      ++seen;
    }
  }
  REQUIRE(seen > 50);
}

TEST_CASE("libraries neither print nor exit, and nothing makes bits depend on threads or the machine") {
  const std::regex prints_or_exits(R"(\b(std::cout|std::cerr|printf|fmt::print|std::exit|std::abort|_exit)\b)");
  // What would make bits depend on threads or the machine. The words stand here to be searched for, and nowhere else.
  const std::regex breaks_bits(R"(reduction\(\s*\+|omp atomic|ffast-math|march=native|omp_get_max_threads\(\)\s*[*/])");
  int lines = 0;
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train"}) {
    for (const Line& line : lines_below(folder)) {
      INFO(line.file << ": " << line.text);
      const std::string code = line.text.substr(0, line.text.find("//"));
      if (folder != "train") REQUIRE_FALSE(std::regex_search(code, prints_or_exits));
      REQUIRE_FALSE(std::regex_search(code, breaks_bits));
      ++lines;
    }
  }
  REQUIRE(lines > 1000);
}

TEST_CASE("kernels compare targets with AVX3 by order, so that a better target is not treated as a lesser one") {
  const std::regex exact(R"(HWY_TARGET\s*[!=]=\s*HWY_AVX(3|10))");
  int comparisons = 0;
  for (const Line& line : lines_below("autograd")) {
    INFO(line.file << ": " << line.text);
    REQUIRE_FALSE(std::regex_search(line.text, exact));
    comparisons += line.text.find("HWY_TARGET <= HWY_AVX3") != std::string::npos;
  }
  REQUIRE(comparisons >= 3);
}

TEST_CASE("only kernels use SIMD") {
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train"}) {
    for (const Line& line : lines_below(folder)) {
      if (layer_of(line.file) == "autograd/kernels") continue;
      INFO(line.file << ": " << line.text);
      REQUIRE(line.text.find("#include <hwy") == std::string::npos);
      REQUIRE(line.text.find("immintrin") == std::string::npos);
    }
  }
}

TEST_CASE("trainer, evaluation, checkpoints, benchmarks and the command line name no model") {
  const std::regex model(R"(\b(Gpt|TransformerConfig|GptModel|KvCache|transformer_config)\b)");
  int lines = 0;
  for (const Line& line : lines_below("train")) {
    if (line.file.starts_with("train/run/config/models.")) continue;  // the registry
    if (line.file == "train/run/config/config.h") continue;           // the options of all models are fields
    INFO(line.file << ": " << line.text);
    REQUIRE_FALSE(std::regex_search(line.text, model));
    ++lines;
  }
  REQUIRE(lines > 5000);
}

TEST_CASE("the library of train does not print") {
  const std::regex speaks(R"(\b(std::cout|std::cerr|printf|fmt::print|std::exit|std::abort|_exit|to_stderr|stderr)\b)");
  int lines = 0;
  for (const std::string folder : {"train/run", "train/loop", "train/app/draw", "train/app/bench"}) {
    for (const Line& line : lines_below(folder)) {
      const std::string code = line.text.substr(0, line.text.find("//"));
      INFO(line.file << ": " << line.text);
      REQUIRE_FALSE(std::regex_search(code, speaks));
      ++lines;
    }
  }
  REQUIRE(lines > 3000);
}

TEST_CASE("libraries name settings, and no options of the program") {
  const std::regex option(R"re("[^"]*--[a-z][a-z]+[^"]*")re");
  int lines = 0;
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train/run", "train/loop"}) {
    for (const Line& line : lines_below(folder)) {
      if (line.file == "data/text/file_signature.cpp") continue;  // commands that unpack files
      INFO(line.file << ": " << line.text);
      REQUIRE_FALSE(std::regex_search(line.text.substr(0, line.text.find("//")), option));
      ++lines;
    }
  }
  REQUIRE(lines > 5000);
}

TEST_CASE("cereal is used in two files, and for nothing that points to something") {
  const std::regex include(R"re(^\s*#\s*include\s*[<"]cereal/)re"),
      points(R"(cereal/types/(memory|polymorphic|base_class))");
  std::set<std::string> users;
  for (const std::string folder : {"autograd", "nn", "optim", "data", "train"}) {
    for (const Line& line : lines_below(folder)) {
      if (!std::regex_search(line.text, include)) continue;
      INFO(line.file << ": " << line.text);
      REQUIRE_FALSE(std::regex_search(line.text, points));
      users.insert(line.file);
    }
  }
  REQUIRE(users == std::set<std::string>{"train/app/shared_run.cpp", "train/run/checkpoint.cpp"});
}

// Neither long double, size_t or long, whose sizes depend on the machine, nor vectors or pointers.
TEST_CASE("the records of a checkpoint consist of numbers and arrays whose sizes are fixed") {
  const std::regex member(
      R"(^  (double|std::u?int\d+_t|std::array<(char|double|std::u?int\d+_t), [\w:]+>) \w+(, \w+)*;\s*$)");
  std::vector<std::string> members;  // of the class that is being read
  int records = 0;
  for (const Line& line : lines_below("train/run")) {
    if (line.file != "train/run/checkpoint.cpp") continue;
    const std::string code = line.text.substr(0, line.text.find("//"));
    if (code.starts_with("struct ")) members.clear();
    if (code.starts_with("  ") && code.find_first_of("()") == std::string::npos && code.find(';') != std::string::npos)
      members.push_back(code);
    if (code.find("serialize(Archive&") == std::string::npos) continue;
    REQUIRE(members.size() >= 3);
    for (const std::string& each : members) {
      INFO(each);
      REQUIRE(std::regex_match(each, member));
    }
    ++records;
  }
  REQUIRE(records == 2);
}
