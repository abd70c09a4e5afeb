#include "train/app/output_options.h"

#include <filesystem>

#include "autograd/core/check.h"
#include "data/io/file.h"
#include "train/run/run_directory.h"

namespace maki {

void add_force(const Command& command, bool& force) {
  command.add_flag("--force", force, "replace an output that exists already, unless this command reads it");
}

void check_force(const char* option, const std::string& out, bool force) {
  check(!force || !out.empty(), "force: replaces the file of {0}; add {0}, or omit --force", option);
}

std::vector<std::string> inputs_of_run(const std::string& run_or_file) {
  if (!is_directory(run_or_file)) return {run_or_file};
  const RunDirectory run(run_or_file);
  return {run.config_file(), run.metrics_file(), run.checkpoints_directory()};
}

std::vector<std::string> inputs_of_tokenizer(const std::string& path) {
  std::vector<std::string> inputs = {path};
  for (const char* const name : {"vocab.json", "merges.txt", "encoder.json", "vocab.bpe"})
    inputs.push_back((std::filesystem::path(path).parent_path() / name).string());
  return inputs;
}

}  // namespace maki
