// The numbers on the page of a report are those of the run and of its model.
#include "train/app/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <tuple>

#include "data/dataset/window_batches.h"
#include "tests/nn/small_gpt.h"
#include "tests/train/captured_stderr.h"
#include "tests/train/drawing.h"
#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "train/app/reading.h"
#include "train/app/report/sections.h"
#include "train/app/run_corpus.h"
#include "train/loop/evaluate.h"
#include "train/loop/loss_by_position.h"
#include "train/loop/tasks.h"
#include "train/run/loaded_model.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Letters, of which one is a word of a language without spaces: it has three bytes.
std::string text_with_word(std::size_t characters) {
  std::string text;
  for (const char c : seeded_text(characters, "abcdefghij")) text += c == 'b' ? "猫" : std::string(1, c);
  return text;
}

// A run of one checkpoint, whose model has random weights that make some tokens far more likely than others.
struct RunWithModel {
  explicit RunWithModel(Config changed = small_model_config("gpt"), const std::string& text = text_with_word(1600))
      : config(std::move(changed)) {
    config.n_layer = config.n_head = 4;
    config.n_embd = 16;
    config.val_fraction = 0.25;
    config.eval_interval = 10;
    config.corpus = {folder.write("text.txt", text)};
    const std::unique_ptr<Task> task = make_task(config, read_corpus(config.corpus, corpus_options(config)));
    Trainer trainer(config, *task);
    randomize(trainer.store(), 5);
    directory.create();
    CheckpointState state = task->data_state();
    state.step = 3;
    state.config = config;
    Unsynced fs;
    write_checkpoint(fs, directory.checkpoint_file(3), state, trainer.store(), trainer.optimizer());
    directory.set_last(3);
    write_bytes(directory.config_file(), to_toml(config));
  }
  MeasuredRun measured() const { return read_measured_runs({directory.path()}).front(); }
  std::unique_ptr<Task> validation(const LoadedModel& loaded) const {
    return make_eval_task(config, read_corpus(config.corpus, corpus_options(config)), loaded.tokenizers,
                          {.own = true, .labels = loaded.state.labels});
  }

  TemporaryFolder folder;
  Config config;
  RunDirectory directory{folder / "run"};
};

// The first batch that a report of a run without measurements reads, and the losses of its targets.
struct FirstBatch {
  FirstBatch(const RunWithModel& run, const LoadedModel& loaded) {
    visit_target_losses(*loaded.model, *run.validation(loaded), Part::val, 1, {},
                        [&](const Batch& batch, const std::vector<double>& all) {
                          const auto read = batch.ids.values<std::int32_t>(),
                                     expected = batch.targets.values<std::int32_t>();
                          ids.assign(read.begin(), read.end());
                          targets.assign(expected.begin(), expected.end());
                          losses = all;
                          length = static_cast<std::size_t>(batch.ids.shape()[1]);
                        });
  }

  std::vector<std::int32_t> ids, targets;
  std::vector<double> losses;
  std::size_t length = 0;
};

std::string token_text(const LoadedModel& loaded, std::int32_t id) {
  return id < loaded.tokenizer->vocab_size() ? std::string(loaded.tokenizer->bytes(id)) : "";
}

// The labels of the rows and columns of the first of nine attention maps of equal size.
std::vector<std::string> attended_labels(const std::string& page) {
  std::vector<std::string> labels;
  for (const std::string& label : parts_between(page, ", monospace\"", "</text>"))
    labels.push_back(label.substr(label.find('>') + 1));
  REQUIRE(labels.size() % 9 == 0);
  labels.resize(labels.size() / 9);
  return labels;
}

}  // namespace

