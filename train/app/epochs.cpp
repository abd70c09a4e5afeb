#include "train/app/epochs.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "data/io/number.h"

namespace maki {

void check_epochs(const TrainOptions& options) {
  if (options.epochs.empty()) return;
  const std::vector<std::string> given = options.flags.given();
  const bool steps = std::ranges::find(given, "--max-steps") != given.end();
  check(!steps && options.minutes.empty(), "epochs: sets the length of the run; got {} as well; omit one of them",
        steps ? "--max-steps" : "--minutes");
}

std::int64_t steps_of_epochs(const std::string& epochs, const Task& task) {
  const double passes = parse_number("epochs", epochs, 0, kMaxCount);
  check(passes > 0, "epochs: must be above 0; got {}", epochs);
  // Task::epochs() is proportional to its argument; without the subtraction, a rounding error could add a step.
  const double steps = std::ceil(passes / task.epochs(1) - 1e-9);
  check(steps <= kMaxCount, "epochs: are at most {} steps; got {}, which are {:.0f}; use fewer", kMaxCount, epochs,
        steps);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

}  // namespace maki
