#if defined(__linux__)
#include "tests/durability/watched_command.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/durability/power_scenarios.h"
#include "tests/durability/promises.h"
#include "tests/metrics_lines.h"
#include "tests/train/imported.h"
#include "train/run/run_directory.h"

namespace maki::tests {
namespace {

const Arguments kTiny = {
    "--n-layer",      "1", "--n-head",       "1", "--n-embd",        "8", "--block-size",          "8",
    "--batch-size",   "1", "--threads",      "1", "--eval-interval", "1", "--checkpoint-interval", "1",
    "--log-interval", "1", "--eval-batches", "1", "--keep-last",     "1"};

// The folder in which every command runs: always the same, because configurations contain it.
const std::string& folder() {
  static const TemporaryFolder around;
  static const std::string path = around / "folder";
  return path;
}

Finished run_here(const Arguments& arguments, RunOptions options = {}) {
  options.working_directory = folder();
  options.environment = {"OMP_WAIT_POLICY=passive", "OMP_NUM_THREADS=1", "TMPDIR=" + folder()};
  return run_maki(arguments, options);
}

// What the commands find: a text, a model of Hugging Face, and runs.
const Files& inputs() {
  static const Files files = [] {
    std::filesystem::create_directories(folder() + "/hf");
    write_bytes(folder() + "/corpus", small_text().substr(0, 1500));
    for (const std::string name : {"config.json", "maki-tokenizer", "model.safetensors"})
      std::filesystem::copy(hugging_face_fixture("gpt2") + "/" + name, folder() + "/hf/" + name);
    std::filesystem::create_directories(folder() + "/texts/more");
    for (const std::string name : {"a.txt", "b.txt", "more/c.txt"})
      write_bytes(folder() + "/texts/" + name, small_text().substr(0, 500));
    require_ok(run_here({"import", "hf", "--out", "gpt2"}));
    const Arguments train = {"train", "corpus", "--no-counting"};
    require_ok(run_here(train + kTiny + Arguments{"--out", "run", "--max-steps", "2", "--keep-last", "3"}));
    require_ok(run_here(train + kTiny +
                        Arguments{"--out", "encoder", "--max-steps", "1", "--model", "encoder", "--task", "masked"}));
    return files_below(folder());
  }();
  return files;
}

bool is_appended(const std::string& path) { return path.ends_with("/metrics.jsonl"); }

Files files_here() {
  Files files = files_below(folder());
  for (auto& [path, bytes] : files) {
    if (is_appended(path)) bytes = measured(bytes);
    if (path.ends_with(".html") && bytes.ends_with("</html>\n")) bytes = "a whole page, which contains measured times";
  }
  return files;
}

// Those that a user knows.
Files known(const Files& files) {
  Files part;
  for (const auto& file : files) {
    if (!is_free(file.first)) part.insert(file);
  }
  return part;
}

Finished run_command(const WatchedCommand& command, bool force, const RunOptions& options = {}) {
  Arguments arguments = command.arguments;
  if (!command.out.empty()) arguments = arguments + Arguments{command.option, command.out};
  if (force) arguments.emplace_back("--force");
  return run_here(arguments, options);
}

// Makes these the only files of the folder. Those that are there already stay: making a file takes long where many were
// removed.
void make_folder_of(const Files& files) {
  std::filesystem::create_directories(folder());
  const auto is_wanted = [&](const std::filesystem::directory_entry& entry) {
    const std::string path = entry.path().lexically_relative(folder()).string();
    if (!entry.is_directory()) return files.contains(path);
    const auto first = files.lower_bound(path + "/");
    return first != files.end() && first->first.starts_with(path + "/");
  };
  std::vector<std::filesystem::path> unwanted;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
    if (!is_wanted(entry)) unwanted.push_back(entry.path());
  }
  for (const std::filesystem::path& path : unwanted) std::filesystem::remove_all(path);
  const Files now = files_below(folder());
  for (const auto& [path, bytes] : files) {
    const auto there = now.find(path);
    if (there != now.end() && there->second == bytes) continue;
    std::filesystem::create_directories(std::filesystem::path(folder() + "/" + path).parent_path());
    write_bytes(folder() + "/" + path, bytes);
  }
}

// Makes the folder as the command is to find it.
void prepare(const WatchedCommand& command) {
  Files files = inputs();
  if (command.place == Place::replaced || command.place == Place::occupied) {
    static std::map<std::string, std::vector<std::string>> outputs;  // of each command
    std::vector<std::string>& made = outputs[command.name];
    if (made.empty()) {
      make_folder_of(files);
      require_ok(run_command(command, /*force=*/false));
      for (const auto& file : files_below(folder())) {
        if (!files.contains(file.first)) made.push_back(file.first);
      }
    }
    for (const std::string& path : made) files[path] = "old " + path;
  }
  make_folder_of(files);
}

Finished run_watched(const WatchedCommand& command, Supervisor& supervisor) {
  RunOptions options;
  options.before_program = [&] {
    if (!supervisor.submit()) _exit(126);
  };
  options.meanwhile = [&](pid_t process) { supervisor.supervise(process); };
  return run_command(command, command.place == Place::replaced || command.place == Place::input, options);
}

std::string broken_file(const Course& course, const Files& now) {
  for (const auto& file : course.before) {
    if (!now.contains(file.first) && !course.removed.contains(file.first)) return file.first + ": is lost";
  }
  for (const auto& [path, bytes] : known(now)) {
    const auto versions = course.versions.find(path);
    if (versions == course.versions.end()) return path + ": is no file that the command makes";
    if (!versions->second.contains(bytes)) return path + ": is not whole";
  }
  return "";
}

bool removes(const SystemCall& call) { return call.name.starts_with("unlink") || call.name == "rmdir"; }

std::string broken_end(const Course& course, const Finished& finished, const Files& now, const CallFault& fault,
                       const SystemCall& call) {
  const auto and_said = [&](const std::string& what) { return what + ", and said: " + finished.err; };
  const bool explained = fault.kind == CallFault::Kind::error && contains(finished.err, std::strerror(fault.error));
  if (finished.exit_code == 0) {
    const bool complete = known(now) == known(course.after) || (removes(call) && explained);
    return complete ? "" : and_said("exit code 0, but it has not made what it was to make");
  }
  if (fault.kind == CallFault::Kind::one_byte) return and_said("failed because one byte was transferred");
  if (finished.exit_code < 2 || finished.exit_code > 4)
    return and_said(fmt::format("exit code {}", finished.exit_code));
  if (!explained) return and_said("did not say why it failed");
  for (const auto& file : now) {
    if (is_free(file.first) && !file.first.ends_with("/.lock") && !removes(call)) return file.first + ": is left over";
  }
  return "";
}

// Repeats the command, or resumes its run.
std::string broken_continuation(const WatchedCommand& command, const Course& course) {
  const bool begins = command.name == "train" && RunDirectory(folder() + "/" + command.out).checkpoints().empty();
  const bool resumes = command.name == "train" && !begins;
  const Finished finished = resumes ? run_here({"train", "--resume", command.out})
                                    : run_command(command, /*force=*/!command.out.empty() && !begins);
  if (finished.exit_code != 0) return "cannot be repeated: " + finished.err;
  const Files now = files_here();
  for (const auto& [path, bytes] : known(course.after)) {
    // A return to an earlier checkpoint that is repeated has another number, and a configuration says how a run began.
    if (is_appended(path) || path.ends_with("/config.toml") || contains(path, "/abandoned-")) continue;
    const auto file = now.find(path);
    if (file == now.end() || file->second != bytes) return path + ": is another one after the command was repeated";
  }
  return "";
}

}  // namespace

