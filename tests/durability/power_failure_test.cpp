// A power failure after any call of what writes files, with everything that a disk may hold then (recorded_disk.h):
// what was promised is there (promises.h), and the command or the run can continue. Each call on which this depends is
// left out or made at another time once, which must be noticed.
//
// A sentence about a broken promise names its state: the number of calls, the combination of what became of those that
// were not durable, and the seed of torn sectors and garbage. The environment variable MAKI_SEED (default 1) gives
// others.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <set>

#include "data/io/error.h"
#include "data/io/hash.h"
#include "tests/durability/power_scenarios.h"
#include "tests/durability/promises.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::uint64_t first_seed() {
  const char* const given = std::getenv("MAKI_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

std::uint64_t hash_of(const Tree& tree) {
  std::string all;
  for (const auto& [path, bytes] : tree) all.append(path).append(1, '\0').append(*bytes).append(1, '\0');
  std::uint64_t first = 0;
  std::memcpy(&first, hash128(all).data(), sizeof(first));
  return first;
}

// A folder with the files of a tree.
struct Materialized : TemporaryFolder {
  explicit Materialized(const Tree& tree) {
    for (const auto& [path, bytes] : tree) {
      if (path.ends_with('/')) {
        std::filesystem::create_directories(*this / path);
      } else {
        write(path, *bytes);
      }
    }
  }
};

struct Outcome {
  std::size_t states = 0;  // different disks
  std::string broken;      // the first broken promise
};

struct Extent {
  /// Disks that are looked at after each number of calls from `first`: each combination once, or so many of them; and
  /// then again with other sectors and other garbage.
  std::uint64_t disks;
  /// The scenario is continued from the first of those disks on which a user finds the same, and from every n-th of
  /// all; 0: from none.
  std::size_t recover_every;
  std::size_t first = 0;
};

Outcome fail_power(const Trace& trace, const Scenario& scenario, const Extent& extent) {
  PowerFailures failures(trace.before, trace.calls);
  const Promises promises(trace.before, trace.calls, scenario.appended);
  std::set<std::uint64_t> seen, found;
  std::mt19937_64 random(first_seed());
  Outcome outcome;
  for (std::size_t calls = extent.first; calls <= failures.size(); ++calls) {
    const std::uint64_t all = failures.combinations(calls);
    const std::uint64_t disks = failures.is_drawn(calls) ? extent.disks : std::min(extent.disks, all);
    for (std::uint64_t i = 0; i < disks; ++i) {
      const std::uint64_t combination = all <= disks && i < all ? i : random() % all, seed = first_seed() + i / all;
      const Tree left = failures.after(calls, combination, seed);
      const bool is_new = seen.insert(hash_of(left)).second;
      outcome.states += is_new;
      outcome.broken = promises.broken_by(left, calls);
      if (outcome.broken.empty()) outcome.broken = scenario.also(left);
      if (outcome.broken.empty() && is_new && extent.recover_every > 0) {
        const bool differs = found.insert(hash_of(visible(left))).second;
        if (differs || outcome.states % extent.recover_every == 0)
          outcome.broken = scenario.recover(Materialized(left).path());
      }
      if (outcome.broken.empty()) continue;
      outcome.broken +=
          fmt::format(" ({}; after {} calls, the last of which is {}; combination {}, seed {})", scenario.name, calls,
                      calls == 0 ? "none" : trace.calls[calls - 1].words, combination, seed);
      return outcome;
    }
  }
  return outcome;
}

// What a user may find after each number of calls, if each that is not durable has taken place or not.
std::vector<std::set<std::uint64_t>> findings(const Trace& trace) {
  constexpr std::uint64_t kMost = 200;
  PowerFailures failures(trace.before, trace.calls);
  std::vector<std::set<std::uint64_t>> found(failures.size() + 1);
  for (std::size_t calls = 0; calls <= failures.size(); ++calls) {
    for (std::uint64_t i = 0; i < std::min(failures.combinations(calls), kMost); ++i)
      found[calls].insert(hash_of(visible(failures.after(calls, i, first_seed()))));
  }
  return found;
}

// The scenario without a call.
Trace without(const Trace& trace, std::size_t call) {
  Trace changed = trace;
  changed.calls.erase(changed.calls.begin() + static_cast<std::ptrdiff_t>(call));
  return changed;
}

// The scenario with a call at the place of another, and all between them one place earlier or later.
Trace moved(const Trace& trace, std::size_t from, std::size_t to) {
  Trace changed = trace;
  const auto at = [&](std::size_t i) { return changed.calls.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to) {
    std::rotate(at(from), at(from + 1), at(to + 1));
  } else {
    std::rotate(at(to), at(from), at(from + 1));
  }
  return changed;
}

// Looks at a scenario in which something is done wrong.
class Controls {
 public:
  explicit Controls(const Scenario& scenario)
      : scenario_(scenario), trace_(record(scenario)), findings_(findings(trace_)) {
    for (std::size_t i = 0; i < trace_.calls.size(); ++i) {
      if (is_sync(i)) noticed_ += look_at(without(trace_, i), i, i, "without ", i);
      const DiskCall& call = trace_.calls[i];
      if (call.kind != DiskCall::Kind::bind || call.change != DiskCall::Change::moved) continue;
      std::size_t before = i, after = i;
      while (before > 0 && !is_sync(before)) --before;
      while (after + 1 < trace_.calls.size() && !is_sync(after)) ++after;
      if (is_sync(before)) noticed_ += look_at(moved(trace_, i, before), before, i + 1, "too early: ", i);
      if (is_sync(after)) noticed_ += look_at(moved(trace_, i, after), i, after + 1, "too late: ", i);
      if (const auto write = first_write_before(i))
        in_place_ += look_at(moved(trace_, i, *write), *write, i + 1, "written in place: ", i);
    }
  }
  int noticed() const { return noticed_; }
  /// Of files that got their final names before their bytes; not counted by noticed().
  int in_place() const { return in_place_; }

 private:
  // The first write to the file that a call renames; nullopt: it was there before, or is a directory.
  std::optional<std::size_t> first_write_before(std::size_t rename) const {
    for (std::size_t i = 0; i < rename; ++i) {
      const DiskCall& call = trace_.calls[i];
      const auto names = [&](const Binding& binding) { return binding.file == call.file; };
      if (call.kind == DiskCall::Kind::write && std::ranges::any_of(trace_.calls[rename].bindings, names)) return i;
    }
    return std::nullopt;
  }
  bool is_sync(std::size_t call) const { return trace_.calls[call].kind == DiskCall::Kind::sync; }
  // Whether a user may find something that nobody could find before the change: while the calls from `begin` to `end`,
  // which have another order, are made, or after a number of calls from there on.
  bool has_consequences(const Trace& changed, std::size_t begin, std::size_t end) const {
    const auto now = findings(changed);
    const std::size_t missing = trace_.calls.size() - changed.calls.size();
    std::set<std::uint64_t> meanwhile;
    for (std::size_t calls = begin; calls <= end; ++calls)
      meanwhile.insert(findings_[calls].begin(), findings_[calls].end());
    for (std::size_t calls = begin; calls < now.size(); ++calls) {
      if (!std::ranges::includes(calls < end ? meanwhile : findings_[calls + missing], now[calls])) return true;
    }
    return false;
  }
  // Whether the change matters; requires that it is noticed then.
  bool look_at(const Trace& changed, std::size_t begin, std::size_t end, const std::string& what, std::size_t call) {
    if (!has_consequences(changed, begin, end)) return false;
    INFO(scenario_.name << ", " << what << trace_.calls[call].words << ", call " << call);
    REQUIRE_FALSE(fail_power(changed, scenario_, {.disks = 50, .recover_every = 0}).broken.empty());
    return true;
  }

  const Scenario& scenario_;
  Trace trace_;
  std::vector<std::set<std::uint64_t>> findings_;
  int noticed_ = 0, in_place_ = 0;
};

// A disk that stores other bytes than one of the writes has.
struct FailingDisk : FileSystem {
  int fails_at = -1, writes = 0;
  bool reads_memory = false;  // what is read is what should have been written, as if nobody had looked at the disk

  int fsync(int) override { return 0; }
  ssize_t write(int descriptor, const void* bytes, std::size_t size) override {
    return FileSystem::write(descriptor, stored(bytes, size), size);
  }
  ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) override {
    return FileSystem::pwrite(descriptor, stored(bytes, size), size, offset);
  }
  ssize_t read(int descriptor, void* bytes, std::size_t size) override {
    const ssize_t n = FileSystem::read(descriptor, bytes, size);
    const std::string_view got(static_cast<const char*>(bytes), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    const std::size_t at = got.find(stored_);
    if (reads_memory && !stored_.empty() && at != std::string_view::npos) static_cast<char*>(bytes)[at] ^= 1;
    return n;
  }

 private:
  const void* stored(const void* bytes, std::size_t size) {
    if (writes++ != fails_at) return bytes;
    stored_.assign(static_cast<const char*>(bytes), size);
    stored_[0] = static_cast<char>(stored_[0] ^ 1);
    return stored_.data();
  }
  std::string stored_;
};

// What a command writes to such a disk; nullopt if it says that it could not.
std::optional<std::map<std::string, std::string>> written(const WritingCommand& command, FailingDisk& disk) {
  const TemporaryFolder folder;
  try {
    command.write(folder / command.out, disk);
  } catch (const Error&) {
    return std::nullopt;
  }
  return files_below(folder.path());
}

}  // namespace

