// What a console prints about a session where stderr is no terminal.
#include "train/app/console.h"

#include <cstdlib>

#include "tests/train/captured_stderr.h"
#include "train/run/history.h"

using namespace maki;
using namespace maki::tests;

namespace {

// What is said of the first steps, which take so many seconds each.
std::string said_of_steps(std::int64_t max_steps, const std::vector<double>& seconds,
                          std::optional<PlannedRun> plan = std::nullopt) {
  return written_to_stderr([&] {
    const RunHistory history;
    Console console(max_steps, "run", std::nullopt, plan);
    console.on_start(0, history);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      console.on_step({.step = static_cast<std::int64_t>(i) + 1}, seconds[i]);
  });
}

// What is said by the calls of `events`.
std::string said_by(const std::function<void(Console&)>& events, std::optional<double> best_possible = std::nullopt,
                    std::optional<PlannedRun> plan = std::nullopt) {
  return written_to_stderr([&] {
    Console console(100, "my run", best_possible, plan);
    events(console);
  });
}

}  // namespace

TEST_CASE("the time of a run is estimated from its second and third step, and more than a day is warned about") {
  REQUIRE(said_of_steps(5, {9, 0.25}).empty());
  REQUIRE(said_of_steps(5, {9, 0.25, 0.75, 9}) == "time   500 ms per step: about 1s for the remaining 2 steps\n");
  REQUIRE(said_of_steps(3, {9, 0.25, 0.75}).empty());  // nothing remains
  REQUIRE(said_of_steps(5, {9, 0.25, 0.75}, PlannedRun{}).empty());
  // 1,024 steps of 84.375 s are a day.
  REQUIRE(said_of_steps(1027, {500, 84.375, 84.375}) ==
          "time   84,375 ms per step: about 24h 00m for the remaining 1,024 steps\n");
  REQUIRE(said_of_steps(1027, {500, 84.375, 84.5}) ==
          "time   84,438 ms per step: about 24h 01m for the remaining 1,024 steps\n"
          "warning: this run will take more than a day; lower --max-steps or use a smaller model; Ctrl-C stops it at "
          "any time, and it can be resumed\n");
}

TEST_CASE("a line about a step has its loss and speed") {
  RunHistory history;
  const std::string said = said_by([&](Console& console) {
    console.on_start(0, history);
    const StepReport step{.step = 100, .loss = 1.23456};
    history.on_log(step, 1234.5, 9);
    console.on_log(step, 1234.5, 9);
  });
  REQUIRE(said == "step 100/100  loss 1.2346  1,234 tokens/s\n");
}

TEST_CASE("on a terminal the newest facts stand beside the bar") {
  RunHistory history;
  history.on_log({.step = 30, .loss = 1.25}, 1234.5, 9);
  const char* const term = std::getenv("TERM");
  const std::string before = term == nullptr ? "" : term;
  setenv("TERM", "xterm", 1);
  const auto shown = [&](double peak) {
    return written_to_terminal(120, 10, [&] {
      Console console(100, "run", std::nullopt, std::nullopt, peak);
      console.on_start(30, history);
    });
  };
  const auto first = shown(0);
  history.on_eval({.step = 30, .train_loss = 1, .val_loss = 1.5, .sampled_val_loss = 1.75}, true);
  const auto second = shown(4938);
  term == nullptr ? unsetenv("TERM") : setenv("TERM", before.c_str(), 1);
  if (!first) return;
  REQUIRE_THAT(*first, ContainsSubstring(" 30/100  loss 1.2500 (1.25 to 1.25)  1,234 tokens/s\r"));
  REQUIRE_THAT(*second, ContainsSubstring(
                            " 30/100  loss 1.2500 (1.25 to 1.25)  validation 1.7500  1,234 tokens/s  25% of peak\r"));
}

