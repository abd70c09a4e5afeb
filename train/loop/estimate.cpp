#include "train/loop/estimate.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

#include "train/loop/team/step_cost.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

// The number after `key` in a file with lines such as "MemAvailable:  123 kB"; without a key, the first word of the
// file. nullopt if it is missing or not a number.
std::optional<std::int64_t> number_in(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    if (!key.empty() && word != key) continue;
    if (!key.empty() && !(file >> word)) break;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;  // "max": no limit
    return number;
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *folder, *limit, *usage, *inactive;
};
constexpr GroupFiles kCgroupVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                     "total_inactive_file"};
constexpr GroupFiles kCgroupVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// Bytes left under the limits of a control group and of all its ancestors. Inactive page cache counts as free, because
// the kernel reclaims it when memory is short.
std::optional<std::int64_t> left_in_group(const std::string& root, const GroupFiles& files, std::string group) {
  std::optional<std::int64_t> least;
  for (;;) {
    const std::string folder = fmt::format("{}{}{}/", root, files.folder, group);
    const auto limit = number_in(folder + files.limit), usage = number_in(folder + files.usage);
    if (limit && usage) {
      const std::int64_t cached = number_in(folder + "memory.stat", files.inactive).value_or(0);
      const std::int64_t left = std::max<std::int64_t>(0, *limit - *usage + cached);
      least = std::min(left, least.value_or(left));
    }
    if (group.empty() || group == "/") return least;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

MemoryNeed memory_needed(const Config& c, const TrainableModel& trainable, std::int64_t ranks) {
  const ParameterStore& store = trainable.store;
  const std::int64_t size = size_of(store.dtype()), trained = store.trainable().size() * size;
  MemoryNeed need;
  need.parameters = store.numel();
  for (const auto& parameter : store.parameters())
    need.trained += parameter->trainable() ? parameter->shape().numel() : 0;
  need.values = store.range(ParamGroup::frozen).end * size;
  if (keeps_rounded_weights(c)) need.rounded_values = store.rounded_values_bytes();
  const StepCost step = step_cost(step_work(trainable, c.grad_accum), ranks);
  need.gradients = step.gradients * trained;
  need.buffers = step.buffer_bytes;
  for (const MomentLayout& moment : trainable.optimizer->moment_layouts()) {
    // Every rank updates tables, so each has their moments.
    const bool of_tables = moment.parts.front().parameter->group() == ParamGroup::rows;
    const std::int64_t bytes = moment.length * size, own = of_tables ? bytes : bytes / ranks;
    need.moments += own;
    need.collected += bytes - own;
  }
  need.activations = trainable.model->activation_bytes(c.batch_size, c.block_size);
  need.carried = 2 * size * trainable.carried.numel(trainable.carried.capacity());
  return need;
}

MemoryNeed memory_needed(const Config& config, const VocabSizes& vocab, std::int64_t ranks) {
  return memory_needed(config, TrainableModel(config, vocab), ranks);
}

std::optional<std::int64_t> available_memory(const std::string& root) {
  std::optional<std::int64_t> least = number_in(root + "/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // A line is "0::/path" in version 2, and "4:memory:/path", among others, in version 1.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const auto left = left_in_group(root, unified ? kCgroupVersion2 : kCgroupVersion1, line.substr(second + 1));
    if (left) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

std::string format_bytes(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", number / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.0f} MB", number / 1e6);
  return fmt::format("{:.0f} kB", number / 1e3);
}

}  // namespace maki
