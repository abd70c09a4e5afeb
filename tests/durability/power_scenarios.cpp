#include "tests/durability/power_scenarios.h"

#include <fmt/format.h>

#include "data/tokenizer/tokenizer_files.h"
#include "tests/files.h"
#include "tests/train/imported.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/loop/session.h"
#include "train/run/convert/model_formats.h"
#include "train/run/convert/prepare.h"
#include "train/run/new_run.h"
#include "train/run/parameters_file.h"
#include "train/run/set_aside.h"

namespace maki::tests {
namespace {

// A run of a few tiny steps that is saved, evaluated and pruned at each of them.
constexpr std::int64_t kFirstSteps = 2, kAllSteps = 5;
const std::string kRun = "runs/a";

Config run_config(std::int64_t max_steps) {
  Config config = smallest_config();
  config.val_fraction = 0.25;
  config.max_steps = max_steps;
  config.eval_interval = config.checkpoint_interval = config.log_interval = 1;
  config.keep_last = 2;
  config.eval_batches = 0;
  config.learning_rate = config.min_lr = 0.05;
  config.warmup_steps = 0;
  return config;
}

const Dataset& run_data() {
  static const Dataset data = dataset_of(seeded_text(60, "abc"), run_config(kAllSteps));
  return data;
}

// What `maki train` does with the files of a run: begins it, or resumes it, from the checkpoint of a step if that is
// not -1.
void train_run(const std::string& folder, FileSystem& fs, std::int64_t max_steps, std::int64_t from_step = -1) {
  const Config config = run_config(max_steps);
  const RunDirectory run(folder + "/" + kRun, fs);
  const std::string toml = to_toml(config);
  TextTrainer trainer(config, run_data());
  std::optional<RunClaim> claim;
  std::optional<RunLock> lock;
  std::optional<VerifiedCheckpoint> from;
  if (!run.exists()) {
    claim.emplace(run, toml);
  } else {
    lock.emplace(run);
    complete_return(run);
    std::vector<std::string> notes = run.remove_temporary_files();
    from.emplace(from_step < 0 ? newest_intact(run, notes) : VerifiedCheckpoint(run, run.checkpoint_file(from_step)));
    if (from->state().step > max_steps) return;
    trainer.restore(*from);
    if (from_step >= 0) move_later_checkpoints(run, from_step);
  }
  replace_file_atomically(fs, run.config_file(), {text_bytes(toml)});
  SessionListener silent;
  Session(config, trainer, run, silent, {.resumed = from ? &*from : nullptr}).train();
}

// The checkpoints and pointers of a run, and its losses.
std::map<std::string, std::string> results(const std::string& folder) {
  const RunDirectory run(folder + "/" + kRun);
  std::map<std::string, std::string> files = files_below(run.checkpoints_directory());
  const RunHistory history = read_history(run.metrics_file());
  for (const EvalReport& eval : history.evals()) files["losses"] += fmt::format("{} {}\n", eval.step, *eval.val_loss);
  return files;
}

std::string finish_run(const std::string& folder) {
  Unsynced fs;
  static const auto expected = [&] {
    const TemporaryFolder other;
    train_run(other.path(), fs, kAllSteps);
    return results(other.path());
  }();
  const bool begun = RunDirectory(folder + "/" + kRun).exists();
  try {
    if (!begun) train_run(folder, fs, kFirstSteps);
    train_run(folder, fs, kAllSteps);
  } catch (const OccupiedOutput& error) {
    // Garbage in a directory without a checkpoint might be a file of the user's: another directory is to be chosen.
    return begun ? error.what() : "";
  } catch (const Error& error) {
    return error.what();
  }
  return results(folder) == expected ? "" : "the run ends with other files";
}

std::string wrong_pointer(const Tree& left) {
  const std::string folder = kRun + "/checkpoints/";
  for (const std::string pointer : {"last", "best"}) {
    const auto file = left.find(folder + pointer);
    if (file == left.end()) continue;
    const std::string named = file->second->substr(0, file->second->find_first_of(" \n"));
    if (!left.contains(folder + named)) return pointer + ": names a missing checkpoint";
  }
  return "";
}

std::vector<Scenario> runs() {
  const auto begun = [](const std::string& folder) {
    Unsynced fs;
    train_run(folder, fs, kFirstSteps);
  };
  const auto scenario = [](const std::string& name, const auto& prepare, const auto& act) {
    return Scenario{name, prepare, act, finish_run, wrong_pointer, kRun + "/metrics.jsonl"};
  };
  return {scenario("a new run", std::function<void(const std::string&)>(),
                   [](const std::string& folder, RecordedDisk& disk) {
                     train_run(folder, disk, kFirstSteps);
                     disk.acknowledge();
                   }),
          scenario("a resumed run", begun,
                   [](const std::string& folder, RecordedDisk& disk) {
                     disk.acknowledge();
                     for (const std::int64_t steps : {kFirstSteps + 1, kFirstSteps + 2}) {
                       train_run(folder, disk, steps);
                       disk.acknowledge();
                     }
                   }),
          scenario("a return to an earlier checkpoint", begun, [](const std::string& folder, RecordedDisk& disk) {
            train_run(folder, disk, kFirstSteps, kFirstSteps - 1);
            disk.acknowledge();
          })};
}

const LoadedModel& some_model() {
  static const TemporaryFolder folder;
  static const LoadedModel model(import_into(hugging_face_fixture("gpt2"), folder / "run"));
  return model;
}

WritingCommand preparing(const std::string& format, const std::string& name) {
  return {"prepare for " + format, name, [format](const OutputPath& out, FileSystem& fs) {
            static const TemporaryFolder folder;
            static const std::string text = folder.write("text", seeded_text(2000, "abcdefg"));
            prepare_corpus(fs, {.sources = {text}, .out = out, .format = format});
          }};
}

WritingCommand exporting(const std::string& format, const std::string& name) {
  return {"export to " + format, name,
          [format](const OutputPath& out, FileSystem& fs) { export_model(some_model(), format, {.out = out}, fs); }};
}

// Weights in one file are not there without their tokenizer, which is written first.
std::string missing_companion(const Tree& left) {
  const auto is_new = [&](const std::string& path) {
    const auto file = left.find(path);
    return file != left.end() && !file->second->starts_with("old ");
  };
  for (const std::string model : {"model.bin", "model.safetensors"}) {
    if (is_new(model) && !is_new(model + ".maki-tokenizer")) return model + ": is there without its tokenizer";
  }
  return "";
}

// The command where nothing is, and where it replaces something, whose files begin with "old".
void add_scenarios(const WritingCommand& command, std::vector<Scenario>& list) {
  const auto write = [command](const std::string& folder, FileSystem& fs) {
    command.write({folder + "/" + command.out, /*replace=*/true}, fs);
  };
  const auto written_before = [write](const std::string& folder) {
    Unsynced fs;
    write(folder, fs);
    for (const auto& [path, bytes] : files_below(folder))
      write_bytes(fmt::format("{}/{}", folder, path), "old " + path);
  };
  const auto act = [write](const std::string& folder, RecordedDisk& disk) {
    write(folder, disk);
    disk.acknowledge();
  };
  const auto recover = [write](const std::string& folder) -> std::string {
    Unsynced fs;
    try {
      write(folder, fs);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  list.push_back({command.name, {}, act, recover, missing_companion});
  list.push_back({command.name + ", replacing", written_before, act, recover, missing_companion});
}

}  // namespace

std::vector<WritingCommand> writing_commands() {
  return {{"tokenizer train", "t.json",
           [](const OutputPath& out, FileSystem& fs) {
             const auto tokenizer = make_tokenizer("bpe", seeded_text(2000, "abc"), {.vocab_size = 280});
             const std::string json = tokenizer_json(*tokenizer);
             write_output(fs, out, {text_bytes(json)});
           }},
          preparing("maki", "a.tokens"),
          preparing("nanogpt", "tokens"),
          exporting("gguf", "model.gguf"),
          exporting("llm.c", "model.bin"),
          exporting("safetensors", "model.safetensors"),
          exporting("hf", "new/folder/model"),
          exporting("maki", "run"),
          {"save_parameters()", "model.maki",
           [](const OutputPath& out, FileSystem& fs) { save_parameters(out.path, some_model().store, fs); }}};
}

std::vector<Scenario> power_scenarios() {
  std::vector<Scenario> list = runs();
  for (const WritingCommand& command : writing_commands()) add_scenarios(command, list);
  return list;
}

Trace record(const Scenario& scenario) {
  const TemporaryFolder folder;
  if (scenario.prepare) scenario.prepare(folder.path());
  RecordedDisk disk(folder.path());
  scenario.act(folder.path(), disk);
  const auto files = [](const Disk& each) {
    Tree tree = tree_of(each);
    tree.erase(kRun + "/.lock");  // is also shortened
    return tree;
  };
  REQUIRE(same(files(disk.now()), files(RecordedDisk(folder.path()).now())));
  return {disk.before(), disk.calls()};
}

std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_bytes(entry.path().string());
  }
  return files;
}

}  // namespace maki::tests
