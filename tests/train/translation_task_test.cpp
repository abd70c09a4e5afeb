// The task of writing the target of each source: batches, what a checkpoint records, and what is measured; and the
// translation of lines, which depends neither on their order nor on their batch.
#include "train/loop/translation_task.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/dataset/window_batches.h"
#include "data/io/utf8.h"
#include "tests/files.h"
#include "tests/train/every_small_model.h"
#include "tests/train/small_checkpoint.h"
#include "train/app/interrupt.h"
#include "train/app/report.h"
#include "train/app/verbs/generate.h"
#include "train/loop/bleu.h"
#include "train/loop/evaluate.h"
#include "train/loop/tasks.h"
#include "train/loop/trainer.h"
#include "train/loop/translate.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Eight pairs of five to seven words; the last two are for validation if val_fraction is 0.25.
const std::string kText =
    "ichi ni san\tone two three four five\nni san\ttwo three four five six\nsan\tthree four five six seven\n"
    "go roku\tfive six seven one two\nroku\tsix seven one two three\nshichi ichi ni san\tseven one two three four "
    "five\n"
    "ni ichi\ttwo one two three four\nroku go\tsix five one two three four five\n";

Config translation_config(const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Config c;
  leave_open(c);
  const auto set = [&](const std::string& name, const std::string& text) { set_field(c, find_field(name), text); };
  set("model", "seq2seq");
  set("tokenizer", "word");
  set("n_layer", "1");
  set("n_head", "2");
  set("n_embd", "32");
  set("block_size", "32");
  set("batch_size", "3");
  set("val_fraction", "0.25");
  set("learning_rate", "0.01");
  set("warmup_steps", "10");
  set("lr_decay_steps", "1000");
  for (const auto& [name, text] : more) set(name, text);
  fill_open_fields(c);
  validate(c);
  return c;
}

Corpus translation_corpus(const std::string& text) {
  Corpus corpus;
  corpus.sources = {"pairs.tsv"};
  corpus.text = text;
  corpus.characters = count_code_points(text);
  corpus.hash = "0123456789abcdef0123456789abcdef";
  return corpus;
}

std::int64_t counted(const Tensor& targets) {
  return targets.numel() - std::ranges::count(targets.values<std::int32_t>(), kIgnoredTarget);
}

// A run that has learned its few pairs by heart.
struct Learned {
  explicit Learned(const Config& c, int steps = 150)
      : config(c), task(make_task(config, translation_corpus(kText))), trainer(config, *task) {
    for (int i = 0; i < steps; ++i) trainer.step();
    const CheckpointState state = [&] {
      CheckpointState s = task->data_state();
      s.config = config;
      return s;
    }();
    tokenizers = load_tokenizers(state);
  }
  const Generator& generator() { return *trainer.model().as_generator(); }

  Config config;
  std::unique_ptr<Task> task;
  Trainer trainer;
  PairTokenizers tokenizers;
};

}  // namespace

