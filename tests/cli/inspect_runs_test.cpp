// What `maki inspect` shows of measurements: the curve of a run, a table for spreadsheets, runs side by side.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

std::string train_run(const TemporaryFolder& folder, const std::string& name, const Arguments& options) {
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / name;
  const Finished done = run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "40"} + kSmall + options);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  return run;
}

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("inspect ends with the curve of a run, but not for programs or for a single checkpoint") {
  const TemporaryFolder folder;
  const std::string run = train_run(folder, "run", {});
  RunOptions locale;
  locale.environment = {"LC_ALL=C.UTF-8"};
  const std::vector<std::string> lines = rows_of(run_maki({"inspect", run}, locale).out);
  REQUIRE(lines.size() > 12);
  REQUIRE(lines[lines.size() - 2].find("\u2514\u2500") != std::string::npos);
  REQUIRE(lines.back().ends_with("40 steps"));
  // The evaluations cover a sample.
  REQUIRE(std::ranges::any_of(lines, [](const auto& line) { return line.ends_with("counting, whole text 0.59"); }));
  REQUIRE(run_maki({"inspect", run, "--json"}, locale).out.find("40 steps") == std::string::npos);
  const std::string checkpoint = run + "/checkpoints/step-00000040.maki";
  REQUIRE(run_maki({"inspect", checkpoint}, locale).out.find("40 steps") == std::string::npos);
}

TEST_CASE("inspect --csv has a row for each measured step, with the numbers of metrics.jsonl") {
  const TemporaryFolder folder;
  const std::string run = train_run(folder, "run", {"--eval-interval", "20", "--log-interval", "8"});
  const std::vector<std::string> rows = rows_of(run_maki({"inspect", run, "--csv"}).out);
  REQUIRE(
      rows[0] ==
      "step,loss,learning_rate,grad_norm,tokens,tokens_per_second,elapsed_seconds,train_loss,val_loss,val_accuracy");
  const auto row_of = [&](const std::string& step) {
    return *std::ranges::find_if(rows, [&](const std::string& row) { return row.starts_with(step + ","); });
  };
  std::size_t compared = 0;
  for (const std::string& line : rows_of(read_text(run + "/metrics.jsonl"))) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    std::vector<double> cells;
    std::istringstream row(row_of(std::to_string(entry["step"].get<int>())));
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell.empty() ? -1 : std::stod(cell));
    if (entry["kind"] == "train") REQUIRE(cells[1] == entry["loss"].get<double>());
    if (entry["kind"] == "train") REQUIRE(cells[4] == entry["tokens"].get<double>());
    if (entry["kind"] == "eval")
      REQUIRE(cells[8] == entry[entry.contains("sampled_val_loss") ? "sampled_val_loss" : "val_loss"].get<double>());
    if (entry["kind"] == "train" || entry["kind"] == "eval") ++compared;
  }
  REQUIRE(compared == 5 + 3);
  REQUIRE(rows.size() == 1 + 7);  // both kinds at step 40
}

TEST_CASE("inspect shows runs side by side, first the fields in which they differ, and refuses what is for one run") {
  const TemporaryFolder folder;
  const std::string a = train_run(folder, "a", {}), b = train_run(folder, "b", {"--n-layer", "1", "--seed", "7"});
  const std::vector<std::string> lines = rows_of(run_maki({"inspect", a, b}).out);
  REQUIRE_THAT(lines[0], ContainsSubstring(a) && ContainsSubstring(b));
  REQUIRE(lines[1].starts_with("n_layer "));
  REQUIRE(lines[2].starts_with("seed "));
  REQUIRE(lines[3].starts_with("step "));
  REQUIRE(lines[1].find('2') == lines[0].find(a));
  REQUIRE(lines[1].find('1') == lines[0].find(b));
  for (const std::string& line : lines) REQUIRE((line.empty() || (line.back() != ' ' && line.back() != '\0')));
  REQUIRE(std::ranges::find(lines, "equal in all of them:") != lines.end());
  const nlohmann::json facts = nlohmann::json::parse(run_maki({"inspect", a, b, "--json"}).out);
  REQUIRE(facts["differences"] == nlohmann::json{"n_layer", "seed"});
  REQUIRE(facts["runs"][1]["config"]["seed"] == 7);
  const std::string tuned = train_run(folder, "tuned", {"--init-from", a});
  REQUIRE(nlohmann::json::parse(run_maki({"inspect", a, tuned, "--json"}).out)["differences"] ==
          nlohmann::json{"init_from"});
  // Long values are cut for people.
  const std::vector<std::string> patterns = {"h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias", "h.1.mlp.c_fc.weight"};
  const std::string frozen =
      train_run(folder, "frozen", {"--freeze", patterns[0], "--freeze", patterns[1], "--freeze", patterns[2]});
  const std::string row = rows_of(run_maki({"inspect", a, frozen}).out)[1];
  REQUIRE(row.starts_with("freeze "));
  REQUIRE_THAT(row, ContainsSubstring(patterns[0]) && ContainsSubstring(" bytes)") && !ContainsSubstring(patterns[2]));
  REQUIRE(nlohmann::json::parse(run_maki({"inspect", a, frozen, "--json"}).out)["runs"][1]["config"]["freeze"] ==
          nlohmann::json(patterns));
  require_refused(run_maki({"inspect", a, b, "--csv"}), 2, {"--csv", "single"});
  require_refused(run_maki({"inspect", a, "--csv", "--json"}), 2, {"--csv and --json", "use only one of them"});
  require_refused(run_maki({"inspect", a, folder / "none"}), 2, {"none"});
  for (const std::string& path : {a + "/checkpoints/step-00000040.maki", folder.path(), folder / "none"})
    require_refused(run_maki({"inspect", path, "--csv"}), 2, {"run directory"});
  require_refused(run_maki({"inspect", a, "--csv", "--verify"}), 2, {"--csv", "--verify", "omit one of them"});
  require_refused(run_maki({"inspect", a, "--csv", "--checkpoint", "best"}), 2,
                  {"--csv", "--checkpoint", "omit one of them"});
}
