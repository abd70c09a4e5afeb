// maki eval RUN [CORPUS…] [options]
#include <CLI/CLI.hpp>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>

#include "autograd/core/parallel.h"
#include "data/dataset/dataset.h"
#include "data/text/unknown.h"
#include "train/cli/choose_checkpoint.h"
#include "train/cli/flags.h"
#include "train/cli/progress.h"
#include "train/cli/run_corpus.h"
#include "train/cli/verbs.h"
#include "train/config/error.h"
#include "train/config/number.h"
#include "train/loop/evaluate.h"
#include "train/loop/language_model_task.h"
#include "train/loop/loaded_model.h"
#include "train/run/run_directory.h"
#include "train/run/stored_config.h"

namespace maki {
namespace {

struct EvalOptions {
  std::string run, checkpoint, unknown = "error";
  std::vector<std::string> corpus;
  std::optional<std::string> invalid_utf8, encoding;
  std::vector<std::string> include, exclude;
  std::int64_t eval_batches = 0, threads = 0;
  bool json = false;
};

// The configuration that a run directory stores, which names the corpus of the run.
Config stored_config(const std::string& run) {
  Config config;
  const RunDirectory directory(run);
  check(file_exists(directory.config_file()),
        "eval: needs a CORPUS, because {} is not a run directory with a configuration that names one", run);
  apply_stored_config(config, directory);
  return config;
}

// The given text, else that of the run, read with the run's options.
Corpus corpus_of(const EvalOptions& o) {
  Config config = o.corpus.empty() ? stored_config(o.run) : Config();
  config.corpus = o.corpus.empty() ? resume_sources(o.run, {}, config.corpus) : o.corpus;
  if (o.invalid_utf8) set_field(config, find_field("invalid_utf8"), *o.invalid_utf8);
  if (o.encoding) config.encoding = *o.encoding;
  if (!o.include.empty()) config.include = o.include;
  if (!o.exclude.empty()) config.exclude = o.exclude;
  return read_corpus(config.corpus, corpus_options(config));
}

// What was measured, and on what.
struct Evaluation {
  bool own;  // the validation part of the run's own text, not the whole of another
  MeanLoss loss;
  std::int64_t batches, taken;
  double per_character, bits_per_byte;
  KnownText text;
  std::optional<double> entropy_per_character;  // of the text, if it is known
};

Evaluation evaluate(const EvalOptions& o, const LoadedModel& loaded, const Corpus& corpus) {
  // If the text is that of the run, only the part that it was not trained on is used; of any other text, all of it.
  const Config& config = loaded.state.config;
  const bool own = corpus.hash == loaded.state.corpus_hash && config.val_fraction > 0;
  KnownText known =
      known_text(*loaded.tokenizer, own ? split_text(corpus, config.val_fraction).val : file_texts(corpus),
                 parse_unknown_policy(o.unknown));
  Dataset dataset;
  dataset.tokenizer = loaded.tokenizer;
  dataset.val = encode_pieces(*loaded.tokenizer, known.pieces);
  const LanguageModelTask task(config, dataset);
  const std::int64_t batches = task.eval_batches(Part::val), taken = sampled_batch_count(o.eval_batches, batches);
  const MeanLoss loss = mean_loss(*loaded.model, task, Part::val, o.eval_batches, {}).value();
  check<DivergedError>(std::isfinite(loss.mean), "{}: the loss of this model is {}; the model has diverged",
                       loaded.path, loss.mean);
  std::size_t bytes = 0;
  for (const std::string_view piece : known.pieces) bytes += piece.size();
  const double nats = loss.mean * static_cast<double>(dataset.val.size());
  return {.own = own,
          .loss = loss,
          .batches = batches,
          .taken = taken,
          .per_character = nats / static_cast<double>(count_code_points(known.pieces)),
          .bits_per_byte = nats / static_cast<double>(bytes) / std::numbers::ln2,
          .text = std::move(known),
          .entropy_per_character = corpus.entropy_per_char};
}

void print_json(const EvalOptions& o, const LoadedModel& loaded, const Evaluation& e) {
  nlohmann::ordered_json facts{{"checkpoint", loaded.path},
                               {"step", loaded.state.step},
                               {"part", e.own ? "validation" : "whole"},
                               {"val_loss", e.loss.mean},
                               {"targets", e.loss.targets},
                               {"batches", e.taken},
                               {"batches_of_text", e.batches},
                               {"perplexity", std::exp(e.loss.mean)},
                               {"nats_per_character", e.per_character},
                               {"bits_per_byte", e.bits_per_byte},
                               {"unknown", o.unknown},
                               {"unknown_characters", e.text.unknown}};
  if (e.entropy_per_character) facts["best_possible_nats_per_character"] = *e.entropy_per_character;
  fmt::print("{}\n", facts.dump(2));
}

void print_text(const LoadedModel& loaded, const Evaluation& e) {
  fmt::print("checkpoint   {} (step {})\n", escape_unprintable(loaded.path), loaded.state.step);
  fmt::print("text         {}, {}{}\n", e.own ? "validation part of the run's text" : "whole text",
             pluralize(e.loss.targets, "target"),
             e.taken < e.batches ? fmt::format(" ({} of {} batches, spread evenly)", e.taken, e.batches) : "");
  if (e.text.unknown > 0) fmt::print("unknown      {}; the results below are for the rest\n", e.text.describe());
  fmt::print("loss         {:.4f} nats per token, {:.4f} per character\n", e.loss.mean, e.per_character);
  if (e.entropy_per_character)
    fmt::print("best         {:.4f} nats per character is the lowest possible loss\n", *e.entropy_per_character);
  fmt::print("perplexity   {:.3f}\nbits/byte    {:.4f}\n", std::exp(e.loss.mean), e.bits_per_byte);
}

int evaluate_run(const EvalOptions& o) {
  parse_unknown_policy(o.unknown);  // before anything is read
  if (o.threads != 0) set_threads(o.threads);
  const LoadedModel loaded(choose_checkpoint(o.run, o.checkpoint));
  Corpus corpus = corpus_of(o);
  join_files_if_known_as(corpus, loaded.state.corpus_hash);
  const Evaluation evaluation = evaluate(o, loaded, corpus);
  if (o.json) {
    print_json(o, loaded, evaluation);
  } else {
    print_text(loaded, evaluation);
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("eval", "Measure the loss of a model on a text");
  const auto o = std::make_shared<EvalOptions>();
  command->add_option("RUN", o->run, "run directory or .maki file")->required();
  command->add_option("CORPUS", o->corpus, "files, directories, - or @stories [the corpus of the run]");
  command->add_option("--checkpoint", o->checkpoint, "checkpoint to use: last, best or a step [best, else last]")
      ->type_name("WHICH")
      ->take_last();
  add_number(*command, "--eval-batches", o->eval_batches, 0, kMaxCount,
             "batches to evaluate, spread evenly over the text; 0: all");
  command->add_option("--unknown", o->unknown, "what to do with characters that are not in the vocabulary [error]")
      ->type_name("error|skip|replace")
      ->take_last();
  const auto reading = [&](const char* name, auto& value) {
    return command->add_option(find_field(name).option(), value, find_field(name).help);
  };
  reading("invalid_utf8", o->invalid_utf8)->type_name("error|replace")->take_last();
  reading("encoding", o->encoding)->type_name("NAME")->take_last();
  for (CLI::Option* const globs : {reading("include", o->include), reading("exclude", o->exclude)})
    globs->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->type_name("GLOB");
  add_number(*command, "--threads", o->threads, 0, kMaxThreads,
             "number of threads; 0: OMP_NUM_THREADS, else one per core");
  command->add_flag("--json", o->json, "print the results as JSON");
  command->callback([o, &chosen] { chosen = [o] { return evaluate_run(*o); }; });
}

}  // namespace maki
