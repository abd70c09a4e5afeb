// maki eval RUN [CORPUS…] [options]
#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <iterator>
#include <memory>
#include <optional>

#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"
#include "train/loop/adaptive_loss.h"
#include "train/loop/evaluate.h"
#include "train/loop/language_model_task.h"
#include "train/loop/loss_by_position.h"
#include "train/loop/tasks.h"
#include "train/run/config/models.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

struct EvalOptions {
  explicit EvalOptions(const Command& its_command)
      : command(its_command), text_fields(its_command, reading_fields(), Unset::stored) {}
  Command command;
  ConfigFlags text_fields;  // how the text is read
  ReadingOptions reading;
  std::vector<std::string> corpus;
  std::int64_t eval_batches = 0;
  MeasureOptions measure;
  AdaptingOptions adapting;
  bool adapt_counts = true;
  std::optional<std::int64_t> stride;
  bool by_position = false, per_file = false;
};

// The given text, or else that of the run; both are read as the run reads its text, unless options say otherwise.
Corpus corpus_of(const EvalOptions& o, const CheckpointState& state) {
  const bool own = o.corpus.empty();
  const std::optional<Config> stored = own ? stored_config(o.reading.run) : Config();
  check(stored.has_value(),
        "eval: needs a CORPUS, because {} is not a run directory with a configuration that names one", o.reading.run);
  Config config = *stored;
  config.model = state.config.model;
  config.task = state.config.task;
  config.corpus = own ? resume_sources(o.reading.run, {}, config.corpus) : o.corpus;
  o.text_fields.apply(config, "");
  o.text_fields.require_effect(config);
  if (own) return reread_corpus(config, state.corpus_hash, "to measure all of it, name it as CORPUS");
  adopt_reading_fields(o.reading.run, o.text_fields.given_fields(), config);
  return read_corpus(config.corpus, corpus_options(config));
}

void check_options(const EvalOptions& o) {
  check_adapting(o.command, "eval", o.adapting.adapt, {"--adapt-counts"});
  check(!o.adapting.adapt || o.reading.with.empty(),
        "eval: --adapt lets one model learn, and --with measures several; omit one of them");
  check(!o.adapting.adapt || o.eval_batches == 0, "eval: --adapt reads the whole text in order; omit --eval-batches");
  check(!o.by_position || !o.stride, "eval: --by-position is for windows without overlap; omit --stride");
  check(!o.per_file || o.eval_batches == 0, "eval: --per-file reads whole files; omit --eval-batches");
}

// Options that do not apply to every kind of model.
void check_model_options(const EvalOptions& o, const LoadedModel& loaded) {
  const Config& config = loaded.state.config;
  const TaskRule& task = task_rule(config);
  const std::string& run = o.reading.run;
  const std::vector<std::string> search = o.command.given_among({"--beam", "--length-penalty"});
  check(search.empty() || task.reads_source(),
        "eval: {} applies only to a model that translates; the model of {} is {}; omit it",
        search.empty() ? "" : search.back(), run, config.model);
  check_search(o.command, "eval", o.measure.beam_size);
  check(!o.adapting.adapt || task.predicts_next,
        "eval: --adapt applies only to a model that predicts the next token of a text; the task of {} is {}; omit it",
        run, task.name);
  check(!o.stride || task.predicts_next,
        "eval: --stride applies only to a model that predicts the next token of a text; the task of {} is {}; omit it",
        run, task.name);
  check(!o.stride || loaded.model->make_carried(1) == nullptr,
        "eval: --stride is for models that see nothing before their window; {} of {} remembers what it has read; omit "
        "it",
        config.model, run);
  check(!o.stride || *o.stride <= config.block_size,
        "stride: must be between 1 and {}, the context of the model; got {}", config.block_size, o.stride.value_or(0));
  check(!o.per_file || task.plain_text(),
        "eval: --per-file applies only to a model of plain text; the task of {} is {}; omit it", run, task.name);
  check(!o.by_position || !task.labels,
        "eval: --by-position applies only to a model that predicts tokens; the task of {} is {}; omit it", run,
        task.name);
}

// What is measured of a file: its documents if they are known, else one text.
struct FileTexts {
  std::size_t file;  // its index
  std::vector<std::string_view> texts;
};

std::vector<FileTexts> texts_by_file(const Corpus& corpus, const std::vector<std::string_view>& texts) {
  std::vector<FileTexts> files;
  for (const std::string_view text : texts) {
    const auto offset = static_cast<std::size_t>(text.data() - corpus.text.data());
    const auto file = static_cast<std::size_t>(std::ranges::upper_bound(corpus.joins, offset) - corpus.joins.begin());
    if (files.empty() || files.back().file != file) files.push_back({file, {}});
    files.back().texts.push_back(text);
  }
  return files;
}

