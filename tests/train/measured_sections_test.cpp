// What a report shows of the measurements of one run or of several.
#include <fmt/format.h>

#include "data/io/error.h"
#include "tests/files.h"
#include "tests/train/drawing.h"
#include "tests/train/session_run.h"
#include "train/app/report/sections.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Texts = std::vector<std::string>;

const PageLanguage kEnglish("en");

// Three logged steps, at whose charts the x are 52, 231 and 410 pixels. There is no such file, so that nothing of a
// model is shown.
MeasuredRun three_steps(const std::string& path) {
  MeasuredRun run{.path = path, .state = {}, .history = {}, .best = {}, .sources = {}};
  run.history.on_log({.step = 10, .loss = 4, .learning_rate = 0.1, .grad_norm = 0.5}, 300, 1);
  run.history.on_log({.step = 20, .loss = 2, .learning_rate = 0.3, .grad_norm = 0.75}, 200, 5);
  run.history.on_log({.step = 30, .loss = 3, .learning_rate = 0.2, .grad_norm = 1}, 100, 9);
  return run;
}

Texts figures_of(const std::vector<MeasuredRun>& runs) {
  return parts_between(report_sections(runs, kEnglish), "<figure>", "</figure>");
}

// The points of the series with a colour, as "x,y".
Texts circles_of(const std::string& figure, int color) {
  Texts points;
  for (const std::string& circle : parts_between(figure, fmt::format("<circle class=\"c{}\" cx=\"", color), "\" r="))
    points.push_back(circle.substr(0, circle.find('"')) + "," + circle.substr(circle.rfind('"') + 1));
  return points;
}

Texts keys_of(const std::string& figure) { return parts_between(figure, "<span class=\"key ", "</span>"); }

// What the report says of the state of a run; empty if nothing.
std::string state_of(const MeasuredRun& run) {
  const Texts rows = parts_between(report_sections({run}, kEnglish), "<th scope=\"row\">state</th><td>", "</td>");
  REQUIRE(rows.size() <= 1);
  return rows.empty() ? "" : rows[0];
}

Texts titles_of(const Texts& figures) {
  Texts titles;
  for (const std::string& figure : figures) titles.push_back(parts_between(figure, "<figcaption>", "<").at(0));
  return titles;
}

}  // namespace

TEST_CASE("a report draws the losses of a run, its evaluations at their steps and times, and its best checkpoint") {
  MeasuredRun run = three_steps("none.maki");
  run.history.on_counting({.order = 3, .val_loss = 3.25, .nats_per_character = 1});
  run.state.best_possible_loss = 2.75;
  run.best = BestPointer{.step = 15, .loss = 2.5};
  for (const auto& [step, loss] : {std::pair(10, 3.5), {15, 2.5}, {30, 3.0}})
    run.history.on_eval({.step = step, .train_loss = 3, .val_loss = loss}, false);
  const Texts figures = figures_of({run});
  REQUIRE(titles_of(figures) == Texts{"loss, nats per token", "loss, nats per token",
                                      "loss, nats per token, logarithmic", "loss, nats per token, logarithmic",
                                      "learning rate", "norm of the gradient, before clipping", "tokens per second"});
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(keys_of(figures[i]) == Texts{"c0 faint\">training, single steps", "c0\">training, smoothed",
                                         "c1 dots\">validation", "c2 dots\">best checkpoint",
                                         "dash\">counting alone 3.25", "dash\">best possible 2.75"});
    REQUIRE(contains(figures[i], i % 2 == 0 ? ">steps</text>" : ">seconds</text>"));
  }
  // As high as the smoothed losses, from 4 on, and the evaluations, down to 2.5.
  for (const std::size_t linear : {0U, 1U})
    REQUIRE(contains(figures[linear], "<polyline class=\"c0 faint\" points=\"52.0,8.0 231.0,194.0 410.0,132.0 \"/>"));
  REQUIRE(circles_of(figures[0], 1) == Texts{"52.0,70.0", "141.5,194.0", "410.0,132.0"});
  REQUIRE(circles_of(figures[0], 2) == Texts{"141.5,194.0"});
  // An evaluation has the time of its step, or of the next one that was logged.
  REQUIRE(circles_of(figures[1], 1) == Texts{"52.0,70.0", "231.0,194.0", "410.0,132.0"});
  REQUIRE(circles_of(figures[1], 2) == Texts{"231.0,194.0"});
  REQUIRE(circles_of(figures[2], 1).size() == 3);
  REQUIRE(circles_of(figures[2], 1)[0].starts_with("52.0,"));  // at log 10 / log 10, and the next at log 15/10 / log 3
  REQUIRE(circles_of(figures[2], 1)[1].starts_with("184.1,"));
  for (const auto& [figure, points] : {std::pair{4U, "52.0,194.0 231.0,8.0 410.0,101.0 "},
                                       {5U, "52.0,194.0 231.0,101.0 410.0,8.0 "},
                                       {6U, "52.0,8.0 231.0,101.0 410.0,194.0 "}})
    REQUIRE(parts_between(figures[figure], "points=\"", "\"") == Texts{points});

  // After the last line there is no later time.
  run.history.on_eval({.step = 50, .train_loss = 3, .val_loss = 3.5}, false);
  REQUIRE(circles_of(figures_of({run})[0], 1).back() == "410.0,70.0");
  REQUIRE(circles_of(figures_of({run})[1], 1).back() == "410.0,70.0");
}

