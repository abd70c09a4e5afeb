// maki inspect PATH… [options]: what a run or a checkpoint contains and, with --verify, whether training can resume
// from it; several runs side by side.
#include <cstdio>
#include <fmt/format.h>
#include <memory>

#include "data/dataset/foreign_tokens.h"
#include "data/dataset/token_shards.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "train/app/arithmetic.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"
#include "train/app/verbs/measured.h"
#include "train/app/verbs/tokenizer.h"
#include "train/run/checkpoint.h"
#include "train/run/metrics.h"
#include "train/run/run_directory.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

struct InspectOptions {
  std::vector<std::string> paths;
  std::string path, checkpoint;  // path: the only one of paths
  bool verify = false, json = false, csv = false;
};

// Verdicts on every checkpoint of a run directory, or on the chosen one.
std::vector<Verdict> verdicts(const InspectOptions& o) {
  if (o.checkpoint.empty() && is_directory(o.path, throw_as<CheckpointError>)) {
    const std::vector<Verdict> list = verify_run(RunDirectory(o.path));
    if (list.empty()) fail("{}: is no run with a checkpoint; {}", o.path, advise_run(o.path));
    return list;
  }
  const std::string path = choose_checkpoint(o.path, o.checkpoint);
  return {verdict_on(path, [&] { VerifiedCheckpoint{path}; })};
}

// What training does with a checkpoint that is whole. An imported model has no text that a resumed run could read.
const char* use_of(bool resumable) {
  return resumable ? "can be resumed" : "is whole; it was imported, and --init-from trains it further";
}

// Returns the verdicts as a JSON array. Without --json, prints one line per checkpoint (none for a single bad one,
// which the error describes). If training cannot resume from all of them, prints the array with --json and throws
// CheckpointError with the first fault.
Json verify(const InspectOptions& o) {
  Json facts = Json::array();
  const std::vector<Verdict> list = verdicts(o);
  std::vector<std::string> faults;
  for (const Verdict& verdict : list) {
    const bool good = verdict.fault.empty();
    const bool resumable = good && read_state(ContainerReader(verdict.path)).characters > 0;
    if (!good) faults.push_back(verdict.fault);
    facts.push_back({{"path", verdict.path}, {"resumable", resumable}});
    if (!good) facts.back()["fault"] = verdict.fault;
    if (o.json || (!good && list.size() == 1)) continue;
    fmt::print("{}\n", good ? fmt::format("{}: {}", escape_unprintable(verdict.path), use_of(resumable))
                            : "cannot be resumed: " + escape_unprintable(verdict.fault));
  }
  if (faults.empty()) return facts;
  if (o.json) print_result(json_text(Json{{"verified", false}, {"checkpoints", facts}}, 2));
  std::fflush(stdout);
  fail<CheckpointError>(
      "{}{}", faults.front(),
      list.size() == 1 ? "" : fmt::format(" ({} of {} checkpoints cannot be resumed)", faults.size(), list.size()));
}

