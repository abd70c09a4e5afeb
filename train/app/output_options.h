// What the verbs that write a file or directory have in common.
#pragma once

#include <string>
#include <vector>

#include "train/app/command.h"

namespace maki {

/// Adds --force.
void add_force(const Command& command, bool& force);
/// Throws Error if --force was given without the option that names the output.
void check_force(const char* option, const std::string& out, bool force);
/// The files of a run directory, or the .maki file, as inputs of a command (OutputPath). Other files in the directory
/// of a run are none.
std::vector<std::string> inputs_of_run(const std::string& run_or_file);
/// The files that read_tokenizer() reads for this path.
std::vector<std::string> inputs_of_tokenizer(const std::string& path);

}  // namespace maki