TEST_CASE("a report of a run whose last checkpoint is damaged is of the newest that is not, which stderr names") {
  const RunWithModel run;
  const std::string last = run.directory.checkpoint_file(9);
  for (const std::int64_t step : {5, 9}) write_bytes(run.directory.checkpoint_file(step), "damaged");
  run.directory.set_last(9);
  std::string page;
  const std::string said = written_to_stderr([&] {
    const MeasuredRun measured = run.measured();
    page = report_sections({measured}, PageLanguage("en"));
    REQUIRE(measured.state.step == 3);
  });
  REQUIRE(contains(said, last));
  REQUIRE(contains(said, "using another checkpoint, that of step 3"));
  REQUIRE(contains(page, "hash of its values"));
  const std::string first = run.directory.checkpoint_file(3);
  write_bytes(first, "damaged");
  REQUIRE(contains(error_message<CorruptFile>([&] { run.measured(); }), first));
}

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

TEST_CASE("a report shows the bits of each target of the first batch, after the token with which it begins") {
  const RunWithModel run;
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  INFO(page.substr(0, 3000));

  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  std::vector<std::string> bits, tokens, beginnings;
  for (const double loss : first.losses) bits.push_back(fmt::format("{:.1f}", loss / std::log(2)));
  for (const std::int32_t id : first.targets) tokens.push_back(token_text(loaded, id));
  beginnings = {token_text(loaded, first.ids.at(0)), ""};  // the second row continues the first
  REQUIRE(bits.size() == 16);
  REQUIRE(parts_between(page, "\" title=\"", "\">") == bits);
  REQUIRE(parts_between(page, "<div class=\"text\">", "<span") == beginnings);
  std::vector<std::string> shown;
  for (const std::string& part : parts_between(page, "\" title=\"", "</span>"))
    shown.push_back(part.substr(part.find('>') + 1));
  REQUIRE(shown == tokens);
  // One of eight colours for each 1.5 bits.
  const std::vector<std::string> colors = parts_between(page, "<span class=\"b", "\" title");
  for (std::size_t i = 0; i < 16; ++i)
    REQUIRE(colors.at(i) == std::to_string(std::clamp(static_cast<int>(first.losses[i] / std::log(2) / 1.5), 0, 7)));
}

TEST_CASE("a report shows characters whose bytes are several tokens, wherever a row begins") {
  Config config = small_model_config("gpt");
  config.tokenizer = "byte";
  std::string text;
  for (const char c : seeded_text(800, "ab")) text += c == 'a' ? "猫" : "犬";
  const RunWithModel run(config, text);
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  std::vector<std::string> expected, shown;
  Utf8Stream characters;
  for (const std::size_t row : {0U, 1U}) {  // eight bytes each, so that one of them begins within a character
    expected.push_back(row == 0 ? characters.push(token_text(loaded, first.ids.at(0))) : "");
    for (std::size_t i = 0; i < 8; ++i)
      expected.back() += characters.push(token_text(loaded, first.targets.at(row * 8 + i)));
  }
  expected.back() += characters.finish();
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  for (const std::string& row : parts_between(page, "<div class=\"text\">", "</div>"))
    shown.push_back(std::regex_replace(row, std::regex("<[^>]*>"), ""));
  REQUIRE(shown == expected);
  const std::vector<std::string> titles = parts_between(page, "\" title=\"", "\">");
  REQUIRE(titles.size() < 12);
  double all = 0, told = 0;
  for (const double loss : first.losses) all += loss / std::log(2);
  for (const std::string& title : titles) told += std::stod(title);
  REQUIRE(std::abs(told - all) < 0.051 * static_cast<double>(titles.size()));
}

TEST_CASE("a report shows one row of a long context, and of it the first 400 targets") {
  Config config = small_model_config("gpt");
  config.block_size = 500;  // of a validation text of 1001 characters, which is one batch of two rows
  const RunWithModel run(config, seeded_text(4004, "abcdef"));
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  REQUIRE(parts_between(page, "<div class=\"text\">", "<span").size() == 1);
  REQUIRE(occurrences(page, "\" title=\"") == 400);
}

