// Golden runs: small run directories that an earlier version wrote (tests/golden/make.sh). Each of them must load,
// verify, evaluate to the losses that it recorded, and train on as it once did.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/kernels/simd/target.h"
#include "data/io/hash.h"
#include "tests/catch.h"
#include "tests/cli/small_run.h"
#include "train/run/container.h"

using namespace maki::tests;
using maki::ContainerReader;
using nlohmann::json;

namespace {

constexpr int kStep = 5, kLastStep = 10;  // of the checkpoint, and of the measurements
// The sections that hold what is trained.
constexpr std::array<std::string_view, 6> kTrained = {"values",   "exp_avg",     "exp_avg_sq",
                                                      "momentum", "row_squares", "memory"};

// A golden run, and a copy of it that finds its corpus.
struct GoldenRun {
  explicit GoldenRun(const std::filesystem::path& source) : name(source.filename()), copy(folder / name) {
    std::filesystem::copy(source, copy, std::filesystem::copy_options::recursive);
    std::string config = read_text(copy + "/config.toml");
    for (std::size_t at; (at = config.find("GOLDEN")) != std::string::npos;)
      config.replace(at, 6, source.parent_path().string());
    folder.write(name + "/config.toml", config);
  }

  TemporaryFolder folder;
  std::string name, copy;
};

// Calls f(GoldenRun) for each.
template <class F>
void for_each_golden_run(const F& f) {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MAKI_SOURCE_DIR "/tests/golden")) {
    if (!std::filesystem::exists(entry.path() / "config.toml")) continue;
    const GoldenRun run(entry.path());
    INFO(run.name);
    f(run);
    ++runs;
  }
  REQUIRE(runs >= 10);
}

// The numbers under `key` in the lines of metrics.jsonl of one kind, by step.
std::map<int, double> recorded(const std::string& run, const std::string& kind, const std::string& key) {
  std::map<int, double> numbers;
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    if (entry["kind"] == kind) numbers[entry["step"]] = entry[key];
  }
  return numbers;
}

// On another SIMD target numbers may differ in their last digits, and no more.
void require_same(const std::map<int, double>& now, const std::map<int, double>& then) {
  REQUIRE(now.size() == then.size());
  for (const auto& [step, number] : now) REQUIRE(std::abs(number - then.at(step)) < 1e-5);
}

// The hash of the values and moments of a checkpoint.
std::string bits_of(const ContainerReader& checkpoint) {
  std::string bytes;
  for (const auto& entry : checkpoint.entries())
    if (std::ranges::find(kTrained, entry.name) != kTrained.end()) bytes += checkpoint.read(entry.name);
  return maki::hash128_hex(bytes);
}

// The hashes of bits.txt by run.
std::map<std::string, std::string> golden_bits() {
  std::map<std::string, std::string> bits;
  std::istringstream lines(read_text(MAKI_SOURCE_DIR "/tests/golden/bits.txt"));
  for (std::string run, hash; lines >> run >> hash;) bits[run] = hash;
  return bits;
}

// What a command prints on standard output.
std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> piece;
  for (std::size_t n; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), n);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

template <class T>
double squares(const std::string& bytes) {
  double sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + at, sizeof x);
    sum += static_cast<double>(x) * static_cast<double>(x);
  }
  return sum;
}

// A section without what the machine adds to the configuration.
std::string without_arithmetic(std::string section) {
  const std::size_t at = section.find("\narithmetic = ");
  if (at != std::string::npos) section.erase(at + 1, section.find('\n', at + 1) - at);
  return section;
}

}  // namespace