std::vector<WatchedCommand> training_commands() {
  return {{"train", Arguments{"train", "corpus", "--max-steps", "2", "--no-counting"} + kTiny, "new"},
          {"train --resume", {"train", "--resume", "run", "--max-steps", "4"}, ""},
          {"train --checkpoint", {"train", "--resume", "run", "--checkpoint", "1", "--max-steps", "3"}, ""},
          {"train", Arguments{"train", "corpus", "--max-steps", "2", "--no-counting", "--teacher", "@own:2"} + kTiny,
           "taught"}};
}

std::vector<WatchedCommand> converting_commands() {
  std::vector<WatchedCommand> list;
  for (const Place place : {Place::free, Place::replaced, Place::occupied}) {
    for (WatchedCommand command :
         {WatchedCommand{"tokenizer train", {"tokenizer", "train", "corpus", "--vocab-size", "260"}, "t.json"},
          {"prepare", {"prepare", "corpus"}, "a.tokens"},
          {"prepare a directory", {"prepare", "texts"}, "b.tokens"},
          {"prepare for nanoGPT", {"prepare", "corpus", "--format", "nanogpt"}, "tokens"},
          {"export to gguf", {"export", "gpt2", "--format", "gguf"}, "model.gguf"},
          {"export to llm.c", {"export", "gpt2", "--format", "llm.c"}, "model.bin"},
          {"export to safetensors", {"export", "gpt2", "--format", "safetensors"}, "model.safetensors"},
          {"export to hf", {"export", "gpt2", "--format", "hf"}, "folder/model"},
          {"export to maki", {"export", "gpt2", "--format", "maki"}, "copy"},
          {"import", {"import", "hf"}, "imported"},
          {"report", {"report", "run"}, "page.html"},
          {"attend", {"attend", "run", "--prompt", "the maki"}, "a.svg"},
          {"embed", {"embed", "encoder", "the maki"}, "a.npy", "--npy"}}) {
      command.place = place;
      list.push_back(command);
    }
  }
  for (WatchedCommand command : {WatchedCommand{"tokenizer train", {"tokenizer", "train", "corpus"}, "corpus"},
                                 {"prepare", {"prepare", "corpus"}, "./corpus"},
                                 {"export", {"export", "gpt2", "--format", "hf"}, "gpt2"},
                                 {"import", {"import", "hf"}, "hf"},
                                 {"report", {"report", "run"}, "run/config.toml"}}) {
    command.place = Place::input;
    list.push_back(command);
  }
  return list;
}

