// Plans are carried out: texts of many kinds and lengths, each on machines of five speeds. Takes half an hour, so it is
// hidden: maki_tests_train "[.planned-texts]" runs it and prints the table of docs/learning.md (-c NAME: of one text).
// Nothing depends on the speed of the machine of the test: the machines are simulated, and clocks count the steps.
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <random>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/train/captured_run.h"
#include "train/loop/plan/plan.h"
#include "train/loop/tasks.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A machine with a constant speed; one that is `slower` times slower than a fast machine with two cores, which takes 32
// ms for a step of 1,536 words by 2 layers of width 64. An ordinary machine is two to three times slower than that.
struct SimulatedMachine : StepTimer {
  explicit SimulatedMachine(double times) : slower(times) {}
  StepTime time_step(const Config& c, const VocabSizes& vocab) override {
    constexpr double kFlopPerSecond = 1.4e11, kSecondsPerLayer = 5e-4;
    ParameterStore planned(c.dtype);
    const std::unique_ptr<Model> model = make_model(c, vocab, Scope(planned));
    const double flop =
        flop_per_token(*model, planned, c.block_size) * static_cast<double>(c.block_size * c.batch_size * c.grad_accum);
    const double seconds = slower * (flop / kFlopPerSecond + kSecondsPerLayer * static_cast<double>(c.n_layer));
    return {.seconds = seconds, .idle_seconds = seconds};
  }
  double slower;
};

std::string file_text(const std::string& path) {
  return std::filesystem::exists(path) ? read_bytes(path) : std::string();
}

std::string documents(const std::string& name) { return file_text(std::string(MAKI_SOURCE_DIR) + "/docs/" + name); }

// The files below these folders, one after the other in the order of their paths.
std::string files_below(const std::vector<std::string>& folders, const std::string& extension) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(MAKI_SOURCE_DIR) + "/" + folder)) {
      if (entry.path().extension() == extension) paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  std::string text;
  for (const std::string& path : paths) text += read_bytes(path);
  return text;
}

// Lines made of words that are drawn with a fixed seed.
class Lines {
 public:
  const char* one_of(const std::vector<const char*>& words) { return words[random_() % words.size()]; }
  unsigned number(unsigned from, unsigned to) { return from + static_cast<unsigned>(random_() % (to - from + 1)); }

 private:
  std::mt19937 random_{1};
};

std::string ten_lines() {
  std::string text;
  for (int i = 1; i <= 10; ++i) text += fmt::format("This is line number {} of a very short text.\n", i);
  return text;
}

std::string reviews() {
  Lines lines;
  std::string text;
  for (int i = 0; i < 400; ++i) {
    const bool good = lines.number(0, 1) == 1;
    text += fmt::format("{} {}{}\t{}\n",
                        lines.one_of({"The coffee", "This phone", "The film", "My new chair", "The hotel"}),
                        good ? lines.one_of({"was wonderful", "is really great", "works perfectly", "made me happy"})
                             : lines.one_of({"was terrible", "broke after a day", "is a waste of money"}),
                        lines.one_of({".", "!", " and I would say so again."}), good ? "pos" : "neg");
  }
  return text;
}

std::string chat() {
  Lines lines;
  std::string text;
  for (int i = 0; i < 800; ++i) {
    text += fmt::format("{{\"user\": \"{}\", \"agent\": \"{}{}.\"}}\n",
                        lines.one_of({"How do I reset my password?", "Where is my parcel?", "Can I return the shoes?",
                                      "What are your opening hours?", "Is the blue one in stock?"}),
                        lines.one_of({"Open the settings and choose ", "It left our warehouse on day ", "Yes, within ",
                                      "We are open until "}),
                        lines.number(1, 30));
  }
  return text;
}

std::string table() {
  Lines lines;
  std::string text = "day,product,pieces,price,total\n";
  for (int i = 0; i < 4000; ++i) {
    const unsigned pieces = lines.number(1, 40), price = lines.number(2, 99);
    text += fmt::format("2026-{:02}-{:02},{},{},{},{}\n", lines.number(1, 12), lines.number(1, 28),
                        lines.one_of({"apple", "pear", "plum", "cherry", "quince"}), pieces, price, pieces * price);
  }
  return text;
}

struct Text {
  const char* name;
  std::string text;  // empty: not on this machine
  std::string builtin = {};
};

