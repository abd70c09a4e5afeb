// The models that a server has loaded. Those that were not used for longest are forgotten.
//
// Thread safety: none.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "train/app/serve/served_runs.h"
#include "train/run/loaded_model.h"

namespace maki {

struct ServedModel {
  explicit ServedModel(const std::string& path) : loaded(path) {}

  /// The model, if it continues a text. Throws Error.
  const Generator& generator() const;

  LoadedModel loaded;
};

class ModelCache {
 public:
  /// Requires: the runs outlive the cache.
  explicit ModelCache(const ServedRuns& runs) : runs_(runs) {}

  /// The model NAME or NAME@STEP. Which file that is, and whether it has changed, is looked up each time. Throws what
  /// ServedRuns::checkpoint() and LoadedModel throw.
  std::shared_ptr<const ServedModel> get(const std::string& name);

 private:
  const ServedRuns& runs_;
  // By what identifies a file; the one that was used last is the first.
  std::list<std::pair<std::string, std::shared_ptr<const ServedModel>>> models_;
};

}  // namespace maki
