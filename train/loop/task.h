// A task: the only place where data meets a model. Training, evaluation, benchmarks and the gradient check have no
// other source of batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "autograd/core/stop_request.h"
#include "nn/model.h"
#include "nn/scope.h"
#include "train/loop/eval_report.h"
#include "train/run/checkpoint.h"
#include "train/run/listener.h"

namespace maki {

class LanguageModelTask;

/// The part of the data that a batch comes from.
enum class Part : std::uint8_t { train, val };

/// How many answers are right, and how many there are.
struct Answers {
  std::int64_t right = 0, all = 0;
};

/// Thread safety: all functions are const and may be called on several threads at once.
class Task {
 public:
  virtual ~Task() = default;

  virtual std::unique_ptr<Model> make_model(const Scope& scope) const = 0;
  virtual VocabSizes vocab_sizes() const = 0;  ///< of that model
  /// This task, if each token of a text is predicted from those before it; else null.
  virtual const LanguageModelTask* as_language_model() const { return nullptr; }

  /// Micro-batch `micro` of step `step`: a function of the seed and these two numbers, and of nothing else. If `batch`
  /// already has tensors, they are overwritten or replaced. Requires: the task has training data.
  ///
  /// If the model carries a state (Model::make_carried()), each row continues the same row of the same micro-batch of
  /// the step before, and has block_size tokens; likewise each row of an evaluation batch continues that of the batch
  /// before, and all of these have the same number of rows.
  virtual void fill(std::int64_t step, std::int64_t micro, Batch& batch) const = 0;
  /// Number of targets in all micro-batches of a step, by which its summed loss is divided.
  virtual std::int64_t targets(std::int64_t step) const = 0;
  /// The tokens of step `step` that speed and progress are measured in: those that are read, or for a task that reads a
  /// source those that are to be written.
  virtual std::int64_t tokens_in_step(std::int64_t step) const = 0;
  /// The tokens of all steps before `step` together, as tokens_in_step() counts them. The default is for steps of equal
  /// size.
  virtual std::int64_t tokens_before(std::int64_t step) const { return step * tokens_in_step(0); }
  /// How many times the training data have been read after this number of steps.
  virtual double epochs(std::int64_t steps) const = 0;

  /// Number of batches that together cover every target of a part once; 0 for an empty part.
  virtual std::int64_t eval_batches(Part part) const = 0;
  /// Requires: 0 <= i < eval_batches(part).
  virtual void fill_eval(Part part, std::int64_t i, Batch& batch) const = 0;

  /// What a checkpoint records about the data; the step and the configuration are left unset.
  virtual CheckpointState data_state() const = 0;
  /// Describes the data, and the size of a step, to a user: "1,115,394 characters; …", "64 pairs".
  virtual std::string describe_data() const = 0;
  virtual std::string describe_step() const = 0;
  /// The lowest possible loss on the validation data, in nats per token, if it is known.
  virtual std::optional<double> best_possible_loss() const { return std::nullopt; }
  /// What an n-gram count of the training data reaches on the validation data. nullopt for tasks for which it says
  /// nothing, without validation data, and if `stop` is requested.
  virtual std::optional<CountingReport> counting(const StopRequest& /*stop*/) const { return std::nullopt; }
  /// Whether the answers of a model are right or wrong.
  virtual bool has_answers() const { return false; }
  /// The answers of a model to the i-th batch of the validation data. Requires: has_answers().
  virtual Answers answers(const Model&, std::int64_t /*i*/) const { return {}; }
  /// What `maki eval` reports about a model, whose mean loss over the validation data is given, which the caller has
  /// found to be finite. `options` are those of the verb. Throws BadLogitsError if the model has to write and cannot.
  /// Once `stop` is requested, the measurement ends early: what it has not read is missing.
  virtual std::vector<ReportLine> measure(const Model& model, const SampledLoss& loss, const MeasureOptions& options,
                                          const StopRequest& stop) const = 0;
  /// A short text that shows a user what the model has learned: a function of (weights, seed, step). nullopt for tasks
  /// that have none, and if `stop` is requested. Throws BadLogitsError.
  virtual std::optional<std::string> sample(const Model&, std::uint64_t /*seed*/, std::int64_t /*step*/,
                                            const StopRequest& /*stop*/) const {
    return std::nullopt;
  }
};

}  // namespace maki