TEST_CASE("the targets of a step are those of its batches, and evaluation covers every target once") {
  const Config config = translation_config({{"grad_accum", "2"}});
  const std::unique_ptr<Task> task = make_task(config, translation_corpus(kText));
  REQUIRE(task->describe_data() == fmt::format("6 pairs for training, 2 for validation; vocabulary of {} for sources, "
                                               "{} for targets",
                                               task->vocab_sizes().source, task->vocab_sizes().target));
  REQUIRE(task->describe_step() == "6 pairs");
  Batch batch;
  for (std::int64_t step = 0; step < 5; ++step) {
    std::int64_t targets = 0;
    for (std::int64_t micro = 0; micro < 2; ++micro) {
      task->fill(step, micro, batch);
      REQUIRE(batch.target_count == counted(batch.targets));
      REQUIRE(batch.source.shape()[0] == 3);
      targets += batch.target_count;
    }
    REQUIRE(task->targets(step) == targets);
    REQUIRE(task->tokens_in_step(step) == targets);
  }
  // Six pairs in batches of three: two batches are an epoch, and a step takes both.
  REQUIRE(task->epochs(3) == 3);
  const PairTokenizers tokenizers{load_tokenizer(task->data_state().source_tokenizer),
                                  load_tokenizer(task->data_state().tokenizer)};
  const PairDataset data =
      make_pair_dataset(translation_corpus(kText),
                        {.val_fraction = 0.25, .max_tokens = 31, .tokenizer = "word", .tokenizers = tokenizers});
  for (const Part part : {Part::train, Part::val}) {
    const TokenPairs& pairs = part == Part::train ? data.train : data.val;
    std::int64_t targets = 0, expected = 0;
    for (std::int64_t i = 0; i < task->eval_batches(part); ++i) {
      task->fill_eval(part, i, batch);
      targets += batch.target_count;
    }
    for (std::int64_t i = 0; i < pairs.size(); ++i) expected += pairs.target_length(i) + 1;
    REQUIRE(targets == expected);
  }
  const CheckpointState state = task->data_state();
  REQUIRE(state.train_tokens == data.train.token_count());
  REQUIRE(state.val_tokens == data.val.token_count());
  REQUIRE(state.characters == count_code_points(kText));
  REQUIRE(state.corpus_hash == "0123456789abcdef0123456789abcdef");
}

TEST_CASE("random pairs are as long as the context allows, with the token that ends the target") {
  for (const std::int64_t context : {2, 3, 9}) {
    const Config config = translation_config({{"block_size", std::to_string(context)}, {"grad_accum", "2"}});
    const std::unique_ptr<Task> task = make_random_task(config, random_vocab_sizes(config, 11), 4);
    REQUIRE(task->tokens_in_step(0) == 2 * config.batch_size * context);
    Batch batch;
    task->fill(1, 1, batch);
    REQUIRE(batch.source.shape() == Shape{config.batch_size, context});
    REQUIRE(batch.targets.shape() == Shape{config.batch_size, context});
    REQUIRE(counted(batch.targets) == config.batch_size * context);
  }
}

TEST_CASE("random data of every task have the vocabularies that they are made for") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    const VocabSizes sizes = random_vocab_sizes(small.config, 11);
    const VocabSizes made = make_random_task(small.config, sizes, 4)->vocab_sizes();
    REQUIRE(made.target == 11);
    REQUIRE(made.source == sizes.source);
    REQUIRE(made.classes == sizes.classes);
  }
}

TEST_CASE("a shared vocabulary is one tokenizer and one table, otherwise each side has its own") {
  const auto make = [](const char* shared) {
    return make_task(translation_config({{"share_vocabulary", shared}}), translation_corpus(kText));
  };
  const std::unique_ptr<Task> separate = make("false"), shared = make("true");
  CheckpointState state = separate->data_state();
  REQUIRE(load_tokenizer(state.tokenizer)->vocab_size() + 1 == separate->vocab_sizes().target);
  REQUIRE(load_tokenizer(state.source_tokenizer)->vocab_size() + 1 == separate->vocab_sizes().source);
  REQUIRE(separate->vocab_sizes().source != separate->vocab_sizes().target);
  state = shared->data_state();
  REQUIRE(state.source_tokenizer.empty());
  REQUIRE(shared->vocab_sizes().source == 0);
  REQUIRE(load_tokenizer(state.tokenizer)->vocab_size() + 1 == shared->vocab_sizes().target);
  const auto has = [](const Task& task, const std::string& name) {
    ParameterStore store;
    const std::unique_ptr<Model> model = task.make_model(Scope(store));
    return std::ranges::any_of(store.parameters(), [&](const auto& p) { return p->name() == name; });
  };
  REQUIRE(has(*separate, "encoder.wte.weight"));
  REQUIRE(has(*separate, "decoder.wte.weight"));
  REQUIRE(has(*shared, "wte.weight"));
  REQUIRE_FALSE(has(*shared, "encoder.wte.weight"));
}

