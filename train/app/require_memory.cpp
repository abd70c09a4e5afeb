#include "train/app/require_memory.h"

#include <fmt/ranges.h>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "train/app/progress.h"

namespace maki {
namespace {

// The options that lower the largest part of the need.
std::string advice(const Config& config, const MemoryNeed& need) {
  if (2 * (need.activations + need.carried) > need.total()) {
    if (config.batch_size == 1) return fmt::format("lower --block-size (now {})", config.block_size);
    return fmt::format("lower --batch-size (now {}; a larger --grad-accum makes up for it) or --block-size (now {})",
                       config.batch_size, config.block_size);
  }
  return fmt::format("lower --n-embd (now {}) or --n-layer (now {}){}", config.n_embd, config.n_layer,
                     config.ngram_orders == "none" ? "" : fmt::format(", or --ngram-rows (now {})", config.ngram_rows));
}

}  // namespace

void add_memory_option(const Command& command, bool& force) {
  command.add_flag("--force", force, "begin even if the model seems to need more memory than is available");
}

std::string describe(const MemoryNeed& need) {
  const std::pair<const char*, std::int64_t> parts[] = {{"weights", need.values + need.rounded_values},
                                                        {"gradients", need.gradients},
                                                        {"optimizer moments", need.moments},
                                                        {"activations", need.activations},
                                                        {"memory of the model", need.carried}};
  std::vector<std::string> texts;
  for (const auto& [name, bytes] : parts) {
    if (bytes > 0) texts.push_back(fmt::format("{} {}", name, format_bytes(bytes)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void require_memory(const Config& config, const MemoryNeed& need, bool force) {
  const auto available = available_memory();
  if (!available || need.total() <= *available) return;
  const std::string sentence =
      fmt::format("memory: about {} of memory are needed ({}), but only {} are available; {}",
                  format_bytes(need.total()), describe(need), format_bytes(*available), advice(config, need));
  check(force, "{}, or try it with --force", sentence);
  to_stderr("warning: {}\n", sentence);
}

}  // namespace maki
