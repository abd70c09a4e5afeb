// What a command that writes files promises, whenever the power fails: every name that its user knows is that of
// nothing, of the whole old file or of a whole new one; and of what was done at an acknowledgement, nothing is lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/durability/recorded_disk.h"

namespace maki::tests {

/// Whether a file may contain anything: it is under construction, or the lock of a run.
bool is_free(const std::string& path);
/// The files of a tree that a user knows: those that are not free.
Tree visible(const Tree& tree);

class Promises {
 public:
  /// `appended`: the path of a file that grows in place, of which no line may be lost that was there at an
  /// acknowledgement; empty: there is none.
  Promises(const Disk& before, const std::vector<DiskCall>& calls, const std::string& appended);

  /// What is wrong with what a power failure after that many calls left; empty: nothing.
  std::string broken_by(const Tree& left, std::size_t calls) const;

 private:
  // What a name has held since a number of calls.
  struct Version {
    std::size_t since;
    Tree tree;
    bool may_return = false;  // it was deleted, which need not last
  };
  void add_versions(const Disk& disk, std::size_t calls, const DiskCall* call);
  std::string broken_version(const std::string& path, const Tree& left, std::size_t calls) const;
  std::string broken_lines(const Tree& left, std::size_t calls) const;
  std::size_t acknowledged_before(std::size_t calls) const;

  std::string appended_;
  std::map<std::string, std::vector<Version>> versions_;  // by path, of what was renamed to it or there before
  std::vector<std::size_t> acknowledged_;
  // The bytes of the appended file at acknowledgements, and when it was replaced.
  std::vector<std::pair<std::size_t, std::string>> lines_;
};

}  // namespace maki::tests
