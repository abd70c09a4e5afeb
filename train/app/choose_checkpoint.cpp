#include "train/app/choose_checkpoint.h"

#include <vector>

#include "train/app/progress.h"
#include "train/run/run_directory.h"

namespace maki {

std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice) {
  std::vector<std::string> notes;
  std::string path = find_checkpoint(run_or_file, choice, notes);
  for (const std::string& note : notes) to_stderr("{}\n", note);
  return path;
}

}  // namespace maki
