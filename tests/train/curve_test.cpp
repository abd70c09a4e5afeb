// The losses of a run as lines of text.
#include "train/app/draw/curve.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "train/run/metrics.h"

using namespace maki;

namespace {

// A run whose loss falls from 5 to 1, with two evaluations.
RunHistory falling(std::int64_t lines) {
  RunHistory history;
  for (std::int64_t i = 0; i < lines; ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(lines - 1);
    history.on_log({.step = 10 * i, .loss = 1 + 4 * std::exp(-20 * done)}, 0, 0);
  }
  history.on_eval({.step = 5 * lines, .train_loss = 1, .val_loss = 2.5}, false);
  history.on_eval({.step = 9 * lines, .train_loss = 1, .val_loss = 1.5}, false);
  return history;
}

std::vector<std::string> drawn(const RunHistory& history, const CurveStyle& style, std::optional<double> best = {}) {
  return draw_curve({history, history.steps().empty() ? 0 : history.steps().back().step.step, best}, style);
}

std::size_t row_with(const std::vector<std::string>& lines, const std::string& text) {
  const auto found = std::ranges::find_if(lines, [&](const std::string& line) { return line.find(text) != line.npos; });
  return static_cast<std::size_t>(found - lines.begin());
}

}  // namespace

TEST_CASE("a curve has as many rows as asked for and an axis, none of them too long, for every size") {
  const RunHistory history = falling(200);
  for (const std::size_t columns : {30U, 60U, 79U, 200U}) {
    for (const std::size_t rows : {2U, 5U, 12U}) {
      for (const bool utf8 : {false, true}) {
        const std::vector<std::string> lines = drawn(history, {columns, rows, utf8}, 0.5);
        INFO(columns << " columns, " << rows << " rows");
        REQUIRE(lines.size() == rows + 2);
        for (const std::string& line : lines) REQUIRE(display_width(line) <= static_cast<std::int64_t>(columns));
        const bool ascii = std::ranges::all_of(lines, [](const std::string& line) {
          return std::ranges::all_of(line, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
        });
        REQUIRE(ascii != utf8);
      }
    }
  }
}

TEST_CASE("a falling loss goes from the top left to the bottom right, and ends at the right end of the axis") {
  const std::vector<std::string> lines = drawn(falling(200), {.columns = 60, .rows = 8, .utf8 = false});
  const auto first_mark = [&](std::size_t row) { return lines[row].find_first_of(".':", lines[row].find('|')); };
  REQUIRE(first_mark(0) < first_mark(7));
  REQUIRE(lines[7].find_last_of(".':") == lines[8].size() - 1);
  REQUIRE(lines.back().ends_with("1,990 steps"));
  // Validations are circles, the later one lower and further right.
  const std::size_t earlier = row_with(lines, "o");
  std::size_t later = lines.size();
  while (lines[--later].find('o') == std::string::npos || later >= 8) continue;
  REQUIRE(earlier < later);
  REQUIRE(lines[earlier].find('o') < lines[later].find('o'));
}

TEST_CASE("the lines to compare with stand at their losses and are named, also where they are close to each other") {
  RunHistory history = falling(200);
  history.on_counting({.order = 3, .val_loss = 2, .nats_per_character = 2});
  const std::vector<std::string> apart = drawn(history, {.columns = 79, .rows = 10, .utf8 = true}, 0.25);
  const std::size_t counting = row_with(apart, "counting alone 2.00"), best = row_with(apart, "best possible 0.25");
  REQUIRE(counting < best);
  REQUIRE(best == 9);  // the lowest of all
  REQUIRE(apart[counting].find("╌") != std::string::npos);
  const std::vector<std::string> close = drawn(history, {.columns = 79, .rows = 10, .utf8 = true}, 1.99);
  REQUIRE(row_with(close, "counting alone") + 1 == row_with(close, "best possible"));
  // Below the last row there is none.
  history.on_counting({.order = 3, .val_loss = 0.25, .nats_per_character = 2});
  const std::vector<std::string> lowest_two = drawn(history, {.columns = 79, .rows = 10, .utf8 = true}, 0.25);
  REQUIRE(row_with(lowest_two, "counting alone 0.25") == 9);
  REQUIRE(row_with(lowest_two, "best possible 0.25") == 8);
  history.on_counting({.order = 3, .val_loss = 2, .nats_per_character = 2});
  const std::vector<std::string> narrow = drawn(history, {.columns = 50, .rows = 10, .utf8 = true}, 0.25);
  REQUIRE(row_with(narrow, "counting 2.00") == counting);
  REQUIRE(row_with(narrow, "best 0.25") == best);
  for (const auto& [columns, name, lowest] : {std::tuple{39U, "", ""},
                                              {40U, " counting 2.00", " best 0.25"},
                                              {59U, " counting 2.00", " best 0.25"},
                                              {60U, " counting alone 2.00", " best possible 0.25"}}) {
    INFO(columns << " columns");
    const std::vector<std::string> lines = drawn(history, {.columns = columns, .rows = 10, .utf8 = true}, 0.25);
    REQUIRE((row_with(lines, "╌") < lines.size()) == (columns > 39));
    REQUIRE(lines[counting].ends_with(name));
    REQUIRE(lines[best].ends_with(lowest));
    REQUIRE((columns > 39 || row_with(lines, "counting") == lines.size()));
  }
}

TEST_CASE("counting is named with the part of the text that it covers where evaluations cover another") {
  RunHistory history = falling(200);
  history.on_counting({.order = 3, .val_loss = 2, .nats_per_character = 2, .val_share = 0.5});
  const auto rows_with = [&](std::size_t columns, const std::string& text) {
    return row_with(drawn(history, {.columns = columns, .rows = 10, .utf8 = true}), text) < 10;
  };
  REQUIRE(rows_with(79, "counting, 50% of text 2.00"));
  REQUIRE_FALSE(rows_with(50, "counting"));
  history.on_counting({.order = 3, .val_loss = 2, .nats_per_character = 2});
  REQUIRE(rows_with(79, "counting alone 2.00"));
  history.on_eval({.step = 1900, .train_loss = 1, .val_loss = 1.5, .val_share = 0.5}, false);
  REQUIRE(rows_with(79, "counting, whole text 2.00"));
}

TEST_CASE("the beginning of a run does not flatten the rest, and a constant loss is a line in the middle") {
  const std::vector<std::string> lines = drawn(falling(1000), {.columns = 60, .rows = 8, .utf8 = false});
  REQUIRE(std::stod(lines[0]) < 3.5);
  RunHistory constant;
  for (std::int64_t i = 1; i <= 3; ++i) constant.on_log({.step = i, .loss = 2}, 0, 0);
  const std::vector<std::string> flat = drawn(constant, {.columns = 40, .rows = 5, .utf8 = false});
  REQUIRE(flat[2].find_first_of(".':") != std::string::npos);
  REQUIRE(flat[1].find_first_of(".':", 6) == std::string::npos);
}

TEST_CASE("a curve has no gap, however far apart its losses are") {
  RunHistory few;
  for (std::int64_t i = 0; i < 4; ++i) few.on_log({.step = 100 * i, .loss = static_cast<double>(4 - i)}, 0, 0);
  const std::vector<std::string> lines = drawn(few, {.columns = 60, .rows = 8, .utf8 = false});
  const std::size_t begin = lines.front().find('|') + 1;
  for (std::size_t x = begin; x < lines[8].size(); ++x) {
    const bool marked = std::any_of(lines.begin(), lines.begin() + 8,
                                    [&](const std::string& line) { return x < line.size() && line[x] != ' '; });
    INFO("column " << x);
    REQUIRE(marked);
  }
}

TEST_CASE("a circle stays where a dashed line crosses it, and a number of steps may be wider than the plot") {
  RunHistory history;
  for (std::int64_t i = 1; i <= 3; ++i) history.on_log({.step = i * 1'000'000, .loss = 1}, 0, 0);
  history.on_eval({.step = 2'000'000, .train_loss = 1, .val_loss = 2}, false);
  const std::vector<std::string> lines = drawn(history, {.columns = 79, .rows = 6, .utf8 = false}, 2.0);
  REQUIRE(lines[0].find("---o---") != std::string::npos);
  const CurveSubject long_run{history, 1'000'000'000'000'000};
  REQUIRE(draw_curve(long_run, {.columns = 24, .rows = 4, .utf8 = false}).size() == 6);
}

TEST_CASE("a curve connects its losses by straight lines, of two dots in a character of ASCII and eight in braille") {
  RunHistory bent;  // whose smoothed losses are 3, 2 and 2.8
  for (const auto& [step, loss] : {std::pair{0, 3.0}, {11, 1.2}, {20, 3.952}})
    bent.on_log({.step = step, .loss = loss}, 0, 0);
  const auto text = [&](const CurveStyle& style) {
    std::string all;
    for (const std::string& line : drawn(bent, style)) all += line + "\n";
    return all;
  };
  REQUIRE(text({.columns = 27, .rows = 4, .utf8 = false}) ==
          "3.00 |'..                 .\n"
          "     |   '..           ..'\n"
          "     |      ''.     ..'\n"
          "2.00 |         ''.''\n"
          "     +---------------------\n"
          "      0            20 steps\n");
  REQUIRE(text({.columns = 27, .rows = 4, .utf8 = true}) ==
          "3.00 ┤⠑⠢⣀                 ⢀\n"
          "     │   ⠑⠢⣀           ⢀⠤⠊⠁\n"
          "     │      ⠉⠢⢄     ⢀⠤⠊⠁\n"
          "2.00 ┤         ⠉⠢⢄⠤⠊⠁\n"
          "     └─────────────────────\n"
          "      0            20 steps\n");
}

TEST_CASE("a dashed line stands behind the curve that it crosses, and is only where the plot is empty") {
  const RunHistory history = falling(40);
  for (const bool utf8 : {false, true}) {
    // The name of the line, " best 2.00", takes ten columns.
    const std::vector<std::string> plain = drawn(history, {.columns = 40, .rows = 6, .utf8 = utf8}),
                                   crossed = drawn(history, {.columns = 50, .rows = 6, .utf8 = utf8}, 2.0);
    const std::size_t row = row_with(crossed, "best 2.00");
    REQUIRE(row < 6);
    const std::string dash = utf8 ? "╌" : "-";
    std::string expected;
    const std::string axis = utf8 ? "│" : "|";
    const std::size_t begin = plain[row].find(axis) + axis.size();
    for (const char c : plain[row].substr(begin)) expected += c == ' ' ? dash : std::string(1, c);
    for (std::int64_t x = display_width(plain[row]); x < display_width(plain[6]); ++x) expected += dash;
    REQUIRE(crossed[row] == plain[row].substr(0, begin) + expected + " best 2.00");
    REQUIRE(plain[row].find_first_not_of(' ', begin) != std::string::npos);
    for (std::size_t i = 0; i < plain.size(); ++i)
      if (i != row) REQUIRE(crossed[i] == plain[i]);
  }
}

TEST_CASE("the axis of a curve reaches to the last step, also of one or none, and explains circles where it has room") {
  RunHistory history;
  history.on_log({.step = 0, .loss = 2}, 0, 0);
  history.on_log({.step = 1, .loss = 1.96}, 0, 0);
  const CurveStyle style{.columns = 27, .rows = 2, .utf8 = false};
  REQUIRE(draw_curve({history, 1}, style) ==
          std::vector<std::string>{"2.000 |''''......", "1.978 |          ''''''....", "      +--------------------",
                                   "       0             1 step"});
  REQUIRE(draw_curve({history, 0}, style).at(2) == "      +--------------------");
  const auto axis = [&](std::size_t columns) { return draw_curve({history, 1}, {.columns = columns, .utf8 = false}); };
  REQUIRE(axis(60).back() == "       0" + std::string(46, ' ') + "1 step");
  history.on_eval({.step = 1, .train_loss = 1, .val_loss = 2}, false);
  REQUIRE(axis(60).back() == "       0" + std::string(17, ' ') + "o validation" + std::string(17, ' ') + "1 step");
  REQUIRE(axis(38).back() == "       0" + std::string(24, ' ') + "1 step");
  REQUIRE(axis(39).back() == "       0" + std::string(6, ' ') + "o validation" + std::string(7, ' ') + "1 step");
}

TEST_CASE("too few losses or too little space give no curve") {
  RunHistory one;
  REQUIRE(drawn(one, {}).empty());
  one.on_log({.step = 1, .loss = 2}, 0, 0);
  REQUIRE(drawn(one, {}).empty());
  REQUIRE(drawn(falling(9), {.columns = 20}).empty());
  REQUIRE(drawn(falling(9), {.columns = 80, .rows = 1}).empty());
}

TEST_CASE("a smoothed loss begins as the plain mean, follows the losses, and has a range of the newest") {
  std::vector<LoggedStep> steps;
  for (const double loss : {4.0, 2.0, 3.0}) steps.push_back({{.step = std::ssize(steps), .loss = loss}, 0, 0});
  const std::vector<double> smooth = smoothed_losses(steps);
  REQUIRE(smooth[0] == 4);
  REQUIRE(std::abs(smooth[1] - (0.8 * 4 + 2) / 1.8) < 1e-12);
  REQUIRE(recent_losses(steps) == std::pair(2.0, 4.0));
  for (int i = 0; i < 400; ++i) steps.push_back({{.step = std::ssize(steps), .loss = 1 + 0.1 * (i % 2)}, 0, 0});
  REQUIRE(std::abs(smoothed_losses(steps).back() - 1.05) < 0.01);
  REQUIRE(recent_losses(steps) == std::pair(1.0, 1.1));
}

TEST_CASE("the history of a run is what its metrics hold, without lines that are no measurements") {
  const maki::tests::TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  REQUIRE(read_history(path).steps().empty());
  {
    MetricsFile metrics(path, 0);
    metrics.on_counting({.step = 0, .order = 5, .val_loss = 2, .nats_per_character = 1});
    metrics.on_log({.step = 10, .loss = 3, .learning_rate = 0.5, .grad_norm = 0.25, .tokens = 640}, 100, 2.5);
    metrics.on_eval({.step = 10, .train_loss = 2.5, .val_loss = 2.75, .val_share = 0.5, .val_accuracy = 0.75}, true);
    metrics.on_sample(10, "to be\nor not");
  }
  maki::tests::write_bytes(path,
                           maki::tests::read_bytes(path) +
                               "nonsense\n{\"kind\":\"train\",\"step\":20}\n{\"kind\":\"train\",\"step\":30,\"lo");
  const RunHistory history = read_history(path);
  REQUIRE(history.steps().size() == 1);
  const LoggedStep& logged = history.steps()[0];
  REQUIRE(logged.step.loss == 3);
  REQUIRE(logged.step.learning_rate == 0.5);
  REQUIRE(logged.step.grad_norm == 0.25);
  REQUIRE(logged.step.tokens == 640);
  REQUIRE(logged.tokens_per_second == 100);
  REQUIRE(logged.elapsed_seconds == 2.5);
  REQUIRE(history.evals().size() == 1);
  REQUIRE(history.evals()[0].val_loss == 2.75);
  REQUIRE(history.evals()[0].val_share == 0.5);
  REQUIRE(history.evals()[0].val_accuracy == 0.75);
  REQUIRE(history.counting()->order == 5);
  REQUIRE(history.samples()[0].text == "to be\nor not");
}
