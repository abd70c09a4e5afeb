// maki inspect PATH [options]: what a run or a checkpoint contains and, with --verify, whether training can resume from
// it.
#include <cstdio>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/dataset/token_shards.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "data/tokenizer/tokenizer.h"
#include "train/app/choose_checkpoint.h"
#include "train/app/progress.h"
#include "train/app/token_facts.h"
#include "train/app/verbs.h"
#include "train/run/checkpoint.h"
#include "train/run/run_directory.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

struct InspectOptions {
  std::string path, checkpoint;
  bool verify = false, json = false;
};

nlohmann::ordered_json training_json(const Config& config) {
  nlohmann::ordered_json facts;
  for (const Field& field : fields()) {
    if (!field.is_training()) continue;
    std::visit([&](auto member) { facts[field.name] = config.*member; }, field.member);
  }
  if (!config.init_from.empty()) facts["init_from"] = config.init_from;
  for (const Phase& phase : config.phases) {
    facts["phases"].push_back({{"start", phase.start},
                               {"end", phase.end},
                               {"learning_rate", phase.learning_rate},
                               {"min_lr", phase.min_lr},
                               {"warmup_steps", phase.warmup_steps}});
  }
  return facts;
}

// Bytes of a path that are not UTF-8 are replaced, because JSON must be.
std::string json_text(const nlohmann::ordered_json& facts) {
  return facts.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::int64_t parameters_of(const std::vector<TensorEntry>& tensors) {
  std::int64_t sum = 0;
  for (const TensorEntry& entry : tensors) sum += entry.shape.numel();
  return sum;
}

std::int64_t trained_parameters_of(const std::vector<TensorEntry>& tensors) {
  std::int64_t sum = 0;
  for (const TensorEntry& entry : tensors) sum += entry.group != ParamGroup::frozen ? entry.shape.numel() : 0;
  return sum;
}

// Verdicts on every checkpoint of a run directory, or on the chosen one.
std::vector<Verdict> verdicts(const InspectOptions& o) {
  if (o.checkpoint.empty() && is_directory(o.path)) {
    const std::vector<Verdict> list = verify_run(RunDirectory(o.path));
    check(!list.empty(), "{}: contains no checkpoint", o.path);
    return list;
  }
  const std::string path = choose_checkpoint(o.path, o.checkpoint);
  return {verdict_on(path, [&] { VerifiedCheckpoint{path}; })};
}

// Returns the verdicts as a JSON array. Without --json, prints one line per checkpoint (none for a single bad one,
// which the error describes). If training cannot resume from all of them, prints the array with --json and throws
// CheckpointError with the first fault.
nlohmann::ordered_json verify(const InspectOptions& o) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::array();
  const std::vector<Verdict> list = verdicts(o);
  std::vector<std::string> faults;
  for (const Verdict& verdict : list) {
    const bool good = verdict.fault.empty();
    if (!good) faults.push_back(verdict.fault);
    facts.push_back({{"path", verdict.path}, {"resumable", good}});
    if (!good) facts.back()["fault"] = verdict.fault;
    if (o.json || (!good && list.size() == 1)) continue;
    fmt::print("{}\n", good ? escape_unprintable(verdict.path) + ": can be resumed"
                            : "cannot be resumed: " + escape_unprintable(verdict.fault));
  }
  if (faults.empty()) return facts;
  if (o.json) fmt::print("{}\n", json_text({{"verified", false}, {"checkpoints", facts}}));
  std::fflush(stdout);
  fail<CheckpointError>(
      "{}{}", faults.front(),
      list.size() == 1 ? "" : fmt::format(" ({} of {} checkpoints cannot be resumed)", faults.size(), list.size()));
}