TEST_CASE("golden runs can be resumed, and evaluate to the losses that they recorded") {
  for_each_golden_run([](const GoldenRun& run) {
    const json facts = json::parse(require_ok(run_maki({"inspect", run.copy, "--verify", "--json"})).out);
    REQUIRE(facts["schema"] == 1);
    REQUIRE_FALSE(facts["checkpoints"].empty());
    for (const json& checkpoint : facts["checkpoints"]) REQUIRE(checkpoint["resumable"] == true);
    const std::string step = std::to_string(kStep);
    const json loss = json::parse(require_ok(run_maki({"eval", run.copy, "--checkpoint", step, "--json"})).out);
    REQUIRE(std::abs(loss["val_loss"].get<double>() - recorded(run.copy, "eval", "val_loss").at(kStep)) < 1e-5);
  });
}

// The data of each step, dropout, schedule, phases, clipping and update are those of the version that wrote the run.
// The losses depend on every value and moment of the checkpoint.
TEST_CASE("golden runs train on as they once did, with the same bits on every CPU that fuses multiply-adds") {
  auto bits = golden_bits();
  for_each_golden_run([&](const GoldenRun& run) {
    const auto losses = recorded(run.copy, "train", "loss"), rates = recorded(run.copy, "train", "learning_rate"),
               evaluated = recorded(run.copy, "eval", "val_loss");
    REQUIRE(losses.size() == kLastStep);
    const ContainerReader was(checkpoint(run.copy, kStep));
    require_ok(run_maki({"train", "--resume", run.copy, "--max-steps", std::to_string(kLastStep), "--keep-last", "2"}));
    require_same(recorded(run.copy, "train", "loss"), losses);
    require_same(recorded(run.copy, "eval", "val_loss"), evaluated);
    REQUIRE(recorded(run.copy, "train", "learning_rate") == rates);
    const ContainerReader is(checkpoint(run.copy, kLastStep));
    REQUIRE(was.entries().size() == is.entries().size());
    for (std::size_t i = 0; i < was.entries().size(); ++i) {
      const auto &before = was.entries()[i], &after = is.entries()[i];
      REQUIRE(before.name == after.name);
      const std::string there = without_arithmetic(is.read(after.name));
      REQUIRE(before.length == there.size());
      if (before.name != "state" && std::ranges::find(kTrained, before.name) == kTrained.end())
        REQUIRE(was.read(before.name) == there);
    }
    // Made with AVX2, and checked under emulation with AVX-512 and NEON.
    if (maki::kernels::arithmetic_of(maki::kernels::target()) == "fused") REQUIRE(bits_of(is) == bits[run.name]);
  });
}

TEST_CASE("a reader written from the description of the format alone reads the same") {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) {
    WARN("skipped: there is no python3 to run scripts/read_checkpoint.py");
    return;
  }
  for_each_golden_run([](const GoldenRun& run) {
    const std::string file = checkpoint(run.copy, kStep);
    const json read = json::parse(output_of("python3 '" MAKI_SOURCE_DIR "/scripts/read_checkpoint.py' '" + file + "'"));
    const json inspected = json::parse(require_ok(run_maki({"inspect", file, "--json"})).out);
    REQUIRE(read["state"]["corpus_hash"] == inspected["corpus_hash"]);
    for (const char* key : {"step", "vocab_size", "characters", "train_tokens", "val_tokens"})
      REQUIRE(read["state"][key] == inspected[key]);
    REQUIRE(read["tensors"].size() == inspected["tensors"].size());
    REQUIRE(read["tensors"].size() >= 8);
    double sum_of_squares = 0;
    for (std::size_t i = 0; i < read["tensors"].size(); ++i) {
      for (const char* key : {"name", "shape", "group"})
        REQUIRE(read["tensors"][i][key] == inspected["tensors"][i][key]);
      sum_of_squares += read["tensors"][i]["sum_of_squares"].get<double>();
    }
    const std::string bytes = ContainerReader(file).read("values");
    const double expected = inspected["config"]["dtype"] == "float64" ? squares<double>(bytes) : squares<float>(bytes);
    REQUIRE(expected > 1);
    REQUIRE(std::abs(sum_of_squares / expected - 1) < 1e-12);
  });
}
