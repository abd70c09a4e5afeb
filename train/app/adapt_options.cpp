#include "train/app/adapt_options.h"

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "train/app/flags.h"

namespace maki {

void AdaptFlags::check_given(const char* verb) const {
  check(adapt || needs_adapt.empty(), "{}: {} applies only with --adapt; add it", verb, needs_adapt);
}

void add_adapt_options(const Command& command, const std::string& help, AdaptFlags& flags) {
  command.add_flag("--adapt", flags.adapt, help);
  command.add_number("--adapt-lr", flags.options.learning_rate, 0, 1, "RATE", "learning rate while reading");
  command.add_number("--adapt-window", flags.options.window, 0, kMaxCount,
                     "number of tokens that are predicted and then learned at once; 0: half of the context");
  command.add_number("--adapt-decay", flags.options.decay, 0, kMaxAdaptDecay, "FRACTION",
                     "fraction by which the weights return to the trained ones after each window");
}

void note_adapt_options(const Command& command, const std::vector<std::string>& more, AdaptFlags& flags) {
  std::vector<std::string> names = {"--adapt-lr", "--adapt-window", "--adapt-decay"};
  names.insert(names.end(), more.begin(), more.end());
  for (const std::string& name : names) {
    if (command.given(name)) flags.needs_adapt = name;
  }
}

}  // namespace maki