void print_json(const InspectOptions& o, const ContainerReader& file, const CheckpointState& state,
                const std::vector<TensorEntry>& tensors, const nlohmann::ordered_json& verified) {
  nlohmann::ordered_json facts{{"path", file.path()},
                               {"step", state.step},
                               {"verified", o.verify},
                               {"parameters", parameters_of(tensors)},
                               {"trained_parameters", trained_parameters_of(tensors)},
                               {"tokenizer", load_tokenizer(state.tokenizer)->kind()},
                               {"vocab_size", state.vocab_size},
                               {"characters", state.characters},
                               {"corpus_hash", state.corpus_hash},
                               {"schema", state.config.schema},
                               {"train_tokens", state.train_tokens},
                               {"val_tokens", state.val_tokens},
                               {"config", training_json(state.config)}};
  if (has_source_vocabulary(state.config)) facts["source_vocab_size"] = vocab_sizes(state).source;
  for (const TensorEntry& entry : tensors) {
    facts["tensors"].push_back(
        {{"name", entry.name},
         {"shape", std::vector<std::int64_t>(entry.shape.extents().begin(), entry.shape.extents().end())},
         {"group", to_string(entry.group)}});
  }
  for (const auto& section : file.entries())
    facts["sections"].push_back({{"name", section.name}, {"bytes", section.length}});
  if (o.verify) facts["checkpoints"] = verified;
  fmt::print("{}\n", json_text(facts));
}

void print_text(const ContainerReader& file, const CheckpointState& state, const std::vector<TensorEntry>& tensors,
                bool verified) {
  fmt::print("{}\nstep         {}\nbytes        {}{}\n", escape_unprintable(file.path()), state.step,
             with_separators(static_cast<std::int64_t>(file.file_size())), verified ? ", all verified" : "");
  fmt::print("text         {} characters, {} training tokens, {} validation tokens, hash {}\n",
             with_separators(state.characters), with_separators(state.train_tokens), with_separators(state.val_tokens),
             state.corpus_hash);
  const VocabSizes vocab = vocab_sizes(state);
  const std::int64_t all = parameters_of(tensors), trained = trained_parameters_of(tensors);
  fmt::print("tokenizer    {}, vocabulary of {}{}\nparameters   {}{}\n\n", load_tokenizer(state.tokenizer)->kind(),
             vocab.target, vocab.source > 0 ? fmt::format(", and of {} for sources", vocab.source) : "",
             with_separators(all), trained < all ? fmt::format(", {} of them trained", with_separators(trained)) : "");
  for (const TensorEntry& entry : tensors) {
    fmt::print("  {:28} {:14} {}\n", entry.name, to_string(entry.shape), to_string(entry.group));
  }
  fmt::print("\n{}", training_toml(state.config));
}

int inspect(const InspectOptions& o) {
  if (is_token_file(o.path)) {
    check(o.checkpoint.empty(), "inspect: {} is a token file, which contains no checkpoints; omit --checkpoint",
          o.path);
    return inspect_token_file(o.path, o.verify, o.json);
  }
  check<CorpusError>(
      !token_file_paths({o.path}),
      "inspect: {} holds token ids of nanoGPT or llm.c, which do not say what they mean; maki train reads "
      "them with --tokenizer-file",
      o.path);
  const nlohmann::ordered_json verified = o.verify ? verify(o) : nlohmann::ordered_json();
  const bool newest = o.checkpoint.empty() && is_directory(o.path);
  const ContainerReader file(choose_checkpoint(o.path, newest ? "last" : o.checkpoint));
  const CheckpointState state = read_state(file);
  const std::vector<TensorEntry> tensors = read_tensors(file);
  if (o.json) {
    print_json(o, file, state, tensors, verified);
  } else {
    print_text(file, state, tensors, o.verify);
  }
  return 0;
}

}  // namespace

void add_inspect(const Command& maki) {
  const Command command = maki.add_verb("inspect", "Show what a run, a checkpoint or a token file contains");
  const auto o = std::make_shared<InspectOptions>();
  command.add_argument("PATH", o->path, "run directory, .maki file, or token file").require();
  command.add_option("--checkpoint", o->checkpoint, "last|best|STEP",
                     "checkpoint to show: the last, the best, or that of a step [last]");
  command.add_flag("--verify", o->verify, "verify everything that --resume verifies, in every checkpoint of a run");
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return inspect(*o); });
}

}  // namespace maki