TEST_CASE("the best checkpoint stands at its step, whatever the losses of other evaluations are") {
  MeasuredRun run = three_steps("none.maki");
  for (const auto& [step, loss] : {std::pair(10, 2.5), {20, 2.75}, {30, 3.0}})
    run.history.on_eval({.step = step, .train_loss = 3, .val_loss = loss}, false);
  run.best = BestPointer{.step = 20, .loss = 2.75};
  REQUIRE(circles_of(figures_of({run})[0], 2) == Texts{circles_of(figures_of({run})[0], 1).at(1)});
  run.best->loss = 2.25;  // measured again, over another share of the text
  REQUIRE(circles_of(figures_of({run})[0], 2) == Texts{circles_of(figures_of({run})[0], 1).at(1)});
  run.best->step = 25;
  REQUIRE(circles_of(figures_of({run})[0], 2).empty());
  REQUIRE_FALSE(contains(figures_of({run})[0], "best checkpoint"));
}

TEST_CASE("a report of several runs has one colour for the losses of each") {
  std::vector<MeasuredRun> runs = {three_steps("first"), three_steps("second")};
  for (std::size_t i = 0; i < 2; ++i) {
    MeasuredRun& run = runs[i];
    run.state.config.grad_clip = 0.25;
    run.best = BestPointer{.step = 20, .loss = 2.5};
    run.history.on_eval({.step = i == 0 ? 10 : 20, .train_loss = 3, .val_loss = 2.5}, false);
    run.history.on_counting({.order = 3, .val_loss = 3.25, .nats_per_character = 1});
  }
  const Texts figures = figures_of(runs);
  REQUIRE(figures.size() == 7);
  REQUIRE(keys_of(figures[0]) == Texts{"c0\">first", "c1\">second", "dash\">counting alone 3.25"});
  REQUIRE(circles_of(figures[0], 0) == Texts{"52.0,194.0"});
  REQUIRE(circles_of(figures[0], 1) == Texts{"231.0,194.0"});
  REQUIRE_FALSE(contains(figures[0], "faint"));
  REQUIRE(keys_of(figures[4]) == Texts{"c0\">first", "c1\">second"});
  REQUIRE_FALSE(contains(report_sections(runs, kEnglish), "were clipped"));
  runs[1].history.on_eval({.step = 30, .train_loss = 3, .val_loss = 2.5, .val_share = 0.25}, false);
  REQUIRE(keys_of(figures_of(runs)[0]).back() == "dash\">counting alone, on the whole text 3.25");
  runs[1].state.tokenizer = "another";
  REQUIRE(keys_of(figures_of(runs)[0]) == Texts{"c0\">first", "c1\">second"});
  runs[1].state.tokenizer = runs[0].state.tokenizer;
  runs[1].state.corpus_hash = "another";
  REQUIRE(keys_of(figures_of(runs)[0]) == Texts{"c0\">first", "c1\">second"});
}

TEST_CASE("a report tells how many of the logged gradients were clipped") {
  MeasuredRun run = three_steps("none.maki");
  const auto clipped = [&](double limit) {
    run.state.config.grad_clip = limit;
    const std::string page = report_sections({run}, kEnglish);
    return parts_between(page, "</div>\n<p>", " of the steps that were logged had a gradient above ");
  };
  REQUIRE(clipped(0.75).back() == "33.3 %");
  REQUIRE(clipped(0.25).back() == "100.0 %");
  REQUIRE(contains(report_sections({run}, kEnglish), "had a gradient above 0.25, and were clipped."));
  run.state.config.grad_clip = 0;
  REQUIRE_FALSE(contains(report_sections({run}, kEnglish), "were clipped"));
}

