// Checkpoints that training can resume from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/run/checkpoint.h"
#include "train/run/run_directory.h"
#include "train/run/trainable_model.h"

namespace maki {

/// A checkpoint that training can resume from: every byte passed its checksum; configuration, tokenizer, tensors,
/// moments and memory are consistent; and all numbers are finite. The file stays open, so what is loaded from it later
/// comes from the file that was verified, whatever its name points to by then.
///
/// The constructors read the file once, and its small sections (all but the numbers) once more before. They allocate
/// no memory for the model. They throw CorruptFile if training cannot resume, and CheckpointError if the file cannot be
/// read, so that it is unknown whether it is intact.
class VerifiedCheckpoint {
 public:
  /// Of the model that the configuration in the file describes.
  explicit VerifiedCheckpoint(const std::string& path, FileSystem& fs = posix_file_system());
  /// Of a checkpoint at `path` in a run, whose step must also be the one in the file name.
  VerifiedCheckpoint(const RunDirectory& run, const std::string& path);
  /// Of a model that exists already, such as one of a program's own.
  VerifiedCheckpoint(const std::string& path, const TrainableModel& model, FileSystem& fs = posix_file_system());

  const ContainerReader& file() const { return file_; }
  const CheckpointState& state() const { return state_; }

 private:
  void verify(const TrainableModel& model) const;

  ContainerReader file_;
  CheckpointState state_;
};

/// The newest checkpoint of a run that is intact, whatever `last` says. Messages about damaged ones, and one if `last`
/// names a missing file, are appended to `notes`. Throws CheckpointError if there is no intact one, and if one cannot
/// be read: it may be intact, and continuing from an older one would overwrite it.
VerifiedCheckpoint newest_intact(const RunDirectory& run, std::vector<std::string>& notes);

struct Verdict {
  std::string path, fault;  ///< the checkpoint, and why training cannot resume from it (empty: it can)
};

/// The configuration with which a run resumes from the checkpoint if nothing else is said: training fields are those of
/// the checkpoint, the others and the phases those of config.toml, if there is one. Throws Error if that has another
/// training field, or cannot be read.
Config recorded_config(const RunDirectory& run, const CheckpointState& state);

/// The verdict of a function that throws Error if training cannot resume from the checkpoint at `path`.
Verdict verdict_on(const std::string& path, const std::function<void()>& verify);

/// Verdicts on all checkpoints of a run and its config.toml, in ascending order of their steps. The run may be training
/// meanwhile: one that it deletes before it is looked at has no verdict. Empty if there are none. Throws
/// CheckpointError if the directory cannot be listed.
std::vector<Verdict> verify_run(const RunDirectory& run);

/// read_state(), with CorruptFile also unless the sections and tensors of the file are those of the model and optimizer
/// that the configuration describes. Neither reads the numbers nor allocates memory for the model.
CheckpointState read_checked_state(const ContainerReader& file);

}  // namespace maki
