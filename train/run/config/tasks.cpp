#include "train/run/config/tasks.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

// Of those that need the same ability, the first is the usual one.
constexpr TaskRule kTaskRules[] = {
    {"next_token", "predict the next token of a text", Ability::writes_text, 10, "generate text", "generate", 0,
     /*predicts_next=*/true},
    {"translate", "write the target of each source in parallel text", Ability::translates, 60, "translate lines",
     "generate", 1},
    {"masked", "predict hidden tokens of a text from those around them", Ability::reads_text, 40, "fill masks", "fill",
     1, false, false, /*fills_masks=*/true},
    {"classify", "give each text its label", Ability::reads_text, 30, "label texts", "classify", 0, false,
     /*labels=*/true},
};
constexpr Table kTasks("task", kTaskRules);

}  // namespace

std::vector<std::string> task_names() { return kTasks.names(); }

std::vector<std::string> tasks_where(const std::function<bool(const TaskRule&)>& holds) {
  std::vector<std::string> names;
  for (const TaskRule& rule : kTaskRules) {
    if (holds(rule)) names.emplace_back(rule.name);
  }
  return names;
}

const TaskRule& task_rule(const std::string& name) { return kTasks.row(name); }

const TaskRule& task_rule(const Config& config) {
  const std::vector<std::string> tasks = tasks_of_model(config.model);
  const std::string& name = config.open.contains("task") ? tasks.front() : config.task;
  if (std::ranges::find(tasks, name) != tasks.end()) return task_rule(name);
  std::vector<std::string> others = model_names();
  std::erase_if(others, [&name](const std::string& model) {
    const std::vector<std::string> its = tasks_of_model(model);
    return std::ranges::find(its, name) == its.end();
  });
  fail("task: must be {} for a model of kind {}; got {}{}", fmt::join(tasks, " or "), config.model,
       truncate_for_message(name),
       others.empty() ? "" : fmt::format("; use `model` {} for it", fmt::join(others, " or ")));
}

bool has_source_vocabulary(const Config& config) {
  return task_rule(config).reads_source() && !config.share_vocabulary;
}

VocabSizes random_vocab_sizes(const Config& config, std::int64_t size) {
  constexpr std::int64_t kRandomLabels = 3;  // more than the two of the simplest case
  return {size, has_source_vocabulary(config) ? size : 0, task_rule(config).labels ? kRandomLabels : 0};
}

}  // namespace maki
