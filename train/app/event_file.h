// Event files, which TensorBoard reads: records of TensorFlow's protocol buffers `Event` and `Summary`
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto), written without that library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograd/parameter.h"
#include "data/io/descriptor.h"
#include "train/run/listener.h"

namespace maki {

/// Writes what a session reports: losses, learning rate, norm of the gradient and speed as scalars, samples as texts
/// and, at every evaluation, the values of each parameter as a histogram. Each session of a run has a file of its own
/// in the run directory, made with the first report. TensorBoard drops what earlier ones reported of later steps. A
/// number that is not finite is written as it is.
class EventFile final : public SessionListener {
 public:
  /// Requires: the store outlives the object, and is sealed.
  EventFile(std::string directory, const ParameterStore& store) : directory_(std::move(directory)), store_(store) {}

  /// Each throws CheckpointError if the file cannot be written.
  void on_counting(const CountingReport& report) override;
  void on_start(std::int64_t step, const RunHistory& history) override;
  void on_log(const StepReport& report, double tokens_per_second, double elapsed_seconds) override;
  void on_eval(const EvalReport& report, bool best) override;
  void on_sample(std::int64_t step, const std::string& text) override;
  void on_sync() override;

 private:
  void write_summary(std::int64_t step, const std::string& summary);

  std::string directory_;
  const ParameterStore& store_;
  std::int64_t first_step_ = 0;
  std::optional<Descriptor> file_;
};

/// Removes all event files of a directory, of a run that is taken back.
void remove_event_files(const std::string& directory);

}  // namespace maki
