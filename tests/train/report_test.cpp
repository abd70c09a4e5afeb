// The numbers on the page of a report are those of the run and of its model.
#include "train/app/report.h"

#include <cmath>
#include <fmt/format.h>

#include "tests/nn/small_gpt.h"
#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/app/report/sections.h"
#include "train/app/run_corpus.h"
#include "train/loop/evaluate.h"
#include "train/loop/loss_by_position.h"
#include "train/run/loaded_model.h"

using namespace maki;
using namespace maki::tests;

namespace {

// What stands between each occurrence of `begin` and the next `end`.
std::vector<std::string> parts_between(const std::string& text, const std::string& begin, const std::string& end) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    parts.push_back(text.substr(at, text.find(end, at) - at));
  }
  return parts;
}

// A run of one checkpoint, whose model has random weights that make some tokens far more likely than others.
struct RunWithModel {
  RunWithModel() {
    config.n_embd = 16;
    config.val_fraction = 0.25;
    config.eval_interval = 10;
    config.corpus = {folder.write("text.txt", seeded_text(400, "abcdef"))};
    const Corpus corpus = read_corpus(config.corpus, corpus_options(config));
    const Dataset data = make_dataset(corpus, config.val_fraction, config.block_size, config.tokenizer);
    TextTrainer trainer(config, data);
    randomize(trainer.store(), 5);
    directory.create();
    Unsynced fs;
    write_checkpoint(fs, directory.checkpoint_file(3), state_after(3, config, data), trainer.store(),
                     trainer.optimizer());
    directory.set_last(3);
    write_bytes(directory.config_file(), to_toml(config));
  }

  TemporaryFolder folder;
  Config config = small_model_config("gpt");
  RunDirectory directory{folder / "run"};
};

}  // namespace

TEST_CASE("a report names the loss on the whole validation text where the others are those of a sample") {
  const auto row = [](const EvalReport& newest) {
    MeasuredRun run{.path = "none.maki", .state = {}, .history = {}, .best = {}, .sources = {}};
    run.history.on_eval({.step = 1, .train_loss = 3, .val_loss = 9, .val_share = 0.5}, false);
    run.history.on_eval(newest, false);
    const auto rows = parts_between(report_sections({run}, PageLanguage("en")),
                                    "<th scope=\"row\">last loss on all of the validation text</th><td>", "</td>");
    REQUIRE(rows.size() <= 1);
    return rows.empty() ? "none" : rows[0];
  };
  REQUIRE(row({.step = 2, .train_loss = 3, .val_loss = 2.5, .sampled_val_loss = 2.25, .sampled_val_share = 0.5}) ==
          "2.5000");
  REQUIRE(row({.step = 2, .train_loss = 3, .val_loss = 2.5}) == "none");
  REQUIRE(row({.step = 2, .train_loss = 3, .val_loss = 2.5, .val_share = 0.5}) == "none");
  REQUIRE(row({.step = 2,
               .train_loss = 3,
               .val_loss = 2.5,
               .val_share = 0.75,
               .sampled_val_loss = 2.25,
               .sampled_val_share = 0.5}) == "none");
  REQUIRE(row({.step = 2, .train_loss = 3}) == "none");
}

TEST_CASE("a report shows the bits of each target of the first batch, and the mean loss of each position") {
  const RunWithModel run;
  const std::string page = model_sections(read_measured_runs({run.directory.path()}).front(), PageLanguage("en"));
  INFO(page.substr(0, 3000));

  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const Corpus corpus = read_corpus(run.config.corpus, corpus_options(run.config));
  const std::unique_ptr<Task> task = make_eval_task(run.config, corpus, loaded.tokenizers, {.own = true});
  std::vector<std::string> bits, tokens;
  std::vector<PositionLoss> positions;
  visit_target_losses(*loaded.model, *task, Part::val, 1, {}, [&](const Batch& batch, const std::vector<double>& all) {
    for (const double loss : all) bits.push_back(fmt::format("{:.1f}", loss / std::log(2)));
    for (const std::int32_t id : batch.targets.values<std::int32_t>()) tokens.emplace_back(loaded.tokenizer->bytes(id));
    add_to_positions(batch, all, positions);
  });
  REQUIRE(bits.size() == 16);
  REQUIRE(parts_between(page, "\" title=\"", "\">") == bits);
  std::vector<std::string> shown;
  for (const std::string& part : parts_between(page, "\" title=\"", "</span>"))
    shown.push_back(part.substr(part.find('>') + 1));
  REQUIRE(shown == tokens);

  // The line reaches from the top of its chart, at 8 pixels, to the bottom, 186 further down: y = 8 + 186 · (high −
  // loss) / (high − low).
  const std::string line = parts_between(page, "<polyline class=\"c0\" points=\"", "\"").front();
  const std::vector<std::string> pairs = parts_between(" " + line, " ", " ");
  REQUIRE(pairs.size() == positions.size() + 1);  // a space ends the line
  std::vector<double> losses;
  for (const PositionLoss& position : positions) losses.push_back(position.sum / static_cast<double>(position.targets));
  const auto [low, high] = std::ranges::minmax(losses);
  for (std::size_t i = 0; i < losses.size(); ++i)
    REQUIRE(std::abs(std::stod(pairs[i].substr(pairs[i].find(',') + 1)) - 8 - 186 * (high - losses[i]) / (high - low)) <
            0.051);
  // So are the lines of its grid, at the numbers beside them.
  const std::string figure = parts_between(page, "<figure>", "</figure>").front();
  const auto ticks = parts_between(figure, "<text x=\"46.0\" y=\"", "</text>"),
             grid = parts_between(figure, "<line class=\"grid\" x1=\"52\" y1=\"", "\"");
  REQUIRE(ticks.size() >= 2);
  REQUIRE(grid.size() == ticks.size());
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double tick = std::stod(ticks[i].substr(ticks[i].find('>') + 1)), y = std::stod(grid[i]);
    REQUIRE(std::abs(y - 8 - 186 * (high - tick) / (high - low)) < 0.051);
    REQUIRE(std::abs(std::stod(ticks[i]) - y - 4) < 0.051);
  }
}
