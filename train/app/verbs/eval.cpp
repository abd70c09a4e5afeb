// maki eval RUN [CORPUS…] [options]
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/tokenizer/unknown_characters.h"
#include "train/app/adapt_options.h"
#include "train/app/choose_checkpoint.h"
#include "train/app/compressor.h"
#include "train/app/eval_files.h"
#include "train/app/facts_json.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"
#include "train/loop/adaptive_loss.h"
#include "train/loop/evaluate.h"
#include "train/loop/language_model_task.h"
#include "train/loop/loss_by_position.h"
#include "train/loop/tasks.h"
#include "train/loop/without_dropout.h"
#include "train/run/config/field_effects.h"
#include "train/run/loaded_model.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

struct EvalOptions {
  std::string run, checkpoint, unknown = "error";
  std::vector<std::string> corpus;
  std::string invalid_utf8, encoding, json_field, document_separator, documents;
  std::vector<std::string> include, exclude, reading;  // reading: the names of those of these fields that are given
  std::int64_t eval_batches = 0, threads = 0;
  MeasureOptions measure;
  std::string translation_only;  // an option given that applies only to models that translate
  AdaptFlags adapting;
  bool adapt_counts = true;
  std::optional<std::int64_t> stride;
  bool by_position = false, per_file = false;
  std::string against;  // a compressor to compare with, or empty
  bool special = false, json = false;
};

// The options of eval that set a field to a text.
template <class Options>
auto text_options(Options& o) {
  return std::map<std::string, decltype(&o.encoding)>{{"invalid_utf8", &o.invalid_utf8},
                                                      {"encoding", &o.encoding},
                                                      {"documents", &o.documents},
                                                      {"document_separator", &o.document_separator},
                                                      {"json_field", &o.json_field}};
}

// The configuration that a run directory stores, which names the corpus of the run.
Config stored_config(const std::string& run) {
  Config config;
  const RunDirectory directory(run);
  check(file_exists(directory.config_file()),
        "eval: needs a CORPUS, because {} is not a run directory with a configuration that names one", run);
  directory.apply_config(config);
  return config;
}

// The fields that options set.
void apply_reading_options(const EvalOptions& o, Config& config) {
  for (const std::string& name : o.reading) {
    const Field& field = find_field(name);
    if (field.is_list()) {
      set_list(config, field, name == "include" ? o.include : o.exclude);
    } else {
      set_field(config, field, *text_options(o).at(name));
    }
  }
}

// The given text, or else that of the run; both are read as the run reads its text, unless options say otherwise.
Corpus corpus_of(const EvalOptions& o, const CheckpointState& state) {
  const bool own = o.corpus.empty();
  Config config = own ? stored_config(o.run) : Config();
  config.model = state.config.model;
  config.task = state.config.task;
  config.corpus = own ? resume_sources(o.run, {}, config.corpus) : o.corpus;
  apply_reading_options(o, config);
  require_effect(config, o.reading);
  if (own) return reread_corpus(config, state.corpus_hash, "to measure all of it, name it as CORPUS");
  adopt_reading_fields(o.run, o.reading, config);
  Corpus corpus = read_corpus(config.corpus, corpus_options(config));
  join_files_if_known_as(corpus, state.corpus_hash);
  return corpus;
}

