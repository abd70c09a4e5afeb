// Commands that write files, run in a folder of their own with one of their system calls failing, and what must hold
// afterwards.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/small_run.h"
#include "tests/durability/supervisor.h"

namespace maki::tests {

/// The bytes of the files of a folder, by their paths in it; of a metrics.jsonl, its whole lines without what a clock
/// has measured.
using Files = std::map<std::string, std::string>;

/// What a command finds where it writes.
enum class Place : std::uint8_t {
  free,
  replaced,  ///< files that --force allows it to replace
  occupied,  ///< the same, without --force: it must refuse
  input      ///< with --force, a file that it reads: it must refuse
};

struct WatchedCommand {
  std::string name;
  Arguments arguments;
  std::string out;               ///< what it makes; empty: it continues a run
  std::string option = "--out";  ///< names it
  Place place = Place::free;

  bool must_refuse() const { return place == Place::occupied || place == Place::input; }
};
/// The verbs that train.
std::vector<WatchedCommand> training_commands();
/// The other verbs, at each place.
std::vector<WatchedCommand> converting_commands();

/// What a command does if nothing fails.
struct Course {
  Files before, after;
  std::map<std::string, std::set<std::string>> versions;  ///< what each file contains at any time
  std::set<std::string> removed;                          ///< files that are missing at some time after they were there
  std::vector<SystemCall> calls;
};
/// Requires that the command succeeds, or refuses if it must.
Course course_of(const WatchedCommand& command);

/// Runs the command in a fresh folder, with a fault, and returns what is wrong then; empty: nothing. What a user then
/// finds is added to `found`; where it is new, the command is repeated or the run resumed, which must end with what
/// the command makes if nothing fails.
std::string broken_by(const CallFault& fault, const WatchedCommand& command, const Course& course,
                      std::set<Files>& found);

}  // namespace maki::tests
