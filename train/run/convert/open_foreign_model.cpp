#include "data/io/error.h"
#include "data/io/file.h"
#include "train/run/convert/foreign_model.h"

namespace maki {

ForeignModel open_foreign_model(const std::string& path) {
  if (is_directory(path)) return open_hugging_face(path);
  check<CheckpointError>(!path.ends_with(".safetensors"),
                         "{}: does not say which model its tensors belong to; name the directory with its config.json",
                         path);
  return open_llm_c(path);
}

}  // namespace maki