TEST_CASE("a report draws the size and the changes of each layer over the steps, on a logarithmic scale") {
  MeasuredRun run = three_steps("none.maki");
  run.history.on_layers(10, {{"wte", 1, 0.01}, {"h.0", 10, 1}});
  run.history.on_layers(20, {{"wte", 10, 0.1}, {"h.0", 100, 0.01}});
  const Texts figures = figures_of({run});
  REQUIRE(figures.size() == 9);
  REQUIRE(titles_of({figures[7], figures[8]}) ==
          Texts{"norm of the parameters", "change by one step, relative to the norm"});
  for (const std::size_t i : {7U, 8U}) REQUIRE(keys_of(figures[i]) == Texts{"c0\">wte", "c1\">h.0"});
  REQUIRE(parts_between(figures[7], "points=\"", " \"") == Texts{"52.0,194.0 410.0,101.0", "52.0,101.0 410.0,8.0"});
  REQUIRE(parts_between(figures[8], "points=\"", " \"") == Texts{"52.0,194.0 410.0,101.0", "52.0,8.0 410.0,194.0"});
}

TEST_CASE(
    "a report shows the texts that a run generated at its beginning, after a quarter and a half, and at its end") {
  MeasuredRun run = three_steps("none.maki");
  const auto samples = [&] {
    const std::string page = report_sections({run}, kEnglish);
    const std::size_t begin = page.find("<h2>Samples</h2>\n");
    Texts texts;
    if (begin == std::string::npos) return texts;
    return parts_between(page.substr(begin), "<p>step ", "</pre>");
  };
  REQUIRE(samples().empty());
  run.history.on_sample(1000, "a < b");
  REQUIRE(samples() == Texts{"1,000</p>\n<pre>a &lt; b"});
  for (int i = 2; i <= 9; ++i) run.history.on_sample(1000 * i, fmt::format("text {}", i));
  REQUIRE(samples() == Texts{"1,000</p>\n<pre>a &lt; b", "3,000</p>\n<pre>text 3", "5,000</p>\n<pre>text 5",
                             "9,000</p>\n<pre>text 9"});
}

TEST_CASE("a report begins with what is known of a run") {
  MeasuredRun run{.path = "made", .state = {}, .history = {}, .best = {}, .sources = {"a.txt", "-"}};
  run.state.step = 1234;
  run.state.characters = 5000;
  run.state.train_tokens = 4000;
  run.state.val_tokens = 1000;
  run.state.vocab_size = 65;
  run.state.corpus_hash = "0123";
  run.state.config.model = "linear";
  run.state.config.n_layer = 2;
  run.state.config.n_head = 3;
  run.state.config.n_embd = 48;
  run.state.config.block_size = 16;
  run.best = BestPointer{.step = 1000, .loss = 1.25};
  run.history.on_log({.step = 1234, .loss = 2}, 100, 3661);
  for (const auto& [kind, text] : {std::pair(Remark::Kind::plan, "two\nlines"),
                                   {Remark::Kind::session, "8 cores"},
                                   {Remark::Kind::session, "8 cores"},
                                   {Remark::Kind::session, "4 cores"},
                                   {Remark::Kind::end, "finished"}})
    run.history.on_remark({kind, 0, text});
  const auto row = [](const char* name, const char* text) {
    return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", name, text);
  };
  const std::string first = row("run", "made") + row("step", "1,234") + row("state", "all its steps are done") +
                            row("best validation loss", "1.2500 at step 1,000") + row("training time", "1h 01m") +
                            row("text", "a.txt\n-") + row("hash of the text", "0123") +
                            row("size",
                                "5,000 characters; 4,000 training tokens, 1,000 validation tokens; "
                                "vocabulary of 65") +
                            row("model", "linear: 2 layers, 3 heads, width 48, context of 16") +
                            row("machine", "8 cores\n4 cores");
  std::string page = report_sections({run}, kEnglish);
  REQUIRE(page.starts_with("<div class=\"wide\"><table>\n" + first +
                           row("to repeat it", "maki train --config made/config.toml --out NEW_RUN &lt; TEXT") +
                           "</table></div>\n<h2>Plan</h2>\n<pre>two\nlines</pre>\n"));
  REQUIRE(kReportStyle.find("td { white-space:pre-wrap }") != kReportStyle.npos);  // texts and machines are in lines
  REQUIRE(contains(page, "<p>maki bench shows where the time of a step goes.</p>"));
  run.sources = {"a.txt"};
  run.state.config.init_from = "abcd";
  page = report_sections({run}, kEnglish);
  REQUIRE(contains(page, row("to repeat it",
                             "maki train --config made/config.toml --init-from "
                             "RUN_THAT_IT_BEGAN_WITH --out NEW_RUN")));
  run.sources = {};
  REQUIRE_FALSE(contains(report_sections({run}, kEnglish), "to repeat it"));
}

