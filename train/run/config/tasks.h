// The names of the tasks, and what the format of a checkpoint has to know about each: the values of the training field
// `task`. What a task does is in train/loop/tasks.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/run/config/config.h"

namespace maki {

/// What a kind of model is able to do. A task needs one of these of its model.
enum class Ability : std::uint8_t {
  writes_text,  ///< continues a text
  translates,   ///< reads one sequence, the source, and writes another
  reads_text    ///< sees both sides of every token, and writes nothing
};

/// What the rest of the program has to know about a task: a row of the table in tasks.cpp.
struct TaskRule {
  const char *name, *help;
  Ability needs;
  double most_passes;          ///< over the training data that help a run that is planned for a time
  const char *purpose, *verb;  ///< what a trained model is for, and the verb of the command line that does it
  /// Ids of the model that follow those of its tokenizer, such as the end of a sentence.
  std::int64_t special_ids = 0;
  bool predicts_next = false;  ///< whether each token of a text is predicted from those before it, as counting does
  bool labels = false;         ///< whether the model gives each text one of a set of labels, which a checkpoint stores
  bool fills_masks = false;    ///< whether the model predicts hidden tokens

  bool reads_source() const { return needs == Ability::translates; }
  bool writes() const { return needs != Ability::reads_text; }
  /// Whether the data are any text, and not lines with columns.
  bool plain_text() const { return !reads_source() && !labels; }
};

std::vector<std::string> task_names();
/// Of the tasks of which `holds` is true.
std::vector<std::string> tasks_where(const std::function<bool(const TaskRule&)>& holds);
/// Throws Error, which suggests the nearest name, if there is no such task.
const TaskRule& task_rule(const std::string& name);
/// The rule of the configuration's task: `task`, or the first task of the model if it is open. Throws Error if the
/// model does not have this task.
const TaskRule& task_rule(const Config& config);

/// Whether the model has a vocabulary of its own for what it reads, besides that for what it writes.
bool has_source_vocabulary(const Config& config);

/// The sizes of a model's vocabularies, including the special ids of its task, and the number of its classes.
struct VocabSizes {
  VocabSizes(std::int64_t written, std::int64_t read = 0, std::int64_t labels = 0)
      : target(written), source(read), classes(labels) {}
  std::int64_t target;
  std::int64_t source;   ///< 0 unless has_source_vocabulary()
  std::int64_t classes;  ///< 0 unless the task has labels
};
/// The sizes for a model of random data: `size` for every vocabulary, special ids included, and three classes if the
/// task has labels.
VocabSizes random_vocab_sizes(const Config& config, std::int64_t size);

}  // namespace maki