TEST_CASE("a report shows the mean loss of each position, over no more batches than it reads in half a second") {
  const RunWithModel run;
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const std::unique_ptr<Task> task = run.validation(loaded);
  REQUIRE(task->eval_batches(Part::val) > 8);
  std::string page;
  double low = 0, high = 0;
  // Tokens per second of the training, which is three times as slow; a batch has 16.
  for (const auto& [speed, batches] : {std::pair{0.0, 1}, {32.0, 3}, {1e9, 8}}) {
    MeasuredRun measured = run.measured();
    if (speed > 0) measured.history.on_log({.step = 3, .loss = 2}, speed, 1);
    page = model_sections(measured, PageLanguage("en"));
    const std::vector<PositionLoss> positions = loss_by_position(*loaded.model, *task, Part::val, batches).value();
    // The line reaches from the top of its chart, at 8 pixels, to the bottom, 186 further down: y = 8 + 186 · (high −
    // loss) / (high − low); and from its left end, at 52, by the logarithm of the position, to 358 further right.
    const std::string line = parts_between(page, "<polyline class=\"c0\" points=\"", "\"").front();
    const std::vector<std::string> pairs = parts_between(" " + line, " ", " ");
    REQUIRE(positions.size() == 8);
    REQUIRE(pairs.size() == positions.size() + 1);  // a space ends the line
    const double percent = 100.0 * batches / static_cast<double>(task->eval_batches(Part::val));
    REQUIRE(contains(page, fmt::format("<p>From {:.3g} % of the validation text.</p>\n<div class=\"charts", percent)));
    std::vector<double> losses;
    for (const PositionLoss& position : positions)
      losses.push_back(position.sum / static_cast<double>(position.targets));
    const auto range = std::ranges::minmax(losses);
    low = range.min, high = range.max;
    INFO(batches << " batches");
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const double x = 52 + 358 * std::log(static_cast<double>(i + 1)) / std::log(8);
      REQUIRE(std::abs(std::stod(pairs[i]) - x) < 0.051);
      REQUIRE(std::abs(std::stod(pairs[i].substr(pairs[i].find(',') + 1)) - 8 -
                       186 * (high - losses[i]) / (high - low)) < 0.051);
    }
  }
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

TEST_CASE("a report shows the attention of the first, the middle and the last layers and heads to the first tokens") {
  const RunWithModel run;
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  std::vector<std::string> titles, tokens;
  for (const int layer : {0, 1, 3})
    for (const int head : {0, 1, 3}) titles.push_back(fmt::format("{}, head {}", layer, head));
  REQUIRE(parts_between(page, "<title>layer ", "</title>") == titles);
  for (std::size_t i = 0; i < first.length; ++i) tokens.push_back(token_text(loaded, first.ids[i]));
  REQUIRE(std::ranges::count(first.ids.begin(), first.ids.begin() + 8, 0) > 0);
  for (std::size_t i = 0; i < first.length; ++i) tokens.push_back(tokens[i]);
  REQUIRE(attended_labels(page) == tokens);
}

TEST_CASE("a report shows the attention to a document that is shorter than the context, and to nothing behind it") {
  Config config = small_model_config("gpt");
  config.respect_documents = true;
  config.document_separator = "--";
  std::string text;
  for (std::uint64_t i = 0; i < 100; ++i) text += seeded_text(4, "abcdef", i) + "\n--\n";
  const RunWithModel run(config, text);
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  std::vector<std::string> tokens = {token_label(token_text(loaded, first.ids.at(0)))};
  for (std::size_t i = 0; i < first.length && first.targets[i] != kIgnoredTarget; ++i)
    tokens.push_back(token_label(token_text(loaded, first.targets[i])));
  REQUIRE(tokens.size() < first.length);
  const std::size_t count = tokens.size();
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(tokens[i]);
  REQUIRE(attended_labels(model_sections(run.measured(), PageLanguage("en"))) == tokens);
}

