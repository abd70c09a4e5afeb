#include "train/cli/plan_run.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "train/cli/progress.h"
#include "train/config/configured_tokenizer.h"
#include "train/config/number.h"
#include "train/loop/estimate.h"

namespace maki {
namespace {

// The options that set the number of steps, one way or another.
constexpr const char* kStepOptions[] = {"--preset", "--config", "--max-steps", "--lr-decay-steps"};

std::optional<std::string> given_step_option(const ConfigFlags& flags) {
  const std::vector<std::string> given = flags.given();
  for (const char* option : kStepOptions) {
    if (std::ranges::find(given, option) != given.end()) return option;
  }
  return std::nullopt;
}

}  // namespace

bool leaves_steps_open(const ConfigFlags& flags) { return !given_step_option(flags); }

std::optional<double> given_minutes(const std::string& minutes, const ConfigFlags& flags) {
  if (minutes.empty()) return std::nullopt;
  const double value = parse_number("minutes", minutes, kMinMinutes, kMaxMinutes);
  if (const auto option = given_step_option(flags))
    fail("minutes: chooses the number of steps; got {} as well; omit one of them", *option);
  return value;
}

std::shared_ptr<const Tokenizer> fixed_tokenizer(const Config& config, const ConfigFlags& flags, const Corpus& corpus,
                                                 std::shared_ptr<const Tokenizer> given) {
  const std::vector<std::string> options = flags.given();
  if (given || std::ranges::find(options, "--tokenizer") == options.end()) return given;
  if (config.tokenizer == "char" || config.tokenizer == "byte") return nullptr;
  return make_tokenizer(config.tokenizer, corpus.text, tokenizer_options(config));
}

Plan plan_run(const Config& config, const ConfigFlags& flags, const Corpus& corpus, double seconds,
              const Tokenizer* tokenizer) {
  constexpr std::int64_t kMemoryParts = 5, kUsedParts = 4;  // of what is available; chosen without a measurement
  const std::vector<std::string> given = flags.given();
  const auto is_fixed = [&](std::string_view field) {
    return std::ranges::find(given, find_field(field).option()) != given.end() ||
           (field == "tokenizer" && tokenizer != nullptr) || (field == "val_fraction" && corpus.prepared != nullptr);
  };
  PlanRequest request{.text = text_facts(corpus, tokenizer, config.respect_documents),
                      .seconds = seconds,
                      .config = config,
                      .is_fixed = is_fixed};
  if (const auto available = available_memory()) request.memory = *available / kMemoryParts * kUsedParts;
  MeasuredStepTimer timer;
  return make_plan(request, timer);
}

std::vector<std::string> plan_lines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const PlanChoice& choice : plan.choices) {
    std::vector<std::string> values;
    for (const std::string& name : choice.fields)
      values.push_back(fmt::format("{} {}", name, field_text(plan.config, find_field(name))));
    lines.push_back(fmt::format("plan   {}: {}", fmt::join(values, ", "), choice.reason));
  }
  lines.push_back(fmt::format("plan   {}, {:.3g} passes over the training text, about {} of memory",
                              format_duration(plan.seconds), plan.passes, format_bytes(plan.memory_bytes)));
  return lines;
}

}  // namespace maki