// All facts about a text; without targets there is nothing else to say about it.
Facts facts_of_file(const LoadedModel& loaded, const Corpus& alone, const EvalRequest& request) {
  if (encode_pieces(*loaded.tokenizer, document_texts(alone), piece_kind(alone)).size() < 2)
    return Facts{{"targets", 0}};
  const std::unique_ptr<Task> task = make_eval_task(
      loaded.state.config, alone, loaded.tokenizers,
      {.ngram_counts = request.ngram_counts, .other_counts = request.other_counts, .stride = request.stride});
  const std::int64_t batches = task->eval_batches(Part::val);
  const MeanLoss loss = mean_loss(*loaded.model, *task, Part::val, 0, {}).value();
  check<DivergedError>(std::isfinite(loss.mean), "{}: the loss of this model is {}; the model has diverged",
                       loaded.path, loss.mean);
  constexpr std::string_view kOfTheWhole[] = {"part",   "unknown", "unknown_characters",
                                              "stride", "batches", "batches_of_text"};
  Facts facts;
  for (const ReportLine& line : task->measure(*loaded.model, {loss, batches, batches}, {}, {})) {
    std::ranges::copy_if(line.facts, std::back_inserter(facts), [&](const Fact& fact) {
      return std::ranges::find(kOfTheWhole, fact.name) == std::end(kOfTheWhole);
    });
  }
  return facts;
}

std::string describe_file(const Facts& facts) {
  const auto has = [&](const char* name) { return std::ranges::find(facts, name, &Fact::name) != facts.end(); };
  const auto value = [&](const char* name) { return std::ranges::find(facts, name, &Fact::name)->value; };
  const auto number = [&](const char* name) { return std::get<double>(value(name)); };
  const std::string targets = pluralize(std::get<std::int64_t>(value("targets")), "target");
  if (!has("val_loss")) return targets;
  if (!has("bits_per_byte")) return fmt::format("{:.4f} nats per target, {}", number("val_loss"), targets);
  return fmt::format("{:.4f} nats per token, {:.4f} bits/byte, {:.4f} bits/char, {}", number("val_loss"),
                     number("bits_per_byte"), number("bits_per_character"), targets);
}

// What eval measures, for each file alone: a line of text, and in `files` an object. The model sees nothing of the
// files before. Of the run's own text (request.own), these are the parts of the files that are for validation.
// A file of fewer than two tokens has no target, and gets no loss. Throws CorpusError for a corpus of tokens, and for
// unknown characters unless request.unknown is skip or replace; DivergedError if a loss is not finite. Requires: the
// model learned a task on plain text.
std::vector<ReportLine> measure_files(const LoadedModel& loaded, const Corpus& corpus, const EvalRequest& request) {
  std::vector<ReportLine> list;
  Facts files;
  check<CorpusError>(corpus.prepared == nullptr, "{}: contains tokens, and --per-file measures files of text; omit it",
                     corpus.files.at(0));
  const std::vector<std::string_view> measured =
      request.own ? split_text(corpus, loaded.state.config.val_fraction, loaded.tokenizer->normalization()).val
                  : document_texts(corpus);
  for (const auto& [file, texts] : texts_by_file(corpus, measured)) {
    const KnownText known = known_text(*loaded.tokenizer, texts, parse_unknown_policy(request.unknown));
    Corpus alone;
    for (const std::string_view text : known.pieces) {
      if (!corpus.documents.empty()) alone.documents.push_back(alone.text.size());
      alone.text += text;
    }
    Facts facts = facts_of_file(loaded, alone, request);
    const std::string& name = corpus.files.at(file);
    list.push_back({"file", fmt::format("{}: {}", escape_unprintable(name), describe_file(facts))});
    facts.insert(facts.begin(), Fact("file", name));
    facts.emplace_back("unknown_characters", known.unknown);
    files.emplace_back("", std::move(facts));
  }
  list.push_back({"", "", {{"files", files}}});
  return list;
}

