// Golden runs: small run directories written under every schema there has been (tests/golden/make.sh). Each of them
// must load, verify, evaluate to the losses that it recorded, train from its first checkpoint to its last, and resume.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.h"
#include "tests/cli/small_run.h"
#include "train/run/checkpoint.h"
#include "train/run/config/config.h"
#include "train/run/container.h"

using namespace maki::tests;
using maki::ContainerReader;
using nlohmann::json;

namespace {

const std::filesystem::path kGolden = std::filesystem::path(MAKI_SOURCE_DIR) / "tests/golden";
constexpr int kFirstStep = 10, kLastStep = 15;  // the checkpoints of every golden run

struct GoldenRun {
  int schema;
  std::string name;
};

std::vector<GoldenRun> golden_runs() {
  std::vector<GoldenRun> runs;
  for (int schema = 1; schema <= static_cast<int>(maki::kConfigSchema); ++schema) {
    for (const char* name : {"adamw", "init", "sgd"}) runs.push_back({schema, name});
    if (schema < 3) continue;
    for (const char* name :
         {"bpe", "classify", "encoder", "linear", "llama", "lora", "prior", "seq2seq", "transformer-xl"})
      runs.push_back({schema, name});
  }
  return runs;
}

// A copy of the run that finds its corpus.
std::string copy_of(const GoldenRun& run, const TemporaryFolder& folder) {
  const std::string copy = folder / fmt::format("{}-{}", run.schema, run.name);
  std::filesystem::copy(kGolden / fmt::format("schema-{}", run.schema) / run.name, copy,
                        std::filesystem::copy_options::recursive);
  std::string config = read_text(copy + "/config.toml");
  for (std::size_t at; (at = config.find("GOLDEN")) != std::string::npos;) config.replace(at, 6, kGolden.string());
  folder.write(fmt::format("{}-{}/config.toml", run.schema, run.name), config);
  return copy;
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
double largest_difference(const std::string& a, const std::string& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE(a.size() % sizeof(T) == 0);
  double most = 0;
  for (std::size_t at = 0; at < a.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    most = std::max(most, static_cast<double>(std::abs(x - y)));
    REQUIRE(std::isfinite(most));
  }
  return most;
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

// The values of a float32 run, with the biases of keys set to 0 where softmax ignores them: without rotary positions,
// such a bias adds the same number to every score of a query. Its gradient is 0 but for rounding errors, which Adam
// divides by their own size, so that it moves by some 1e-4 differently on another SIMD target. Nothing else depends on
// it.
std::string without_key_biases(std::string values, const ContainerReader& file) {
  const maki::Config config = maki::read_state(file).config;
  if (config.positions == "rotary") return values;
  const auto width = static_cast<std::size_t>(config.n_embd);
  for (const maki::TensorEntry& tensor : maki::read_tensors(file)) {
    const bool query_first = tensor.name.ends_with("attn.c_attn.bias");
    if (!query_first && !tensor.name.ends_with("cross.c_kv.bias")) continue;
    const auto first = static_cast<std::size_t>(tensor.offset) + (query_first ? width : 0);
    REQUIRE((first + width) * sizeof(float) <= values.size());
    std::memset(values.data() + first * sizeof(float), 0, width * sizeof(float));
  }
  return values;
}

}  // namespace

TEST_CASE("golden runs of every schema can be resumed, and say which schema they have") {
  for (const GoldenRun& run : golden_runs()) {
    INFO("schema " << run.schema << ", " << run.name);
    const TemporaryFolder folder;
    const json facts = json::parse(require_ok(run_maki({"inspect", copy_of(run, folder), "--verify", "--json"})).out);
    REQUIRE(facts["schema"] == run.schema);
    REQUIRE(facts["checkpoints"].size() >= 2);  // the last two, and the best
    for (const json& checkpoint : facts["checkpoints"]) REQUIRE(checkpoint["resumable"] == true);
  }
}

TEST_CASE("golden runs evaluate to the losses that they recorded") {
  for (const GoldenRun& run : golden_runs()) {
    INFO("schema " << run.schema << ", " << run.name);
    const TemporaryFolder folder;
    const std::string copy = copy_of(run, folder);
    const auto losses = recorded(copy, "eval", "val_loss");
    for (const int step : {kFirstStep, kLastStep}) {
      const Finished finished = require_ok(run_maki({"eval", copy, "--checkpoint", std::to_string(step), "--json"}));
      REQUIRE(std::abs(json::parse(finished.out)["val_loss"].get<double>() - losses.at(step)) < 1e-5);
    }
  }
}

// The data of each step, dropout, schedule, phases, clipping and update are those of the version that wrote the run. On
// another SIMD target numbers may differ in their last digits, and no more.
TEST_CASE("golden runs train from their first checkpoint to their last as they once did") {
  for (const GoldenRun& run : golden_runs()) {
    INFO("schema " << run.schema << ", " << run.name);
    const TemporaryFolder folder;
    const std::string copy = copy_of(run, folder);
    const auto losses = recorded(copy, "train", "loss"), rates = recorded(copy, "train", "learning_rate");
    const std::string golden = folder / "golden.maki";
    std::filesystem::copy(checkpoint(copy, kLastStep), golden);
    require_ok(run_maki({"train", "--resume", copy, "--checkpoint", std::to_string(kFirstStep)}));
    const ContainerReader was(golden), is(checkpoint(copy, kLastStep));
    REQUIRE(was.entries().size() == is.entries().size());
    for (const auto& entry : was.entries()) {
      INFO(entry.name);
      const std::string before = was.read(entry.name), after = is.read(entry.name);
      constexpr std::array kExact = {"config", "state", "tokenizer", "source_tokenizer", "labels", "tensors"};
      if (std::ranges::find(kExact, entry.name) != kExact.end()) {
        REQUIRE(before == after);
      } else if (run.name == "sgd") {
        REQUIRE(largest_difference<double>(before, after) < 1e-12);
      } else {
        const auto same = [&](const std::string& values) {
          return entry.name == "values" ? without_key_biases(values, was) : values;
        };
        REQUIRE(largest_difference<float>(same(before), same(after)) < 1e-5);
      }
    }
    REQUIRE(losses.size() == kLastStep);
    for (const auto& [step, loss] : recorded(copy, "train", "loss")) REQUIRE(std::abs(loss - losses.at(step)) < 1e-5);
    REQUIRE(recorded(copy, "train", "learning_rate") == rates);
    require_ok(run_maki({"train", "--resume", copy, "--max-steps", "18"}));
    REQUIRE(recorded(copy, "train", "loss").size() == 18);
  }
}

TEST_CASE("a reader written from the description of the format alone reads the same") {
  if (std::system("command -v python3 >/dev/null 2>&1") != 0) {
    WARN("skipped: there is no python3 to run scripts/read_checkpoint.py");
    return;
  }
  for (const GoldenRun& run : golden_runs()) {
    INFO("schema " << run.schema << ", " << run.name);
    const TemporaryFolder folder;
    const std::string file = checkpoint(copy_of(run, folder), kLastStep);
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
    const double expected = run.name == "sgd" ? squares<double>(bytes) : squares<float>(bytes);
    REQUIRE(expected > 1);
    REQUIRE(std::abs(sum_of_squares / expected - 1) < 1e-12);
  }
}