TEST_CASE("pairs that were learned by heart are translated exactly, and measured so") {
  for (const char* const shared : {"false", "true"}) {
    const Config config = translation_config({{"share_vocabulary", shared}});
    Learned run(config);
    const auto eval = [&](const std::string& text) {
      const std::unique_ptr<Task> task = make_eval_task(config, translation_corpus(text), run.tokenizers, {});
      const MeanLoss loss = mean_loss(run.trainer.model(), *task, Part::val, 0, {}).value();
      const std::int64_t batches = task->eval_batches(Part::val);
      return to_json(task->measure(run.trainer.model(), {loss, batches, batches}, {}, {}));
    };
    const std::string six = kText.substr(0, kText.find("ni ichi"));
    // A measurement that is stopped reports no translations, rather than those that it has.
    const std::unique_ptr<Task> validation = make_eval_task(config, translation_corpus(six), run.tokenizers, {});
    const auto stopped =
        to_json(validation->measure(run.trainer.model(), {{.mean = 2, .targets = 37}, 2, 2}, {}, [] { return true; }));
    REQUIRE(stopped.at("val_loss") == 2);
    REQUIRE_FALSE(stopped.contains("exact_match"));
    const auto search = [&](const MeasureOptions& options) {
      const auto list = validation->measure(run.trainer.model(), {{.mean = 2, .targets = 37}, 2, 2}, options, {});
      return std::ranges::find(list, "search", &ReportLine::label)->text;
    };
    REQUIRE(search({.beam_size = 1}) == "greedy");
    REQUIRE(search({.beam_size = 2, .length_penalty = 0.5}) == "beam of 2, length penalty 0.5");
    const auto learned = eval(six);
    INFO(learned.dump());
    REQUIRE(learned.at("pairs") == 6);
    REQUIRE(learned.at("exact_match") == 1);
    REQUIRE(learned.at("bleu").get<double>() == Approx(100));
    REQUIRE(learned.at("val_loss").get<double>() < 0.1);
    REQUIRE(learned.at("targets") == learned.at("pairs").get<int>() + 31);
    // Two of the six targets are replaced by others, one of which shares some words with the translation.
    std::string other = six;
    other.replace(other.find("one two three four five"), 23, "one two three four six");
    other.replace(other.find("six seven one two three"), 23, "six");
    const auto measured = eval(other);
    REQUIRE(measured.at("exact_match").get<double>() == Approx(4.0 / 6));
    const Bleu bleu =
        corpus_bleu({"one two three four five", "two three four five six", "three four five six seven",
                     "five six seven one two", "six seven one two three", "seven one two three four five"},
                    {"one two three four six", "two three four five six", "three four five six seven",
                     "five six seven one two", "six", "seven one two three four five"});
    REQUIRE(measured.at("bleu").get<double>() == Approx(bleu.score).epsilon(1e-12));
    REQUIRE(measured.at("bleu_brevity_penalty").get<double>() == Approx(bleu.brevity_penalty).epsilon(1e-12));
  }
}

TEST_CASE("a translation depends neither on the other lines nor on the size of a batch") {
  Learned run(translation_config(), 20);  // not learned well, so translations differ in length
  std::vector<std::vector<std::int32_t>> sources;
  for (const std::string line :
       {"san", "ichi ni san", "go", "", "ni", "shichi roku go san ni ichi", "san", "roku roku"})
    sources.push_back(run.tokenizers.source->encode_line(line));
  const PairEnds ends = ends_of(run.tokenizers);
  const auto written = [&](const std::vector<std::vector<std::int32_t>>& lines, const TranslateOptions& options) {
    std::vector<std::pair<std::vector<std::int32_t>, double>> list;
    for (const Hypothesis& h : translate(run.generator(), lines, ends, options)) list.emplace_back(h.ids, h.score);
    return list;
  };
  for (const std::int64_t beam : {1, 3}) {
    const auto all = written(sources, {.beam_size = beam, .max_tokens = 32});
    REQUIRE(all.size() == sources.size());
    REQUIRE(all[0] == all[6]);
    for (const std::int64_t size : {1, 3})
      REQUIRE(written(sources, {.beam_size = beam, .max_tokens = 32, .batch_size = size}) == all);
    for (std::size_t i = 0; i < sources.size(); ++i)
      REQUIRE(written({sources[i]}, {.beam_size = beam, .max_tokens = 32}).at(0) == all[i]);
  }
  for (const Hypothesis& h : translate(run.generator(), sources, ends, {.max_tokens = 2})) REQUIRE(h.ids.size() <= 2);
  int calls = 0;
  const auto stopped =
      translate(run.generator(), sources, ends, {.max_tokens = 4, .batch_size = 3}, [&] { return ++calls == 2; });
  REQUIRE(calls == 2);
  REQUIRE(stopped.size() == sources.size());
  REQUIRE(std::ranges::count_if(stopped, [](const Hypothesis& h) { return h.log_probability != 0; }) == 3);
  REQUIRE(translate(run.generator(), {}, ends, {}).empty());
}