TEST_CASE("what counting alone reaches is said in nats per token and per character, and of which part of a text") {
  const auto counted = [](const CountingReport& report, std::optional<PlannedRun> plan = std::nullopt) {
    return said_by([&](Console& console) { console.on_counting(report); }, std::nullopt, plan);
  };
  CountingReport report{.order = 6, .val_loss = 2, .nats_per_character = 2};
  REQUIRE(counted(report) == "counting alone: 2.0000 nats per character, with n-grams of up to 6 tokens\n");
  REQUIRE(counted(report, PlannedRun{.expected_loss = 0.9}) ==
          "counting alone: 2.0000 nats per character, with n-grams of up to 6 tokens; about 1.80 is to be expected of "
          "the network\n");
  for (const double none : {0.0, 1.0, 1.5})
    REQUIRE(counted(report, PlannedRun{.expected_loss = none}).ends_with("6 tokens\n"));
  report.nats_per_character = 0.5;
  report.train_share = 0.25;
  report.val_share = 0.125;
  report.order = 1;
  REQUIRE(counted(report) ==
          "counting alone: 2.0000 nats per token, 0.5000 per character, with n-grams of up to 1 token in 25% of the "
          "training text, measured on 12.5% of the validation text\n");
}

TEST_CASE("an evaluation is said with what it covers, how good it could be, and whether it is the best so far") {
  const auto evaluated = [](const EvalReport& report, bool best, std::optional<double> best_possible = std::nullopt) {
    return said_by([&](Console& console) { console.on_eval(report, best); }, best_possible);
  };
  EvalReport report{.step = 20, .train_loss = 1.5};
  REQUIRE(evaluated(report, false) == "step 20: training loss 1.5000\n");
  report.val_loss = 1.75;
  REQUIRE(evaluated(report, false) == "step 20: training loss 1.5000, validation 1.7500\n");
  REQUIRE(evaluated(report, true, 0.5) ==
          "step 20: training loss 1.5000, validation 1.7500 (best possible 0.5000), the best so far\n");
  report.val_share = 0.25;
  report.val_accuracy = 0.625;
  REQUIRE(evaluated(report, true) ==
          "step 20: training loss 1.5000, validation 1.7500 on 25% of the text, accuracy 62.5%, the best so far\n");
  report.val_share = 1;
  report.val_accuracy = std::nullopt;
  report.sampled_val_loss = 1.625;
  report.sampled_val_share = 0.125;
  REQUIRE(evaluated(report, false) ==
          "step 20: training loss 1.5000, validation 1.7500 on the whole text, 1.6250 on 12.5% of the text\n");
  report.val_accuracy = 0.625;  // of the same data as the validation loss
  REQUIRE(evaluated(report, true) ==
          "step 20: training loss 1.5000, validation 1.7500 on the whole text, 1.6250 on 12.5% of the text, accuracy "
          "62.5% on the whole text, the best so far\n");
  report = {.step = 0, .train_loss = 1.5, .val_loss = 1.75};
  REQUIRE(evaluated(report, true) == "step 0: training loss 1.5000, validation 1.7500\n");  // nothing is trained
}

TEST_CASE("no step is called the best so far above the loss of random weights, and the end of such a run says so") {
  RunHistory history;
  const auto evaluated = [&](Console& console, std::int64_t step, double loss, double share = 1) {
    const EvalReport report{.step = step, .train_loss = 1.5, .val_loss = loss, .val_share = share};
    history.on_eval(report, true);
    console.on_eval(report, true);
  };
  REQUIRE(said_by([&](Console& console) {
            console.on_start(0, history);
            evaluated(console, 0, 0.75);
            evaluated(console, 10, 2);
            evaluated(console, 20, 0.5);
            evaluated(console, 30, 2, 0.25);  // of another text, which says nothing about step 0
            console.on_best(10, 2, 1);
            console.on_best(20, 0.5, 1);
          }) ==
          "step 0: training loss 1.5000, validation 0.7500\n"
          "step 10: training loss 1.5000, validation 2.0000\n"
          "step 20: training loss 1.5000, validation 0.5000, the best so far\n"
          "step 30: training loss 1.5000, validation 2.0000 on 25% of the text, the best so far\n"
          "best validation loss 2.0000 at step 10\n"
          "training did not lower the validation loss: it was 0.7500 at step 0, with random weights\n"
          "best validation loss 0.5000 at step 20\n");
}

