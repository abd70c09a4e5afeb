#include "train/app/serve/model_cache.h"

#include <algorithm>

#include "autograd/core/storage.h"
#include "data/io/file_system.h"
#include "train/app/serve/http.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

constexpr std::size_t kModelsInMemory = 3;

bool is_unchanged(const struct stat& a, const struct stat& b) {
  return is_same_file(a, b) && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

const Generator& ServedModel::generator() const {
  const TaskRule& rule = task_rule(loaded.state.config);
  const Generator* const generator = loaded.model->as_generator();
  if (generator == nullptr || rule.reads_source())
    throw HttpError(400, fmt::format("model: is a model of kind {} for the task {}, which does not continue a text",
                                     loaded.model->kind(), rule.name));
  return *generator;
}

const Model& ServedModel::without_dropout() const {
  const Config& config = loaded.state.config;
  if (config.dropout == 0 && config.ngram_dropout == 0) return *loaded.model;
  if (!copy_) copy_ = std::make_unique<ModelWithoutDropout>(loaded);
  return *copy_->model;
}

std::int64_t ServedModel::state_bytes() const {
  std::int64_t bytes = 0;
  const std::unique_ptr<State> state = generator().start(1);
  for (const auto& [name, values] : state->tensors()) {
    if (*values) bytes += values->numel() * size_of(values->dtype());
  }
  return bytes;
}

std::shared_ptr<const ServedModel> ModelCache::get(const std::string& name) {
  try {
    const std::string path = runs_.checkpoint(name);
    struct stat file = {};
    if (stat(path.c_str(), &file) != 0) throw HttpError(404, "model: the checkpoint does not exist any more");
    const auto known = std::ranges::find(entries_, path, &Entry::path);
    if (known != entries_.end() && is_unchanged(known->file, file)) {
      entries_.splice(entries_.begin(), entries_, known);
      return known->model;
    }
    if (known != entries_.end()) entries_.erase(known);
    if (entries_.size() >= kModelsInMemory) entries_.pop_back();
    entries_.push_front({path, file, std::make_shared<const ServedModel>(path)});
    return entries_.front().model;
  } catch (const HttpError&) {
    throw;
  } catch (const OutOfMemoryError& error) {
    throw HttpError(503, error.what());
  } catch (const Error& error) {
    throw HttpError(500, error.what());
  }
}

}  // namespace maki