TEST_CASE("a translation is one line of UTF-8, whatever the model writes") {
  const auto bytes = make_tokenizer("byte", "");
  const auto line = [&](const std::string& text) { return translated_line(*bytes, {.ids = bytes->encode(text)}); };
  REQUIRE(line("plain 猫") == "plain 猫");
  REQUIRE(line("a\nb\r\nc\n") == "a b  c ");
  REQUIRE(line("a\xE7\x8C b\xFF") == "a\uFFFD b\uFFFD");
  const auto words = make_tokenizer("word", " the cat the cat\n");
  REQUIRE(translated_line(*words, {.ids = words->encode(" the\n cat")}) == "the  cat");
  // A model of bytes that has learned nothing: its sample and its measurements are valid as well.
  const Config config = translation_config({{"tokenizer", "byte"}, {"block_size", "64"}});
  const std::unique_ptr<Task> task = make_task(config, translation_corpus(kText));
  Trainer trainer(config, *task);
  for (std::int64_t step = 0; step < 8; ++step) {
    const std::optional<std::string> sample = task->sample(trainer.model(), 0, step, {});
    REQUIRE_FALSE(invalid_utf8(sample.value()));
    REQUIRE(std::ranges::count(*sample, '\n') == 2);
  }
}

TEST_CASE("a sample shows a source of the validation data, its translation and the target") {
  Learned run(translation_config(), 1);
  const auto sample = [&](std::int64_t step) { return run.task->sample(run.trainer.model(), 0, step, {}).value(); };
  REQUIRE(sample(0).starts_with("ni ichi\n→ "));
  REQUIRE(sample(0).ends_with("\n(target: two one two three four)"));
  REQUIRE(sample(1).starts_with("roku go\n→ "));
  REQUIRE(sample(2) == sample(0));
  REQUIRE_FALSE(run.task->sample(run.trainer.model(), 0, 0, [] { return true; }));
  Learned all(translation_config({{"val_fraction", "0"}}), 1);
  REQUIRE(all.task->sample(all.trainer.model(), 0, 0, {}).value().starts_with("ichi ni san\n→ "));
}

TEST_CASE("an interrupt ends the translation of lines with the exit code of its signal, and without another answer") {
  const TemporaryFolder folder;
  Learned learned(translation_config(), /*steps=*/0);
  CheckpointState state = learned.task->data_state();
  state.config = learned.config;
  Unsynced fs;
  write_checkpoint(fs, folder / "run.maki", state, learned.trainer.store(), learned.trainer.optimizer());
  const LoadedModel loaded(folder / "run.maki");
  constexpr std::array kSignals = {SIGHUP, SIGINT, SIGTERM};
  std::array<struct sigaction, 3> before{};
  for (std::size_t i = 0; i < 3; ++i) sigaction(kSignals[i], nullptr, &before[i]);
  install_interrupt_handlers();
  for (const int signal : {SIGINT, SIGTERM}) {
    const DeferInterrupts deferred;
    std::raise(signal);
    std::istringstream lines("ichi ni\nsan\n");
    CHECK(translate_lines(loaded, lines, {}) == 128 + signal);
    forget_interrupt();
    CHECK(translate_lines(loaded, lines, {}) == 0);  // all lines have been read
  }
  for (std::size_t i = 0; i < 3; ++i) sigaction(kSignals[i], &before[i], nullptr);
}
