// What maki writes to disk: runs, and the files of commands, as scenarios for power failures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/io/output.h"
#include "tests/durability/recorded_disk.h"

namespace maki::tests {

/// Something that is done below a folder.
struct Scenario {
  std::string name;
  std::function<void(const std::string& folder)> prepare;  ///< what was there before; may be empty
  std::function<void(const std::string& folder, RecordedDisk& disk)> act;
  /// Continues after a power failure and returns what is wrong; empty: nothing.
  std::function<std::string(const std::string& folder)> recover;
  /// What must hold of the files after any power failure, besides Promises; returns what does not.
  std::function<std::string(const Tree& left)> also;
  std::string appended = {};  ///< a file of lines (Promises)
};
/// Runs that begin, are resumed and return to an earlier checkpoint; and every command, where nothing is and where it
/// replaces something.
std::vector<Scenario> power_scenarios();

/// A command that writes to `out`, a name below the folder.
struct WritingCommand {
  std::string name, out;
  std::function<void(const OutputPath& out, FileSystem& fs)> write;
};
std::vector<WritingCommand> writing_commands();

/// What a scenario did.
struct Trace {
  Disk before;
  std::vector<DiskCall> calls;
};
/// Requires that the scenario writes nothing past the file system that records it.
Trace record(const Scenario& scenario);

/// The bytes of all files below a folder, by their paths in it.
std::map<std::string, std::string> files_below(const std::string& folder);

}  // namespace maki::tests
