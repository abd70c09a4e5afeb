// A run continues in the arithmetic of its steps so far, or on request in another one, which is recorded.
#include "train/app/arithmetic.h"

#include <array>
#include <cmath>
#include <set>

#include "autograd/kernels/simd/target.h"
#include "tests/cli/small_run.h"
#include "tests/files.h"
#include "tests/metrics_lines.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Float32 is computed in it nowhere.
const std::string kElsewhere = "BFMMLA";

// A run of 20 steps, whose checkpoint is then changed as if they had been computed elsewhere.
std::string run_from_elsewhere(const TemporaryFolder& folder) {
  const std::string run = folder / "run";
  const std::string text = folder.write("text", small_text());
  require_ok(run_maki(Arguments{"train", text, "--out", run, "--max-steps", "20"} + kSmall));
  Sections sections = sections_of(checkpoint(run, 20));
  std::string& config = section(sections, "config");
  const std::size_t here = config.find("arithmetic = ");  // absent if it is the usual one
  if (here != std::string::npos) config.erase(here, config.find('\n', here) + 1 - here);
  config += "arithmetic = '" + kElsewhere + "'\n";
  write_sections(checkpoint(run, 20), sections);
  return run;
}

std::string arithmetic_in(const std::string& path) {
  const std::string said = require_ok(run_maki({"inspect", path})).out;
  const std::size_t at = said.find("arithmetic ");
  REQUIRE(at != std::string::npos);
  const std::string line = said.substr(at, said.find('\n', at) - at);
  return line.substr(line.find_last_of(' ') + 1);
}

// A target of this build and machine whose arithmetic is another than the usual one; empty if there is none.
std::string target_of_another_arithmetic() {
  for (const std::string& target : kernels::available_targets()) {
    if (kernels::arithmetic_of(target) != kernels::arithmetic_of(kernels::target())) return target;
  }
  WARN("skipped: this build has targets of one arithmetic");
  return "";
}

}  // namespace

TEST_CASE("a run says the hash of its weights and their arithmetic, and so does inspect") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", small_text());
  const auto train = [&](const std::string& run) {
    return require_ok(run_maki(Arguments{"train", text, "--out", run, "--max-steps", "20"} + kSmall)).err;
  };
  const auto hash = [](const std::string& said) {
    const std::string words = "hash of the weights: ";
    const std::size_t at = said.find(words);
    REQUIRE(at != std::string::npos);
    return said.substr(at + words.size(), said.find('\n', at) - at - words.size());
  };
  const std::string one = hash(train(folder / "a"));
  const std::string here(kernels::arithmetic_of(kernels::target()));
  REQUIRE(contains(one, " (arithmetic: " + here + ")"));
  REQUIRE(hash(train(folder / "b")) == one);
  REQUIRE(arithmetic_in(folder / "a") == here);
}

TEST_CASE("a run whose arithmetic this machine lacks is refused, and continues in another one on request") {
  const TemporaryFolder folder;
  const std::string run = run_from_elsewhere(folder);
  REQUIRE(arithmetic_in(checkpoint(run, 20)) == kElsewhere);
  const std::string before = read_bytes(checkpoint(run, 20));
  const Finished refused = run_maki({"train", "--resume", run, "--max-steps", "40"});
  REQUIRE(refused.exit_code == 2);
  REQUIRE(contains(refused.err, "were computed in " + kElsewhere + ", which "));
  REQUIRE(contains(refused.err, "add --any-arithmetic"));
  REQUIRE(read_bytes(checkpoint(run, 20)) == before);
  const Finished continued = require_ok(run_maki({"train", "--resume", run, "--max-steps", "40", "--any-arithmetic"}));
  const std::string here(kernels::arithmetic_of(kernels::target()));
  REQUIRE(contains(continued.err, "continues in the arithmetic " + here + " instead of " + kElsewhere));
  const std::string said = require_ok(run_maki({"inspect", checkpoint(run, 40)})).out;
  REQUIRE(contains(said, kElsewhere + ", " + here));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "60"}));
  Config often;  // there and back: each arithmetic is listed once
  often.arithmetic = here + ", other";
  keep_arithmetic(often, "", /*any=*/true);
  REQUIRE(often.arithmetic == "other, " + here);
  REQUIRE(run_maki({"train", folder / "text", "--any-arithmetic"}).exit_code == 2);
}