TEST_CASE("of a run without steps nobody says that training did not help") {
  const std::string log = said_by([](Console& console) {
    console.on_new_length(0, 0);
    console.on_best(0, 1.5, 1);
  });
  REQUIRE_THAT(log, ContainsSubstring("best validation loss 1.5000 at step 0\n") && !ContainsSubstring("did not help"));
}

TEST_CASE("the end of a run is said with its best checkpoint, and how that compares with counting alone") {
  const auto ended = [](std::int64_t step, double loss, double share, std::optional<double> counting) {
    return said_by([&](Console& console) {
      if (counting) console.on_counting({.order = 6, .val_loss = *counting, .nats_per_character = *counting / 4});
      console.on_finish(100, 3725, 1.5);
      console.on_best(step, loss, share);
    });
  };
  const std::string done = "done: 100 steps in 1h 02m, 1.50 passes over the text\n";
  REQUIRE(ended(80, 1.5, 1, std::nullopt) == done + "best validation loss 1.5000 at step 80\n");
  REQUIRE(ended(80, 1.5, 0.5, std::nullopt) == done + "best validation loss 1.5000 on 50% of the text at step 80\n");
  REQUIRE(ended(0, 1.5, 1, std::nullopt) ==
          done +
              "best validation loss 1.5000 at step 0\ntraining did not help: the best checkpoint is the one with "
              "which the run began\n");
  const std::string counted =
      "counting alone: 2.0000 nats per token, 0.5000 per character, with n-grams of up to 6 tokens\n";
  REQUIRE(ended(80, 1.5, 1, 2) == counted + done +
                                      "best validation loss 1.5000, 0.3750 per character, at step 80\n"
                                      "the model is 0.5000 below counting alone (2.0000)\n");
  REQUIRE(ended(80, 2.25, 1, 2) == counted + done +
                                       "best validation loss 2.2500, 0.5625 per character, at step 80\n"
                                       "the model is 0.2500 above counting alone (2.0000): an n-gram count predicts "
                                       "this text at least as well\n");
  // The loss of a sample says nothing about the loss of the whole text.
  REQUIRE(ended(80, 1.5, 0.25, 2) ==
          counted + done +
              "best validation loss 1.5000 on 25% of the text, 0.3750 per character, at step 80\n"
              "not compared with counting alone, which has 2.0000 on the whole text; maki eval 'my run' measures the "
              "model on it\n");
  for (const double equal : {2.0, 2.00004, 1.99996})
    REQUIRE(ended(80, equal, 1, 2).ends_with("the model is as good as counting alone (2.0000)\n"));
}

TEST_CASE("interruptions, overfitting, samples, notes and a new length are said as they happen") {
  REQUIRE(said_by([](Console& console) {
            console.on_new_length(10, 42);
            console.on_sample(10, "two\nlines");
            console.on_note("a note");
          }) ==
          "step 10: 42 steps fit into the time, and the run ends there\n"
          "step 10: sample of generated text:\n  | two\n  | lines\na note\n");
  REQUIRE(said_by([](Console& console) { console.on_interrupt(7, false); }) == "interrupted: step 7 is saved\n");
  REQUIRE(said_by([](Console& console) { console.on_interrupt(7, true); }) ==
          "interrupted: step 7 is saved\nevaluating this step, so that the best checkpoint is known; press Ctrl-C "
          "again to skip this\n");
  const std::string what =
      "the validation loss has not improved since step 8, while the training loss has fallen: the model is overfitting";
  REQUIRE(said_by([](Console& console) { console.on_overfitting(8, false); }) ==
          what + "; the best checkpoint is kept\n");
  REQUIRE(said_by([](Console& console) { console.on_overfitting(8, true); }) ==
          "stopped early: " + what + "; to continue anyway: maki train --resume 'my run' --no-early-stop\n");
}
