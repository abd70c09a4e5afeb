#include "train/run/stored_config.h"

#include <filesystem>

#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {

void apply_stored_config(Config& config, const RunDirectory& run) {
  const std::string file = run.config_file();
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  check<CheckpointError>(unknown || size <= kMaxConfigBytes,
                         "{}: must have at most {} bytes; got {}; shorten its `corpus` list to the directory that "
                         "holds the files",
                         file, kMaxConfigBytes, size);
  apply_toml(config, read_file_limited(posix_file_system(), file, kMaxConfigBytes), file);
}

}  // namespace maki
