// Distillation (Hinton, Vinyals and Dean 2015, "Distilling the Knowledge in a Neural Network", at temperature 1): a run
// learns the probabilities that trained models, its teachers, give to the tokens of its text, besides the text itself.
// A target with index y then has the probabilities
//
//   (1 − w) · ((1 − ε) · onehot(y) + ε / V) + w · q
//
// where w is teacher_weight, ε label_smoothing, V the size of the vocabulary, and q the mean of what the teachers
// predict in this place, without dropout. Counts of the text in many contexts can be one of them
// (HeldOutExpectations).
#pragma once

#include <fmt/format.h>
#include <memory>
#include <string>
#include <typeinfo>

#include "data/io/error.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"

namespace maki {

/// What a run with these teachers records as taught_by: "0.5", the hash of the values of each, and "counts" if they
/// teach; empty without teachers. Throws what LoadedModel throws.
std::string taught_by(const Config& config);

/// Throws Error if taught_by, unless it is empty, names another weight, or other numbers of networks and of counts,
/// than the configuration: before anything is loaded or counted.
void require_same_teaching(const Config& config);

/// What read() returns, which reads a teacher: what it throws says so.
template <class Read>
auto reading_teacher(const Read& read) {
  try {
    return read();
  } catch (const CheckpointError& error) {
    throw CheckpointError(fmt::format("teacher: {}", error.what()));
  } catch (const Error& error) {
    if (typeid(error) != typeid(Error)) throw;
    throw Error(fmt::format("teacher: {}", error.what()));
  }
}

/// The task with the teachers of the configuration: batches that are trained on expect these probabilities. Throws what
/// LoadedModel throws, and Error if a teacher does not predict the next token, or remembers what it has read before its
/// window, has other tokens than the task, a shorter context or counts of other n-grams, if the text is too long to be
/// counted, or if taught_by is not that of the configuration. Counting takes 0.2 to 0.3 ms of CPU time per token.
/// Requires: it names teachers.
std::unique_ptr<Task> taught(const Config& config, std::unique_ptr<Task> task);

}  // namespace maki