Course course_of(const WatchedCommand& command) {
  prepare(command);
  Course course;
  course.before = files_here();
  Files last = course.before;
  const auto look = [&] {
    Files now = files_here();
    for (const auto& [path, bytes] : now) course.versions[path].insert(bytes);
    for (const auto& file : last) {
      if (!now.contains(file.first)) course.removed.insert(file.first);
    }
    last = std::move(now);
  };
  Supervisor supervisor(folder(), {});
  supervisor.before_call = [&](const SystemCall&) { look(); };
  const Finished finished = run_watched(command, supervisor);
  INFO(command.name << ": " << finished.err);
  REQUIRE(finished.exit_code == (command.must_refuse() ? 2 : 0));
  look();
  course.after = last;
  course.calls = supervisor.calls();
  return course;
}

std::string broken_by(const CallFault& fault, const WatchedCommand& command, const Course& course,
                      std::set<Files>& found) {
  prepare(command);
  Supervisor supervisor(folder(), fault);
  const Finished finished = run_watched(command, supervisor);
  const Files now = files_here();
  if (supervisor.calls().size() <= fault.at) {  // `report` makes some calls only if it has the time
    return finished.exit_code == (command.must_refuse() ? 2 : 0) ? "" : "failed without a fault: " + finished.err;
  }
  if (std::string broken = broken_file(course, now); !broken.empty()) return broken;
  if (command.must_refuse()) return finished.exit_code == 0 || now != course.before ? "was not refused" : "";
  if (fault.kind == CallFault::Kind::killed) {
    if (finished.exit_code != 128 + SIGKILL) return "was not killed";
  } else {
    std::string broken = broken_end(course, finished, now, fault, supervisor.calls()[fault.at]);
    if (!broken.empty()) return broken;
  }
  return found.insert(known(now)).second ? broken_continuation(command, course) : "";
}

}  // namespace maki::tests
#endif
