#include "train/run/stored_config.h"

#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {

void apply_stored_config(Config& config, const RunDirectory& run) {
  const std::string file = run.config_file();
  apply_toml(config, read_file_limited(posix_file_system(), file, kMaxConfigBytes), file);
}

}  // namespace maki
