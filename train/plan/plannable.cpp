// For which configurations there are plans.
#include "autograd/core/check.h"
#include "train/plan/plan.h"

namespace maki {

bool is_plannable(const Config& config) {
  return (config.model == "gpt" || config.model == "linear") && config.task == "next_token" && config.freeze.empty();
}

void require_plannable(const Config& config) {
  check(config.freeze.empty(), "minutes: cannot plan a run of which parameters are frozen; set --max-steps instead");
  check(is_plannable(config),
        "minutes: there are plans for the models gpt and linear and the task next_token; got {} and {}; set "
        "--max-steps instead",
        config.model, config.task);
}

}  // namespace maki
