// What counting n-grams alone reaches: measured before a run, recorded once, compared with at its end, and without
// influence on the run.
#include "data/io/utf8.h"
#include "data/ngram/ngram_model.h"
#include "tests/metrics_lines.h"
#include "tests/train/captured_run.h"
#include "train/loop/language_model_task.h"
#include "train/loop/tasks.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config few_steps() {
  Config config = smallest_config();
  config.val_fraction = 0.25;
  config.eval_interval = config.checkpoint_interval = 10;
  config.sample_interval = 0;
  config.eval_batches = 0;
  config.warmup_steps = 0;
  return config;
}

std::string letters() { return seeded_text(400, "abbcccdd"); }

// What counting knows at once, and a model after ten steps does not.
std::string cycle() {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "abcdefgh";
  return text;
}

// The loss of counting, without the session.
double counted_loss(const Dataset& data) {
  NgramModel model(data.tokenizer->vocab_size());
  model.count(data.train);
  return model.evaluate(data.val).loss;
}

std::vector<nlohmann::json> counting_lines(const CapturedRun& run) {
  return metrics_lines(run.directory.metrics_file(), "counting");
}

// Follows a session and stops it at once.
struct Nobody : SessionListener {};

}  // namespace

TEST_CASE("a session begins by counting, and ends with a comparison") {
  CapturedRun run(few_steps(), cycle());
  const double loss = counted_loss(run.data);
  const std::string said = run.go_on(0, 10);
  INFO(said);
  const std::string line =
      fmt::format("counting alone: {:.4f} nats per character, with n-grams of up to 6 tokens\n", loss);
  REQUIRE(said.starts_with(line));
  const auto lines = counting_lines(run);
  REQUIRE(lines.size() == 1);
  REQUIRE(lines[0].at("step") == 0);
  REQUIRE(lines[0].at("order") == 6);
  REQUIRE(lines[0].at("val_loss") == loss);
  REQUIRE(lines[0].at("nats_per_character") == loss);
  REQUIRE(lines[0].at("train_share") == 1);
  REQUIRE(lines[0].at("val_share") == 1);
  const double model = run.directory.best()->loss;
  REQUIRE(model > loss);
  REQUIRE(said.ends_with(
      fmt::format("the model is {:.4f} above counting alone ({:.4f}): an n-gram count predicts this text at "
                  "least as well\n",
                  model - loss, loss)));
}

TEST_CASE("a resumed session does not count again, and still compares with what was counted") {
  CapturedRun run(few_steps(), letters());
  run.go_on(0, 10);
  std::string metrics = read_bytes(run.directory.metrics_file());
  const std::string loss = counting_lines(run)[0].at("val_loss").dump();
  for (std::size_t at; (at = metrics.find(loss)) != std::string::npos;) metrics.replace(at, loss.size(), "7.5");
  write_bytes(run.directory.metrics_file(), metrics);
  const std::string said = run.go_on(10, 20);
  INFO(said);
  REQUIRE(said.starts_with("counting alone: 7.5000 nats per character"));
  REQUIRE(contains(
      said, fmt::format("the model is {:.4f} below counting alone (7.5000)\n", 7.5 - run.directory.best()->loss)));
  REQUIRE(counting_lines(run).size() == 1);
}

TEST_CASE("a run that began without counting counts when it is resumed, and a damaged line is replaced") {
  CapturedRun run(few_steps(), letters());
  run.config.counting = false;
  const std::string before = run.go_on(0, 10);
  REQUIRE_FALSE(contains(before, "counting"));
  REQUIRE(counting_lines(run).empty());
  run.config.counting = true;
  // Lines that lack one number each, and one in which a number is a text.
  std::string damaged = R"({"kind":"counting","step":10,"val_loss":"none"})"
                        "\n";
  const nlohmann::ordered_json whole = {{"kind", "counting"},       {"step", 10},         {"order", 6},
                                        {"val_loss", 1.5},          {"train_share", 1.0}, {"val_share", 1.0},
                                        {"nats_per_character", 1.5}};
  for (const char* key : {"order", "val_loss", "train_share", "val_share", "nats_per_character"}) {
    nlohmann::ordered_json part = whole;
    part.erase(key);
    damaged += part.dump() + "\n";
  }
  write_bytes(run.directory.metrics_file(), read_bytes(run.directory.metrics_file()) + damaged);
  REQUIRE(contains(run.go_on(10, 20), "counting alone: "));
  const auto lines = counting_lines(run);
  REQUIRE(lines.size() == 7);
  REQUIRE(lines[6].at("step") == 10);
  REQUIRE(lines[6].at("val_loss") == counted_loss(run.data));
}