TEST_CASE("a report shows the cosines of learned positions, and of the most frequent tokens to their nearest") {
  const RunWithModel run;
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  // Each position is nearest to itself.
  REQUIRE(contains(page, "Cosine between learned positions"));
  REQUIRE(contains(page,
                   "<path fill=\"#053061\" d=\"M0 0h1v1h-1zM1 1h1v1h-1zM2 2h1v1h-1zM3 3h1v1h-1zM4 4h1v1h-1z"
                   "M5 5h1v1h-1zM6 6h1v1h-1zM7 7h1v1h-1z\"/>"));
  const auto table = std::ranges::find_if(loaded.store.parameters(),
                                          [](const auto& parameter) { return parameter->name() == "wte.weight"; });
  const auto width = static_cast<std::size_t>(run.config.n_embd);
  const float* const rows = (*table)->value().data<float>();
  const auto product = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t c = 0; c < width; ++c) sum += double{rows[a * width + c]} * double{rows[b * width + c]};
    return sum;
  };
  // The word first, then by frequency and by id.
  const auto ids = static_cast<std::size_t>(loaded.tokenizer->vocab_size());
  std::vector<std::tuple<bool, std::ptrdiff_t, std::size_t>> frequent;
  for (std::size_t id = 0; id < ids; ++id) {
    const auto times = std::ranges::count(first.targets, static_cast<std::int32_t>(id));
    if (times > 0) frequent.emplace_back(token_text(loaded, static_cast<std::int32_t>(id)) != "猫", -times, id);
  }
  std::ranges::sort(frequent);
  REQUIRE_FALSE(std::get<0>(frequent.front()));
  std::string expected;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, frequent.size()); ++i) {
    const std::size_t id = std::get<2>(frequent[i]);
    std::vector<std::pair<double, std::size_t>> near;
    for (std::size_t other = 0; other < ids; ++other)
      if (other != id)
        near.emplace_back(-product(id, other) / std::sqrt(product(id, id) * product(other, other)), other);
    std::ranges::sort(near);
    expected += fmt::format("<tr><th scope=\"row\">{}</th><td>", token_text(loaded, static_cast<std::int32_t>(id)));
    for (std::size_t k = 0; k < 6; ++k)
      expected +=
          fmt::format("{} {:.2f}   ", token_text(loaded, static_cast<std::int32_t>(near[k].second)), -near[k].first);
    expected += "</td></tr>\n";
  }
  REQUIRE(contains(page,
                   "<h2>Nearest tokens</h2>\n<p>The cosine of the angle between the embeddings.</p>\n"
                   "<div class=\"wide\"><table>\n" +
                       expected + "</table>"));
}

TEST_CASE("a report shows twelve masks with six tokens on each side, what they hide and what the model expects") {
  Config config = small_model_config("encoder", "masked");
  config.block_size = 100;
  const RunWithModel run(config);
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const FirstBatch first(run, loaded);
  MaskedText text{{first.ids.begin(), first.ids.begin() + 100}, {}};
  const auto mask = static_cast<std::int32_t>(loaded.tokenizer->vocab_size());
  bool targets_are_visible = false;  // in the batch, but not in the report
  for (std::int32_t i = 0; i < 100; ++i) {
    if (first.targets[static_cast<std::size_t>(i)] == kIgnoredTarget) continue;
    if (text.masks.size() < 12) text.masks.push_back(i);
    std::int32_t& id = text.ids[static_cast<std::size_t>(i)];
    targets_are_visible |= id != mask;
    id = mask;
  }
  REQUIRE(targets_are_visible);
  REQUIRE(text.masks.size() == 12);
  const auto candidates = fill_masks(loaded, text, 3);
  std::string rows =
      "<tr><th scope=\"col\">text</th><th scope=\"col\">hidden token</th><th scope=\"col\">expected</th></tr>\n";
  for (std::size_t m = 0; m < 12; ++m) {
    const std::int32_t at = text.masks[m];
    std::string around, expected;
    for (std::int32_t i = std::max(0, at - 6); i <= std::min(99, at + 6); ++i) {
      const std::int32_t id = text.ids[static_cast<std::size_t>(i)];
      around += id == mask ? "[MASK]" : token_text(loaded, id);
    }
    for (const Candidate& candidate : candidates[m])
      expected += fmt::format("{} {:.0f} %   ", token_text(loaded, candidate.id), 100 * candidate.probability);
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n", around,
                        token_text(loaded, first.targets[static_cast<std::size_t>(at)]), expected);
  }
  const std::string page = model_sections(run.measured(), PageLanguage("en"));
  REQUIRE(contains(page, "<h2>Filled masks</h2>\n<div class=\"wide\"><table>\n" + rows + "</table>"));
  // Attention is shown to the first 20 tokens that the tokenizer has: without the masks.
  std::size_t attended = 0;
  for (std::size_t i = 0; i < 100 && attended < 20; ++i) attended += token_text(loaded, first.ids[i]).empty() ? 0 : 1;
  REQUIRE(attended_labels(page).size() == 2 * attended);
}