void print(const EvalOptions& o, const LoadedModel& loaded, const std::vector<ReportLine>& measured) {
  if (!o.json) {
    fmt::print("checkpoint   {} (step {})\n", escape_unprintable(loaded.path), loaded.state.step);
    for (const ReportLine& m : measured) {
      if (!m.text.empty()) fmt::print("{:<12} {}\n", m.label, m.text);
    }
    return;
  }
  nlohmann::ordered_json facts{{"checkpoint", loaded.path}, {"step", loaded.state.step}};
  facts.update(to_json(measured));
  // Bytes of paths that are not UTF-8 are replaced.
  fmt::print("{}\n", facts.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void check_options(const EvalOptions& o) {
  parse_unknown_policy(o.unknown);
  o.adapting.check_given("eval");
  check(!o.adapting.adapt || o.eval_batches == 0, "eval: --adapt reads the whole text in order; omit --eval-batches");
  check(!o.by_position || !o.stride, "eval: --by-position is for windows without overlap; omit --stride");
  check(!o.per_file || o.eval_batches == 0, "eval: --per-file reads whole files; omit --eval-batches");
  if (!o.against.empty()) require_compressor(o.against);
}

// Options that do not apply to every kind of model.
void check_model_options(const EvalOptions& o, const LoadedModel& loaded) {
  const Config& config = loaded.state.config;
  const std::string task = task_rule(config).name;
  check(o.translation_only.empty() || task_rule(config).reads_source,
        "eval: {} applies only to a model that translates; the model of {} is {}; omit it", o.translation_only, o.run,
        config.model);
  check((!o.adapting.adapt && o.against.empty()) || task == "next_token",
        "eval: --adapt and --against apply only to a model that predicts the next token of a text; the task of {} is "
        "{}; omit them",
        o.run, task);
  check(!o.stride || task == "next_token",
        "eval: --stride applies only to a model that predicts the next token of a text; the task of {} is {}; omit it",
        o.run, task);
  check(!o.stride || loaded.model->make_carried(1) == nullptr,
        "eval: --stride is for models that see nothing before their window; {} of {} remembers what it has read; omit "
        "it",
        config.model, o.run);
  check(!o.stride || *o.stride <= config.block_size,
        "stride: must be between 1 and {}, the context of the model; got {}", config.block_size, o.stride.value_or(0));
  check(!o.per_file || task == "next_token" || task == "masked",
        "eval: --per-file applies only to a model of plain text; the task of {} is {}; omit it", o.run, task);
  check(!o.by_position || task != "classify",
        "eval: --by-position applies only to a model that predicts tokens; the task of {} is {}; omit it", o.run, task);
}

// What --adapt and --against report beside the ordinary loss.
void measure_readers(const EvalOptions& o, const LoadedModel& loaded, const Corpus& corpus, const Task& task,
                     std::vector<ReportLine>& measured) {
  if (!o.adapting.adapt && o.against.empty()) return;
  const auto& text_task = dynamic_cast<const LanguageModelTask&>(task);
  const EvalText& text = text_task.text();
  const Dataset& data = text_task.dataset();
  const double characters = static_cast<double>(text.characters);
  if (o.adapting.adapt) {
    const AdaptiveOptions options{.network = o.adapting.options, .counts = o.adapt_counts};
    const AdaptiveLoss loss = adaptive_loss(loaded, data, options).value();
    std::ranges::move(measure_adapting(loss, options, text.own, static_cast<double>(data.val.size()) / characters),
                      std::back_inserter(measured));
  }
  if (o.against.empty()) return;
  check(corpus.prepared == nullptr,
        "eval: --against compresses text, and {} contains tokens; name the text, or omit it", corpus.files.at(0));
  check(text.unknown == 0, "eval: --against needs a text whose characters are all in the vocabulary; {}",
        text.unknown_note);
  const SplitText split = text.own ? split_text(corpus, loaded.state.config.val_fraction)
                                   : SplitText{.train = {}, .val = file_texts(corpus)};
  measured.push_back(measure_compressor(o.against, split.train, split.val, text.characters));
}

// The loss in parts: of each file, of each position.
void measure_parts(const EvalOptions& o, const LoadedModel& loaded, const Corpus& corpus, const Task& task,
                   const EvalRequest& request, std::vector<ReportLine>& measured) {
  if (o.per_file) std::ranges::move(measure_files(loaded, corpus, request), std::back_inserter(measured));
  if (!o.by_position) return;
  const ModelWithoutDropout copy(loaded);
  const std::vector<PositionLoss> losses = loss_by_position(*copy.model, task, Part::val, o.eval_batches).value();
  std::ranges::move(measure_by_position(losses), std::back_inserter(measured));
}

int evaluate_run(const EvalOptions& o) {
  check_options(o);  // before anything is read
  if (o.threads != 0) set_threads(o.threads);
  LoadedModel loaded(choose_checkpoint(o.run, o.checkpoint));
  if (o.special) loaded.find_specials();
  const Config& config = loaded.state.config;
  check_model_options(o, loaded);
  const Corpus corpus = corpus_of(o, loaded.state);
  // If the text is that of the run, only the part that it was not trained on is used; of any other text, all of it.
  const bool own = corpus.hash == loaded.state.corpus_hash && config.val_fraction > 0;
  if (!own) note_unread_specials(corpus, loaded.tokenizer.get(), config);
  const EvalRequest request{.own = own,
                            .unknown = o.unknown,
                            .labels = loaded.state.labels,
                            .ngram_counts = loaded.state.ngram_counts,
                            .stride = o.stride.value_or(0),
                            .training_text = o.adapting.adapt};
  check(!corpus.prepared || o.unknown == "error", "eval: --unknown is for text, and {} contains tokens; omit it",
        corpus.files.at(0));
  const std::unique_ptr<Task> task = make_eval_task(config, corpus, loaded.tokenizers, request);
  const std::int64_t batches = task->eval_batches(Part::val);
  const MeanLoss loss = mean_loss(*loaded.model, *task, Part::val, o.eval_batches, {}).value();
  check<DivergedError>(std::isfinite(loss.mean), "{}: the loss of this model is {}; the model has diverged",
                       loaded.path, loss.mean);
  std::vector<ReportLine> measured =
      task->measure(*loaded.model, {loss, sampled_batch_count(o.eval_batches, batches), batches}, o.measure, {});
  measure_parts(o, loaded, corpus, *task, request, measured);
  measure_readers(o, loaded, corpus, *task, measured);
  print(o, loaded, measured);
  return 0;
}

// The options of the fields that say how text is read.
void add_reading_options(const Command& command, EvalOptions& o) {
  for (const auto& [name, value] : text_options(o)) {
    const Field& field = find_field(name);
    const std::string option = field.option();
    if (field.is_boolean()) {
      command.add_flag(option + ",!--no-" + option.substr(2), *value, field.help);
    } else {
      command.add_option(option, *value, field.type, field.help);
    }
  }
  command.add_list("--include", o.include, "GLOB", find_field("include").help);
  command.add_list("--exclude", o.exclude, "GLOB", find_field("exclude").help);
}

}  // namespace

void add_eval(const Command& maki) {
  const Command command = maki.add_verb("eval", "Measure the loss of a model on a text");
  const auto o = std::make_shared<EvalOptions>();
  command.add_argument("RUN", o->run, "run directory or .maki file").require();
  command.add_argument(
      "CORPUS", o->corpus,
      "files, directories, - for standard input, or a built-in text such as @stories [the corpus of the run]");
  add_checkpoint_option(command, o->checkpoint);
  command.add_number("--eval-batches", o->eval_batches, 0, kMaxCount,
                     "number of batches to evaluate, spread evenly over the text; 0: all");
  command.add_number("--stride", o->stride, 1, kMaxCount,
                     "distance in tokens of overlapping windows, each of which predicts only its last tokens "
                     "[block_size: no overlap]");
  command.add_flag("--per-file", o->per_file, "measure every file by itself, too");
  command.add_flag("--by-position", o->by_position,
                   "report the mean loss at the positions of a window, too; --json has all of them");
  command.add_option("--unknown", o->unknown, "error|skip|replace",
                     "treatment of characters of the text that are not in the vocabulary [error]");
  add_reading_options(command, *o);
  add_special_option(command, "the text", o->special);
  add_search_options(command, o->measure.beam_size, o->measure.length_penalty);
  add_threads_option(command, o->threads);
  add_adapt_options(command,
                    "read the text in order, too, and learn each window after predicting it; the run is left as it is",
                    o->adapting);
  command.add_flag("--adapt-counts,!--no-adapt-counts", o->adapt_counts,
                   "count n-grams, words and repetitions while reading, and mix them with the network [true]");
  command.add_option("--against", o->against, fmt::format("{}", fmt::join(compressor_names(), "|")),
                     "compressor to compare with on this text; it must be installed");
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o, command] {
    note_adapt_options(command, {"--adapt-counts"}, o->adapting);
    for (const std::string& name : reading_fields())
      if (command.given(find_field(name).option())) o->reading.push_back(name);
    for (const char* const option : {"--beam", "--length-penalty"})
      if (command.given(option)) o->translation_only = option;
    return evaluate_run(*o);
  });
}

}  // namespace maki
