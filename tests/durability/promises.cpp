#include "tests/durability/promises.h"

#include <algorithm>
#include <iterator>

namespace maki::tests {
namespace {

// The path of a directory; empty for the root, with a slash at the end for the others.
std::string path_of(const Disk& disk, int directory, int from = 0, const std::string& path = "") {
  if (from == directory) return path;
  for (const auto& [name, entry] : disk[static_cast<std::size_t>(from)].entries) {
    if (!disk[static_cast<std::size_t>(entry)].is_directory) continue;
    const std::string below = path_of(disk, directory, entry, path + name + "/");
    if (!below.empty()) return below;
  }
  return "";
}

}  // namespace

bool is_free(const std::string& path) {
  return path.ends_with(".tmp") || path.find(".tmp/") != std::string::npos || path.ends_with("/.lock");
}

Tree visible(const Tree& tree) {
  Tree part;
  std::ranges::copy_if(tree, std::inserter(part, part.end()),
                       [](const auto& each) { return !each.first.ends_with('/') && !is_free(each.first); });
  return part;
}

Promises::Promises(const Disk& before, const std::vector<DiskCall>& calls, const std::string& appended)
    : appended_(appended) {
  Disk disk = before;
  for (const auto& [path, bytes] : tree_of(disk)) {
    if (!path.ends_with('/') && !is_free(path) && path != appended) versions_[path];
  }
  add_versions(disk, 0, nullptr);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const DiskCall& call = calls[i];
    const Tree last = tree_of(disk);
    carry_out(call, disk);
    if (call.kind == DiskCall::Kind::acknowledge) acknowledged_.push_back(i + 1);
    bool replaced = call.kind == DiskCall::Kind::acknowledge;
    if (call.kind == DiskCall::Kind::bind) {
      for (const Binding& binding : call.bindings) {
        if (binding.file < 0 || call.change != DiskCall::Change::moved) continue;
        const std::string path = path_of(disk, binding.directory) + binding.name;
        if (path == appended_) {
          replaced = true;
        } else if (!is_free(path) && versions_.try_emplace(path).second) {
          versions_[path].push_back({0, subtree(last, path)});
        }
      }
      add_versions(disk, i + 1, &call);
    }
    const Tree tree = tree_of(disk);
    const auto file = tree.find(appended_);
    // A file that is empty when it gets the name has not taken over the lines that were there: they would be lost.
    if (replaced && file != tree.end() && (call.kind == DiskCall::Kind::acknowledge || !file->second->empty()))
      lines_.emplace_back(i + 1, *file->second);
  }
}

void Promises::add_versions(const Disk& disk, std::size_t calls, const DiskCall* call) {
  const Tree tree = tree_of(disk);
  for (auto& [path, versions] : versions_) {
    Tree part = subtree(tree, path);
    if (!versions.empty() && same(versions.back().tree, part)) continue;
    const bool removed = part.empty() && call != nullptr && call->change == DiskCall::Change::removed;
    versions.push_back({calls, std::move(part), removed});
  }
}

std::size_t Promises::acknowledged_before(std::size_t calls) const {
  std::size_t newest = 0;
  for (const std::size_t each : acknowledged_) {
    if (each <= calls) newest = each;
  }
  return newest;
}

std::string Promises::broken_version(const std::string& path, const Tree& left, std::size_t calls) const {
  const std::vector<Version>& versions = versions_.at(path);
  const Tree part = subtree(left, path);
  const std::size_t acknowledged = acknowledged_before(calls);
  std::size_t first = 0;
  for (std::size_t i = 1; i < versions.size(); ++i) {
    if (versions[i].since <= acknowledged && !versions[i].may_return) first = i;
  }
  for (std::size_t i = first; i < versions.size(); ++i) {
    if (versions[i].since <= calls && same(versions[i].tree, part)) return "";
  }
  if (part.empty()) return path + ": is lost";
  const bool older = std::any_of(versions.begin(), versions.begin() + static_cast<std::ptrdiff_t>(first),
                                 [&](const Version& version) { return same(version.tree, part); });
  return path + (older ? ": what was done has been undone" : ": is not whole");
}

std::string Promises::broken_lines(const Tree& left, std::size_t calls) const {
  const std::size_t acknowledged = acknowledged_before(calls);
  const auto file = left.find(appended_);
  bool promised = false;
  for (const auto& [since, lines] : lines_) {
    if (acknowledged == 0 || since < acknowledged || since > calls) continue;
    promised = true;
    if (file != left.end() && file->second->starts_with(lines)) return "";
  }
  return promised ? appended_ + ": has lost lines" : "";
}

std::string Promises::broken_by(const Tree& left, std::size_t calls) const {
  for (const auto& [path, versions] : versions_) {
    if (std::string broken = broken_version(path, left, calls); !broken.empty()) return broken;
  }
  for (const auto& file : visible(left)) {
    const std::string& path = file.first;
    if (path == appended_) continue;
    const bool known = std::ranges::any_of(
        versions_, [&](const auto& each) { return path == each.first || path.starts_with(each.first + "/"); });
    if (!known) return path + ": has its name, but not by being renamed when it was whole";
  }
  return broken_lines(left, calls);
}

}  // namespace maki::tests