std::vector<Text> texts() {
  const std::string shared = std::string(MAKI_SOURCE_DIR) + "/../shared/corpora/", tour = documents("tour.md");
  return {{"300 characters", ten_lines().substr(0, 300)},
          {"ten lines", ten_lines()},
          {"prose, 3,000", tour.substr(0, 3000)},
          {"reviews (TSV), 14 kB", reviews()},
          {"GNU General Public License 3, 35 kB", file_text("/usr/share/common-licenses/GPL-3")},
          {"chat (JSON lines), 57 kB", chat()},
          {"a design document, 124 kB", files_below({"docs/decisions"}, ".md")},
          {"tour.ja.md", documents("tour.ja.md")},
          {"sales (CSV), 100 kB", table()},
          {"C++, 420 kB", files_below({"autograd", "nn", "optim"}, ".cpp")},
          {"neko.ja.txt", file_text(shared + "neko.ja.txt")},
          {"tinyshakespeare", file_text(shared + "tinyshakespeare.txt")},
          {"@stories:100000", "", "@stories:100000"},
          {"@stories", "", "@stories"},
          {"@stories-ja", "", "@stories-ja"},
          {"@stories:50000000", "", "@stories:50000000"}};
}

Corpus corpus_of(const Text& text) {
  if (!text.builtin.empty()) return load_corpus({text.builtin});
  Corpus corpus;
  corpus.text = text.text;
  corpus.characters = count_code_points(text.text);
  corpus.hash = "0123456789abcdef0123456789abcdef";
  return corpus;
}

// What a session reported.
struct Results : SessionListener {
  void on_counting(const CountingReport& report) override { counting = report.val_loss; }
  void on_eval(const EvalReport& report, bool) override {
    if (report.step == 0 && report.val_loss) first = report.point().loss;
    last = report.val_loss.value_or(report.train_loss);
  }
  void on_best(std::int64_t, double loss, double) override { best = loss; }
  double counting = INFINITY, first = INFINITY, last = INFINITY, best = INFINITY;
};

struct Carried {
  Plan plan;
  Results results;
  double seconds = 0;  // of the simulated clock
};

// Plans for a minute and trains, unless `before`, on a faster machine, was the same run.
Carried carry_out(const Corpus& corpus, double slower, const std::optional<Carried>& before) {
  constexpr double kSeconds = 60;
  Carried done;
  PlanRequest request{.text = text_facts(corpus), .seconds = kSeconds, .config = {}};
  apply_preset(request.config, "quickstart");
  fill_open_fields(request.config);
  SimulatedMachine machine(slower);
  done.plan = make_plan(request, machine);
  Config config = done.plan.config;
  done.seconds = done.plan.seconds;
  if (before && !done.plan.enough.empty() && to_toml(before->plan.config) == to_toml(config)) {
    done.results = before->results;
    return done;
  }
  config.sample_interval = 0;
  fill_dependent_defaults(config);
  const std::unique_ptr<Task> task = make_task(config, corpus, {});
  Trainer trainer(config, *task);
  const TemporaryFolder folder;
  Unsynced fs;
  const RunDirectory run(folder / "run", fs);
  run.create();
  const auto elapsed = [&] { return done.plan.step.seconds * static_cast<double>(trainer.steps()); };
  TimeLimit limit{.seconds = std::max(1.0, kSeconds - (done.plan.seconds -
                                                       done.plan.step.seconds * static_cast<double>(config.max_steps))),
                  .elapsed = elapsed,
                  .most_steps = done.plan.most_steps,
                  .record = [](const Config&) {}};
  Session(config, trainer, run, done.results, {.limit = limit}).train();
  done.seconds = elapsed() + kSeconds - limit.seconds;
  return done;
}

std::string row(const Text& text, double slower, const Carried& done) {
  const Config& c = done.plan.config;
  return fmt::format("| {} | {} | {} x {}, {}{} | {} | {:.0f} s{} | {:.4f} | {:.4f} | {:.4f} |", text.name, slower,
                     c.n_layer, c.n_embd, c.tokenizer, c.ngram_prior > 0 ? " on a count" : "", c.max_steps,
                     done.seconds, done.plan.enough.empty() ? "" : " (enough)", done.results.counting,
                     done.results.first, std::isfinite(done.results.best) ? done.results.best : done.results.last);
}

}  // namespace

TEST_CASE("no plan is worse than counting or than its first step, and each uses its time", "[.planned-texts]") {
  for (const Text& text : texts()) {
    if (text.text.empty() && text.builtin.empty()) continue;
    DYNAMIC_SECTION(text.name) {
      const Corpus corpus = corpus_of(text);
      std::optional<Carried> before;
      for (const double slower : {1., 2., 4., 8., 16.}) {
        const Carried done = carry_out(corpus, slower, before);
        before = done;
        fmt::print("{}\n", row(text, slower, done));
        std::fflush(stdout);
        CHECK((done.seconds > 0.8 * 60 || !done.plan.enough.empty()));
        if (done.plan.by_heart) {
          CHECK(done.results.last < 0.3);
        } else {
          CHECK(done.results.best <= done.results.counting + 1e-4);
        }
      }
    }
  }
}