// Adds the tensors and the sections of the file.
void add_contents(const ContainerReader& file, const std::vector<TensorEntry>& tensors, Report& report) {
  Json named, sections;
  std::string table;
  for (const TensorEntry& entry : tensors) {
    const auto extents = entry.shape.extents();
    named.push_back({{"name", entry.name},
                     {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                     {"group", to_string(entry.group)}});
    table += fmt::format("\n  {:28} {:14} {}", entry.name, to_string(entry.shape), to_string(entry.group));
  }
  for (const auto& section : file.entries()) sections.push_back({{"name", section.name}, {"bytes", section.length}});
  report.add("tensors", named).text(table).add("sections", sections);
}

void print_facts(const InspectOptions& o, const ContainerReader& file, const Json& verified) {
  const CheckpointState state = read_state(file);
  const std::vector<TensorEntry> tensors = read_tensors(file);
  std::int64_t all = 0, trained = 0;
  for (const TensorEntry& entry : tensors) {
    all += entry.shape.numel();
    if (entry.group != ParamGroup::frozen) trained += entry.shape.numel();
  }
  const std::string kind = load_tokenizer(state.tokenizer)->kind();
  const VocabSizes vocab = vocab_sizes(state);
  Report report;
  report.add("path", file.path())
      .text(escape_unprintable(file.path()))
      .add("step", state.step, "step", std::to_string(state.step))
      .add("verified", o.verify)
      .line("bytes", with_separators(static_cast<std::int64_t>(file.file_size())) + (o.verify ? ", all verified" : ""))
      .line("text", fmt::format("{} characters, {} training tokens, {} validation tokens, hash {}",
                                with_separators(state.characters), with_separators(state.train_tokens),
                                with_separators(state.val_tokens), state.corpus_hash))
      .line("tokenizer", fmt::format("{}, vocabulary of {}{}", kind, vocab.target,
                                     vocab.source > 0 ? fmt::format(", and of {} for sources", vocab.source) : ""))
      .add("arithmetic", arithmetic_text(state.config), "arithmetic", arithmetic_text(state.config))
      .add("parameters", all, "parameters",
           with_separators(all) + (trained < all ? fmt::format(", {} of them trained", with_separators(trained)) : ""))
      .add("trained_parameters", trained)
      .add("tokenizer", kind)
      .add("vocab_size", state.vocab_size)
      .add("characters", state.characters)
      .add("corpus_hash", state.corpus_hash)
      .add("schema", kConfigSchema)
      .add("train_tokens", state.train_tokens)
      .add("val_tokens", state.val_tokens)
      .add("config", training_json(state.config));
  if (has_source_vocabulary(state.config)) report.add("source_vocab_size", vocab.source);
  add_contents(file, tensors, report);
  if (o.verify) report.add("checkpoints", verified);
  std::string toml = training_toml(state.config);
  toml.pop_back();
  report.text("\n" + toml);
  if (!o.json && is_directory(o.path, throw_as<CheckpointError>)) {
    const RunHistory history = read_history(RunDirectory(o.path).metrics_file());
    if (const std::string curve = curve_text(history, state.best_possible_loss); !curve.empty())
      report.text("\n" + curve);
  }
  report.print(o.json);
}

// The files of another program need the tokenizer that made their ids.
std::shared_ptr<const TokenFile> known_tokens(const InspectOptions& o, const std::string& name, const Corpus& corpus) {
  if (corpus.prepared->tokenizer != nullptr) {
    if (o.verify) verify_token_file(*corpus.prepared);
    return corpus.prepared;
  }
  check(!o.verify, "inspect: {} holds token ids of nanoGPT or llm.c, which have no checksums; omit --verify", name);
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_beside_tokens(o.paths.front());
  check<CorpusError>(tokenizer != nullptr,
                     "inspect: {} holds token ids of nanoGPT or llm.c, which do not say what they mean, and there is "
                     "no tokenizer beside them; maki train reads them with --tokenizer-file",
                     name);
  // A run says what it holds back of a single file.
  const TokenFile& file = *corpus.prepared;
  const auto train = static_cast<double>(file.train.size()), val = static_cast<double>(file.val.size());
  return with_tokenizer(file, tokenizer, file.has_validation ? val / (train + val) : 0);
}

// Several files are shown as the one dataset that a run makes of them. Only with --verify is all of them read, so that
// any damage is found.
void inspect_tokens(const InspectOptions& o) {
  check(o.checkpoint.empty(), "inspect: {} is a token file, which contains no checkpoints; omit --checkpoint",
        o.paths.front());
  const Corpus corpus = read_prepared(o.paths).value();
  const std::string& name = o.paths.size() == 1 ? o.paths.front() : corpus.prepared->path;
  const auto file = known_tokens(o, name, corpus);
  std::int64_t bytes = 0;
  for (const auto& each : file->files) bytes += static_cast<std::int64_t>(each->size());
  Report report;
  report.add("path", name)
      .text(escape_unprintable(name))
      .add("verified", o.verify)
      .line("bytes", with_separators(bytes) + (o.verify ? ", all verified" : ""));
  add_token_facts(file->facts, *file->tokenizer, report);
  report
      .add("pieces",
           {{"train", file->facts.train_joins + 1}, {"val", file->val.empty() ? 0 : file->facts.val_joins + 1}})
      .add("bytes_of_file", bytes)
      .print(o.json);
}

int inspect(InspectOptions& o) {
  check(!o.csv || !o.json, "inspect: --csv and --json are two forms of one result; use only one of them");
  if (!o.csv && token_file_paths(o.paths)) {
    inspect_tokens(o);
    return 0;
  }
  if (o.paths.size() > 1) {
    check(o.checkpoint.empty() && !o.verify && !o.csv,
          "inspect: --checkpoint, --verify and --csv apply to a single PATH; got {}", o.paths.size());
    compare_runs(o.paths, o.json);
    return 0;
  }
  o.path = o.paths.front();
  if (o.csv) {
    check(!o.verify && o.checkpoint.empty(),
          "inspect: --csv prints the measurements of all steps, and {} is about checkpoints; omit one of them",
          o.verify ? "--verify" : "--checkpoint");
    const RunDirectory run(o.path);
    check(is_directory(o.path, throw_as<CheckpointError>) && run.exists(),
          "inspect: --csv prints the measurements of a run directory; got {}", o.path);
    print_result(measurements_csv(read_history(run.metrics_file())));
    return 0;
  }
  const Json verified = o.verify ? verify(o) : Json();
  const bool newest = o.checkpoint.empty() && is_directory(o.path, throw_as<CheckpointError>);
  const ContainerReader file(choose_checkpoint(o.path, newest ? "last" : o.checkpoint));
  print_facts(o, file, verified);
  return 0;
}

}  // namespace

void add_inspect(const Command& command) {
  const auto o = std::make_shared<InspectOptions>();
  command
      .add_argument("PATH", o->paths,
                    "run directory, .maki file, or token file; several runs are compared, several token files are one "
                    "text")
      .require();
  command.add_option("--checkpoint", o->checkpoint, "last|best|STEP",
                     "checkpoint to show: the last, the best, or that of a step [last]");
  command.add_flag("--verify", o->verify, "verify everything that --resume verifies, in every checkpoint of a run");
  command.add_flag("--csv", o->csv, "print what a run has measured as comma-separated values, one line per step");
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return inspect(*o); });
}

}  // namespace maki