TEST_CASE("whenever the power fails, files are whole, what was done is there, and runs and commands can continue") {
  std::size_t states = 0;
  for (const Scenario& scenario : power_scenarios()) {
    const Outcome outcome = fail_power(record(scenario), scenario, {.disks = 1000, .recover_every = 50});
    INFO(outcome.broken);
    REQUIRE(outcome.broken.empty());
    states += outcome.states;
  }
  REQUIRE(states >= 20'000);
}

TEST_CASE("what was done is there after a power failure, also if a process was killed before that did the same") {
  for (const Scenario& scenario : power_scenarios()) {
    const std::vector<DiskCall> calls = record(scenario).calls;
    for (std::size_t killed = 0; killed < calls.size(); ++killed) {
      if (killed > 0 && calls[killed].words == calls[killed - 1].words) continue;  // writes of one file
      Scenario again = scenario;
      again.act = [&](const std::string& folder, RecordedDisk& disk) {
        disk.die_after(killed);
        try {
          scenario.act(folder, disk);
        } catch (const Crash&) {
        } catch (const Error&) {
        }
        disk.begin_process();
        scenario.act(folder, disk);
      };
      const Trace trace = record(again);
      const Outcome outcome =
          fail_power(trace, scenario, {.disks = 10, .recover_every = 0, .first = trace.calls.size()});
      INFO(outcome.broken << ", killed after " << killed << " calls");
      REQUIRE(outcome.broken.empty());
    }
  }
}

TEST_CASE("each fsync left out, and each rename before or after one or before the bytes, is noticed if it matters") {
  int noticed = 0, in_place = 0;
  for (const Scenario& scenario : power_scenarios()) {
    const Controls controls(scenario);
    noticed += controls.noticed();
    in_place += controls.in_place();
  }
  REQUIRE(noticed >= 200);
  REQUIRE(in_place >= 10);
}

TEST_CASE("what a failing disk has stored wrongly gets no final name, and without reading it back it would") {
  for (const WritingCommand& command : writing_commands()) {
    FailingDisk good;
    const auto expected = written(command, good);
    REQUIRE(expected);
    int unnoticed = 0;
    for (int at = 0; at < good.writes; ++at) {
      INFO(command.name << ", write " << at);
      FailingDisk disk, unread;
      disk.fails_at = unread.fails_at = at;
      const auto files = written(command, disk);
      REQUIRE((!files || files == expected));  // the wrong bytes may have been written over
      unread.reads_memory = true;
      unnoticed += written(command, unread) != expected;
    }
    REQUIRE(unnoticed > 0);
  }
}

TEST_CASE("a scenario makes the same calls each time, so that a state can be made again") {
  for (const Scenario& scenario : power_scenarios()) {
    const Trace one = record(scenario), other = record(scenario);
    REQUIRE(one.calls.size() == other.calls.size());
    for (std::size_t i = 0; i < one.calls.size(); ++i) {
      INFO(scenario.name << ", call " << i);
      REQUIRE(one.calls[i].words == other.calls[i].words);
      // Measurements contain times, and configurations the names of folders.
      if (scenario.appended.empty()) REQUIRE(one.calls[i].bytes.size() == other.calls[i].bytes.size());
    }
  }
}
