// maki inspect PATH [--verify]
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/file.h"
#include "data/tokenizer.h"
#include "train/checkpoint.h"
#include "train/loaded_model.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/verbs.h"

namespace maki {
namespace {

struct InspectOptions {
  std::string path, checkpoint;
  bool verify = false, json = false;
};

nlohmann::ordered_json training_json(const Config& config) {
  nlohmann::ordered_json facts;
  for (const Field& field : fields()) {
    if (field.kind != FieldClass::training) continue;
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

int inspect(const InspectOptions& o) {
  const bool newest = o.checkpoint.empty() && is_directory(o.path);
  const std::string path = chosen_checkpoint(o.path, newest ? "last" : o.checkpoint);
  const ContainerReader file(path);
  if (o.verify) file.verify();
  const CheckpointState state = read_state(file);
  const std::vector<TensorEntry> tensors = read_tensors(file);
  const auto tokenizer = load_tokenizer(state.tokenizer);
  std::int64_t parameters = 0;
  for (const TensorEntry& entry : tensors) parameters += entry.shape.numel();

  if (o.json) {
    nlohmann::ordered_json facts{{"path", path},
                                 {"step", state.step},
                                 {"verified", o.verify},
                                 {"parameters", parameters},
                                 {"tokenizer", tokenizer->kind()},
                                 {"vocab_size", state.vocab_size},
                                 {"characters", state.characters},
                                 {"corpus_hash", state.corpus_hash},
                                 {"train_tokens", state.train_tokens},
                                 {"val_tokens", state.val_tokens},
                                 {"config", training_json(state.config)}};
    for (const TensorEntry& entry : tensors) {
      facts["tensors"].push_back(
          {{"name", entry.name},
           {"shape", std::vector<std::int64_t>(entry.shape.extents().begin(), entry.shape.extents().end())},
           {"group", to_string(entry.group)}});
    }
    for (const auto& section : file.entries())
      facts["sections"].push_back({{"name", section.name}, {"bytes", section.length}});
    fmt::print("{}\n", facts.dump(2));
    return 0;
  }
  fmt::print("{}\nstep         {}\nbytes        {}{}\n", printable(path), state.step,
             grouped(static_cast<std::int64_t>(file.file_size())), o.verify ? ", every one verified" : "");
  fmt::print("text         {} characters, {} tokens to train on, {} to validate, hash {}\n", grouped(state.characters),
             grouped(state.train_tokens), grouped(state.val_tokens), state.corpus_hash);
  fmt::print("tokenizer    {}, vocabulary of {}\nparameters   {}\n\n", tokenizer->kind(), state.vocab_size,
             grouped(parameters));
  for (const TensorEntry& entry : tensors) {
    fmt::print("  {:28} {:14} {}\n", entry.name, to_string(entry.shape), to_string(entry.group));
  }
  fmt::print("\n{}", training_toml(state.config));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("inspect", "Tell what is in a run or checkpoint");
  const auto o = std::make_shared<InspectOptions>();
  command->add_option("PATH", o->path, "run directory or .maki file")->required();
  command->add_option("--checkpoint", o->checkpoint, "last, best or a step [last]")->type_name("WHICH")->take_last();
  command->add_flag("--verify", o->verify, "check every byte against the file's hash");
  command->add_flag("--json", o->json, "facts as JSON");
  command->callback([o, &chosen] { chosen = [o] { return inspect(*o); }; });
}

}  // namespace maki