TEST_CASE("a report tells from which part of the text its numbers are, and nothing if they are from all of it") {
  const Config config = small_model_config("encoder", "classify");
  const auto page_of = [&](int texts, int labels, const char* language) {
    std::string text;
    for (int i = 0; i < texts; ++i)
      text += seeded_text(6, "abcdef", static_cast<std::uint64_t>(i)) + fmt::format("\tlabel {}\n", i % labels);
    const RunWithModel run(config, text);
    const LoadedModel loaded(run.directory.checkpoint_file(3));
    const std::int64_t batches = run.validation(loaded)->eval_batches(Part::val);
    REQUIRE((batches > 32) == (texts > 80));
    const std::string share = fmt::format("{:.3g} %", 3200.0 / static_cast<double>(batches));
    return std::pair(model_sections(run.measured(), PageLanguage(language)), share);
  };
  const auto [few, share] = page_of(1000, 3, "en");
  REQUIRE(
      contains(few, fmt::format("<h2>Labels and answers</h2>\n<p>From {} of the validation text.</p>\n<div", share)));
  const auto [many, share_of_many] = page_of(1000, 30, "en");
  REQUIRE(contains(many,
                   fmt::format("<h2>Most frequent mistakes</h2>\n<p>From {} of the validation text.", share_of_many)));
  const auto [japanese, same] = page_of(1000, 3, "ja");
  REQUIRE(contains(japanese, fmt::format("<p>検証テキストの {} から。</p>", same)));
  REQUIRE_FALSE(contains(page_of(80, 3, "en").first, " % of the validation text"));
}

TEST_CASE("a report shows the labels of texts against the answers of a classifier") {
  std::string text;
  for (int i = 0; i < 80; ++i)
    text += seeded_text(6, "abcdef", static_cast<std::uint64_t>(i)) + fmt::format("\tlabel {}\n", i % 3);
  const RunWithModel run(small_model_config("encoder", "classify"), text);
  const LoadedModel loaded(run.directory.checkpoint_file(3));
  const std::unique_ptr<Task> task = run.validation(loaded);
  const MeanLoss loss = mean_loss(*loaded.model, *task, Part::val, 0, {}).value();
  const std::int64_t batches = task->eval_batches(Part::val);
  REQUIRE(batches <= 32);
  const Json facts = to_json(task->measure(*loaded.model, {loss, batches, batches}, {}, {}));
  std::string rows = "<tr><th scope=\"col\">label \\ answer</th>", cells;
  for (std::size_t label = 0; label < 3; ++label) {
    const auto name = facts.at("labels").at(label).get<std::string>();
    rows += fmt::format("<th scope=\"col\">{}</th>", name);
    cells += fmt::format("<tr><th scope=\"row\">{}</th>", name);
    for (const auto& times : facts.at("confusion").at(label)) cells += fmt::format("<td>{}</td>", times.get<int>());
    cells += "</tr>\n";
  }
  REQUIRE(facts.at("confusion") != Json::parse("[[0,0,0],[0,0,0],[0,0,0]]"));
  REQUIRE(
      contains(model_sections(run.measured(), PageLanguage("en")),
               "<h2>Labels and answers</h2>\n<div class=\"wide\"><table>\n" + rows + "</tr>\n" + cells + "</table>"));
}