TEST_CASE("a report tells why a run is where it is") {
  const TemporaryFolder folder;
  const auto state = [&](const std::vector<Remark>& remarks) {
    MeasuredRun run{.path = folder.path(), .state = {}, .history = {}, .best = {}, .sources = {}};
    for (const Remark& remark : remarks) run.history.on_remark(remark);
    return state_of(run);
  };
  const Remark session{Remark::Kind::session, 0, "8 cores"};
  const auto end = [](const char* how) { return Remark{Remark::Kind::end, 9, how}; };
  REQUIRE(state({}).empty());
  REQUIRE(state({session, end("finished")}) == "all its steps are done");
  REQUIRE(state({session, end("interrupted")}) == "it was interrupted, and can be resumed");
  REQUIRE(state({session, end("overfitting")}) ==
          "the validation loss no longer improved while the training loss fell");
  REQUIRE(state({session, end("interrupted"), session}) ==
          "it ended without saving: it was killed, or its numbers were no longer finite");
}

TEST_CASE("a report of a run whose text could not be read any more tells that it was saved") {
  struct Unreadable : SessionListener {
    void on_step(const StepReport&, double) override { fail<CorpusError>("the text is gone"); }
  } listener;
  const SessionRun run;
  TextTrainer trainer(run.config, run.data);
  Session session(run.config, trainer, run.directory, listener, {.remarks = {{Remark::Kind::session, "8 cores"}}});
  REQUIRE_THROWS_AS(session.train(), CorpusError);
  const MeasuredRun measured = read_measured_runs({run.directory.path()}).front();
  REQUIRE(measured.state.step == 1);
  REQUIRE(state_of(measured) == "its text could not be read any more; it was saved, and can be resumed");
}

TEST_CASE("the best loss of a run is the one of its checkpoint, or a report tells why there is none") {
  MeasuredRun run{.path = "none.maki", .state = {}, .history = {}, .best = {}, .sources = {}};
  REQUIRE(best_of(run, kEnglish).empty());
  REQUIRE(time_of(run).empty());
  run.history.on_log({.step = 1, .loss = 2}, 0, 61);
  REQUIRE(best_of(run, kEnglish) == "none, because there is no validation text");
  REQUIRE(time_of(run) == "1m 01s");
  run.state.val_tokens = 5;
  REQUIRE(best_of(run, kEnglish) == "none yet");
  run.best = BestPointer{.step = 1000, .loss = 1.5};
  REQUIRE(best_of(run, kEnglish) == "1.5000 at step 1,000");
  REQUIRE(best_of(run, PageLanguage("ja")) == "1.5000（ステップ 1,000）");
  // Losses of samples are not those of the whole text.
  run.history.on_eval({.step = 1000, .train_loss = 1, .val_loss = 1.5, .val_share = 0.25}, true);
  REQUIRE(best_of(run, kEnglish) == "1.5000 on 25% of the text at step 1,000");
  REQUIRE(best_of(run, PageLanguage("ja")) == "1.5000（ステップ 1,000、テキストの 25%）");
  run.history.on_eval({.step = 2000, .train_loss = 1, .val_loss = 1.75, .val_share = 0.5}, false);
  REQUIRE(share_of_best(run) == 0.25);
  run.best->loss = 1.625;  // measured again, over what evaluations cover since then
  REQUIRE(share_of_best(run) == 0.5);
}

TEST_CASE("runs are compared by what they reached, then by the fields in which they differ, and the equal ones") {
  std::vector<MeasuredRun> runs = {three_steps("a\nb"), three_steps("second")};
  runs[0].state.step = 1000;
  runs[1].best = BestPointer{.step = 20, .loss = 1.5};
  runs[0].state.config.n_layer = 3;
  for (MeasuredRun& run : runs) run.state.corpus_hash = "0123";
  const Comparison all = compare(runs, kEnglish);
  REQUIRE(all.results == std::vector<TableRow>{
                             {"", "a\\nb", "second"},
                             {"step", "1,000", "0"},
                             {"best validation loss", "none, because there is no validation text", "1.5000 at step 20"},
                             {"training time", "9s", "9s"}});
  REQUIRE(all.different.size() == 1);
  REQUIRE(all.different[0][0] == "n_layer");
  REQUIRE(all.different[0][1] == "3");
  REQUIRE(all.equal.front() == TableRow{"text", "0123", "0123"});
}
