#include "train/app/begun_run.h"

#include <fmt/format.h>

#include "train/app/progress.h"
#include "train/run/metrics.h"
#include "train/run/set_aside.h"

namespace maki {

void clear_up(const RunDirectory& run) {
  for (const std::string& note : run.remove_temporary_files()) say(note);
  if (const std::string folder = complete_return(run); !folder.empty())
    say(fmt::format("completed the return to an earlier checkpoint that was interrupted: later ones are in {}",
                    folder));
}

void write_config(const RunDirectory& run, const Config& config) {
  replace_file_atomically(run.file_system(), run.config_file(), {text_bytes(to_toml(config))});
}

bool is_finished(const Config& config, const RunDirectory& run, std::int64_t step) {
  if (step < config.max_steps) return false;
  if (step > config.max_steps) return true;
  const MetricsFile metrics(run.metrics_file(), step);
  return metrics.has_eval(step) && metrics.history().is_complete();
}

}  // namespace maki