// What options ask for beside the ordinary loss: that of each file, of each position, of a model that learns.
void measure_more(const EvalOptions& o, const LoadedModel& loaded, const Corpus& corpus, const Task& task,
                  const EvalRequest& request, std::vector<ReportLine>& measured) {
  const auto append = [&](std::vector<ReportLine> lines) { std::ranges::move(lines, std::back_inserter(measured)); };
  if (o.per_file) append(measure_files(loaded, corpus, request));
  if (o.by_position)
    append(measure_by_position(loss_by_position(*loaded.model, task, Part::val, o.eval_batches).value()));
  if (!o.adapting.adapt) return;
  const LanguageModelTask& text_task = *task.as_language_model();
  const AdaptiveOptions options{.network = o.adapting.options, .counts = o.adapt_counts};
  const AdaptiveLoss loss = adaptive_loss(loaded, text_task.dataset(), options).value();
  const double tokens = static_cast<double>(text_task.dataset().val.size());
  append(
      measure_adapting(loss, options, text_task.text().own, tokens / static_cast<double>(text_task.text().characters)));
}

int evaluate_run(const EvalOptions& o) {
  check_options(o);  // before anything is read
  LoadedModel loaded = o.reading.open();
  const std::vector<std::string> other_counts = o.reading.average(loaded);
  const Config& config = loaded.state.config;
  check_model_options(o, loaded);
  const Corpus corpus = corpus_of(o, loaded.state);
  // If the text is that of the run, only the part that it was not trained on is used; of any other text, all of it.
  const bool own = corpus.hash == loaded.state.corpus_hash && config.val_fraction > 0;
  if (!own) note_unread_specials(corpus, loaded.tokenizer.get(), config);
  const EvalRequest request{.own = own,
                            .unknown = o.reading.unknown,
                            .labels = loaded.state.labels,
                            .ngram_counts = loaded.state.ngram_counts,
                            .other_counts = other_counts,
                            .stride = o.stride.value_or(0),
                            .training_text = o.adapting.adapt};
  check(!corpus.prepared || o.reading.unknown == "error",
        "eval: --unknown is for text, and {} contains tokens; omit it", corpus.files.at(0));
  const std::unique_ptr<Task> task = make_eval_task(config, corpus, loaded.tokenizers, request);
  const std::int64_t batches = task->eval_batches(Part::val);
  const MeanLoss loss = mean_loss(*loaded.model, *task, Part::val, o.eval_batches, {}).value();
  check<DivergedError>(std::isfinite(loss.mean), "{}: the loss of this model is {}; the model has diverged",
                       loaded.path, loss.mean);
  const SampledLoss sampled{loss, sampled_batch_count(o.eval_batches, batches), batches, carries_state(config)};
  std::vector<ReportLine> measured = task->measure(*loaded.model, sampled, o.measure, {});
  measure_more(o, loaded, corpus, *task, request, measured);
  const std::string checkpoint = fmt::format("{} (step {})", escape_unprintable(loaded.path), loaded.state.step);
  Report report;
  report.add("checkpoint", loaded.path, "checkpoint", checkpoint);
  if (!o.reading.with.empty())
    report.add("with", o.reading.with, "with", fmt::format("{}", fmt::join(o.reading.with, ", ")));
  report.add("step", loaded.state.step).add("weights", o.reading.weights).add(measured).print(o.reading.json);
  return 0;
}

}  // namespace

void add_eval(const Command& command) {
  const auto o = std::make_shared<EvalOptions>(command);
  o->reading.add_run(command, "run directory or .maki file");
  o->reading.add_with(command);
  command.add_argument(
      "CORPUS", o->corpus,
      "files, directories, - for standard input, or a built-in text such as @stories [the corpus of the run]");
  command.add_number("--eval-batches", o->eval_batches, 0, kMaxCount,
                     "number of batches to evaluate, spread evenly over the text, or with transformer-xl its first "
                     "ones; 0: all");
  command.add_number("--stride", o->stride, 1, kMaxCount,
                     "distance in tokens of overlapping windows, each of which predicts only its last tokens "
                     "[block_size: no overlap]");
  command.add_flag("--per-file", o->per_file, "measure every file by itself, too");
  command.add_flag("--by-position", o->by_position,
                   "report the mean loss at the positions of a window, too; --json has all of them");
  add_search_options(command, o->measure.beam_size, o->measure.length_penalty);
  o->adapting.add(command,
                  "read the text in order, too, and learn each window after predicting it; the run is left as it is");
  command.add_flag("--adapt-counts,!--no-adapt-counts", o->adapt_counts,
                   "count n-grams, words and repetitions while reading, and mix them with the network [true]");
  add_weights_option(command, o->reading.weights);
  o->reading.add_options(command, "the text", "print the results as JSON");
  command.set_action([o] { return evaluate_run(*o); });
}

}  // namespace maki