TEST_CASE("counting changes no byte of a checkpoint") {
  CapturedRun with(few_steps(), letters()), without(few_steps(), letters());
  without.config.counting = false;
  with.go_on(0, 20);
  without.go_on(0, 20);
  for (const std::int64_t step : {0, 10, 20}) {
    REQUIRE(read_bytes(with.directory.checkpoint_file(step)) == read_bytes(without.directory.checkpoint_file(step)));
  }
}

TEST_CASE("without a validation text nothing is counted") {
  Config config = few_steps();
  config.val_fraction = 0;
  CapturedRun run(config, letters());
  REQUIRE_FALSE(contains(run.go_on(0, 10), "counting"));
  REQUIRE(counting_lines(run).empty());
}

TEST_CASE("the characters that are counted are those of the text: not normalized, and without what ends documents") {
  Corpus documents, accents;
  for (std::uint64_t i = 0; i < 40; ++i) {
    documents.documents.push_back(documents.text.size());
    documents.text += seeded_text(20, "ab", i);
    accents.text += "e\u0301a";
  }
  Config pairs = few_steps(), composed = few_steps();
  pairs.tokenizer = "bpe";
  pairs.vocab_size = 260;
  composed.normalize = "nfc";
  for (const auto& [config, text] : {std::pair{pairs, documents}, {composed, accents}}) {
    Corpus corpus = text;
    corpus.characters = count_code_points(corpus.text);
    const std::unique_ptr<Task> task = make_task(config, corpus, {});
    const Dataset& data = task->as_language_model()->dataset();
    const CountingReport counted = task->counting({}).value();
    const std::int64_t characters = count_code_points(split_text(corpus, config.val_fraction).val);
    const double per_character =
        counted.val_loss * static_cast<double>(data.val.size()) / static_cast<double>(characters);
    REQUIRE(counted.nats_per_character == Approx(per_character));
    const auto eval = make_eval_task(config, corpus, {data.tokenizer, data.tokenizer}, {.own = true});
    REQUIRE(eval->as_language_model()->text().characters == characters);
    if (!corpus.documents.empty())  // also where only the tokens are known
      REQUIRE(LanguageModelTask(config, data).counting({})->nats_per_character == Approx(per_character));
  }
}

TEST_CASE("a session that is stopped while it counts records nothing, and the next one counts") {
  CapturedRun run(few_steps(), letters());
  {
    TextTrainer trainer(run.config, run.data);
    REQUIRE_FALSE(trainer.task().counting([] { return true; }).has_value());
    Nobody nobody;
    REQUIRE(Session(run.config, trainer, run.directory, nobody, {.stop = [] { return true; }}).train() ==
            SessionEnd::interrupted);
  }
  REQUIRE(counting_lines(run).empty());
  REQUIRE(contains(run.go_on(0, 10), "counting alone: "));
  REQUIRE(counting_lines(run).size() == 1);
}

TEST_CASE("the loss per character is told where tokens are not characters") {
  Config config = few_steps();
  config.tokenizer = "byte";
  const std::string text =
      "いろはにほへとちりぬるをわかよたれそつねならむうゐのおくやまけふこえてあさきゆめみしゑひもせす";
  Corpus corpus;
  corpus.text = text + text + text;
  corpus.characters = 3 * 47;
  const Dataset data = make_dataset(corpus, 0.25, config.block_size, config.tokenizer);
  TextTrainer trainer(config, data);
  const std::optional<CountingReport> report = trainer.task().counting({});
  REQUIRE(report.has_value());
  REQUIRE(report->val_loss == counted_loss(data));
  REQUIRE(std::abs(report->nats_per_character - 3 * report->val_loss) < 1e-12);
}
