// The runs that a server knows, by their names. What comes from the network is only compared with these names: none of
// it becomes part of a path. Nothing of a run is locked or changed.
//
// Thread safety: const functions may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "train/run/run_directory.h"

namespace maki {

class ServedRuns {
 public:
  /// Of a run directory, or of a directory that contains some. Throws Error if it contains none.
  explicit ServedRuns(const std::string& path);

  /// The run of this name. Throws HttpError, which begins with the name of the field of the request.
  RunDirectory run(std::string_view name, const char* field) const;
  /// The checkpoint of a model NAME, which is its best one, else the last, or NAME@STEP. Throws HttpError if there is
  /// none, CheckpointError if it cannot be looked up. Requires: `notes` outlives what is returned.
  ChosenCheckpoint checkpoint(std::string_view model, std::vector<std::string>& notes) const;

  std::string runs_json() const;    ///< GET /api/runs
  std::string models_json() const;  ///< GET /v1/models

 private:
  using Paths = std::map<std::string, std::string, std::less<>>;  // by name
  Paths paths() const;

  std::string path_;
  std::optional<std::string> single_;  // the name of the run that was given, if it was one
};

}  // namespace maki
