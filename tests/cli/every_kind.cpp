#include "tests/cli/every_kind.h"

#include <fmt/format.h>

#include "train/run/config/models.h"

namespace maki::tests {
namespace {

// 60 lines of two columns: three to six letters, and either the same backwards or a label.
std::string two_columns(bool labels) {
  std::string text;
  for (unsigned i = 0, state = 7; i < 60; ++i) {
    std::string word;
    for (unsigned k = 0; k < 3 + i % 4; ++k) {
      state = state * 1103515245u + 12345u;
      word += static_cast<char>('a' + (state >> 16) % 5);
    }
    const std::string answer = labels ? (word < "c" ? "early" : "late") : std::string(word.rbegin(), word.rend());
    text += fmt::format("{}\t{}\n", word, answer);
  }
  return text;
}

}  // namespace

std::vector<SmallKind> every_kind() {
  std::vector<SmallKind> kinds;
  for (const std::string& model : model_names()) {
    for (const std::string& task : tasks_of_model(model)) {
      const TaskRule& rule = task_rule(task);
      const bool columns = !rule.plain_text();
      kinds.push_back({model, task, columns ? two_columns(rule.labels) : small_text(),
                       kSmall + Arguments{"--model", model, "--task", task}});
    }
  }
  return kinds;
}

}  // namespace maki::tests
