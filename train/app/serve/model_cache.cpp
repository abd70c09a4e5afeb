#include "train/app/serve/model_cache.h"

#include <algorithm>
#include <sys/stat.h>

namespace maki {

const Generator& ServedModel::generator() const {
  const TaskRule& rule = task_rule(loaded.state.config);
  check(rule.writes() && !rule.reads_source(),
        "model: is a model of kind {} for the task {}, which does not continue a text; choose another one",
        loaded.model->kind(), rule.name);
  return loaded.generator();
}

std::shared_ptr<const ServedModel> ModelCache::get(const std::string& name) {
  constexpr std::size_t kModelsInMemory = 3;
  const std::string path = runs_.checkpoint(name);
  struct stat file = {};
  stat(path.c_str(), &file);
  const std::string identity =
      fmt::format("{} {} {} {}.{}", path, file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  const auto known = std::ranges::find_if(models_, [&](const auto& entry) { return entry.first == identity; });
  if (known != models_.end()) {
    models_.splice(models_.begin(), models_, known);
  } else {
    if (models_.size() >= kModelsInMemory) models_.pop_back();
    models_.emplace_front(identity, std::make_shared<const ServedModel>(path));
  }
  return models_.front().second;
}

}  // namespace maki