TEST_CASE("the configuration of another run does not say in which arithmetic the steps of this one were computed") {
  const TemporaryFolder folder;
  const std::string run = run_from_elsewhere(folder);
  const std::string here(kernels::arithmetic_of(kernels::target()));
  const std::string other = folder.write("other.toml", "max_steps = 40\narithmetic = '" + here + "'\n");
  const Finished refused = run_maki({"train", "--resume", run, "--config", other});
  REQUIRE(refused.exit_code == 2);
  REQUIRE(contains(refused.err, "were computed in " + kElsewhere + ", which "));
  require_ok(run_maki({"train", "--resume", run, "--config", other, "--any-arithmetic"}));
  REQUIRE(contains(require_ok(run_maki({"inspect", checkpoint(run, 40)})).out, kElsewhere + ", " + here));
}

TEST_CASE("a run continues with the target that has the arithmetic of its steps, with the same bytes") {
  const std::string other = target_of_another_arithmetic();
  if (other.empty()) return;
  const TemporaryFolder folder;
  const std::string text = folder.write("text", small_text());
  const RunOptions there{.environment = {"MAKI_TARGET=" + other}};
  const auto train = [&](const std::string& run, const std::string& steps) {
    require_ok(run_maki(Arguments{"train", text, "--out", run, "--max-steps", steps} + kSmall, there));
  };
  train(folder / "whole", "40");
  train(folder / "moved", "20");
  const Finished continued = require_ok(run_maki({"train", "--resume", folder / "moved", "--max-steps", "40"}));
  REQUIRE(contains(continued.err, "continues with " + other + " instead of " + kernels::target()));
  REQUIRE(read_bytes(checkpoint(folder / "moved", 40)) == read_bytes(checkpoint(folder / "whole", 40)));
  REQUIRE(arithmetic_in(folder / "moved") == kernels::arithmetic_of(other));
  // A target that the user has chosen is kept, or refused.
  const Finished refused = run_maki({"train", "--resume", folder / "moved", "--max-steps", "50"},
                                    {.environment = {"MAKI_TARGET=" + kernels::target()}});
  REQUIRE(refused.exit_code == 2);
  REQUIRE(contains(refused.err, "with MAKI_TARGET set to " + kernels::target() + ", does not have"));
  REQUIRE(contains(refused.err, "unset MAKI_TARGET"));
}

TEST_CASE("a hundred steps lead to the same losses in each arithmetic, but for how they are rounded") {
  if (target_of_another_arithmetic().empty()) return;
  const TemporaryFolder folder;
  const std::string text = folder.write("text", small_text());
  const auto losses = [&](const std::string& target) {
    const std::string run = folder / target;
    const Arguments options = {"train", text, "--out", run, "--max-steps", "100", "--log-interval", "1"};
    require_ok(run_maki(options + kSmall, {.environment = {"MAKI_TARGET=" + target}}));
    const double train = metrics_lines(run + "/metrics.jsonl", "train").at(99).at("loss"),
                 validation = metrics_lines(run + "/metrics.jsonl", "eval").back().at("val_loss");
    return std::array{train, validation};
  };
  const std::array usual = losses(kernels::target());
  std::set<std::string_view> tried = {kernels::arithmetic_of(kernels::target())};
  for (const std::string& target : kernels::available_targets()) {
    if (!tried.insert(kernels::arithmetic_of(target)).second) continue;
    INFO(target);
    const std::array other = losses(target);
    for (std::size_t i = 0; i < 2; ++i) REQUIRE(std::abs(other[i] - usual[i]) < 1e-5 * usual[i]);
  }
}
