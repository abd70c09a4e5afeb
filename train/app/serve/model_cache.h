// The models that a server has loaded. Those that were not used for longest are forgotten.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <sys/stat.h>

#include "train/app/serve/served_runs.h"
#include "train/loop/without_dropout.h"
#include "train/run/loaded_model.h"

namespace maki {

struct ServedModel {
  explicit ServedModel(const std::string& path) : loaded(path) {}

  /// The model, if it continues a text. Throws HttpError.
  const Generator& generator() const;
  /// The model without dropout, for passes that are recorded.
  const Model& without_dropout() const;
  /// The memory of the state of a text, in bytes.
  std::int64_t state_bytes() const;

  LoadedModel loaded;

 private:
  mutable std::unique_ptr<ModelWithoutDropout> copy_;  // if the model has dropout, once it was needed
};

class ModelCache {
 public:
  /// Requires: the runs outlive the cache.
  explicit ModelCache(const ServedRuns& runs) : runs_(runs) {}

  /// The model NAME or NAME@STEP. Which checkpoint that is, and whether it is still the same file, is looked up each
  /// time. Throws HttpError.
  std::shared_ptr<const ServedModel> get(const std::string& name);

 private:
  struct Entry {
    std::string path;
    struct stat file;
    std::shared_ptr<const ServedModel> model;
  };
  const ServedRuns& runs_;
  std::list<Entry> entries_;  // the one that was used last is the first
};

}  // namespace maki
