#include "train/app/plan_run.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/loop/estimate.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

// Options that set the number of steps, one way or another; the last is a limit beside that of the time.
constexpr const char* kStepOptions[] = {"--preset", "--config", "--lr-decay-steps", "--max-steps"};

std::optional<std::string> given_step_option(const ConfigFlags& flags, std::span<const char* const> options) {
  const std::vector<std::string> given = flags.given();
  for (const char* option : options) {
    if (std::ranges::find(given, option) != given.end()) return option;
  }
  return std::nullopt;
}

double minutes_of(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"s", 60}, {"m", 1}, {"h", 1. / 60}};
  const auto* const row = std::ranges::find_if(kUnits, [&](const auto& each) { return text.ends_with(each.first); });
  const auto [unit, per_minute] = row == std::end(kUnits) ? std::pair<std::string_view, double>("", 1) : *row;
  const double low = kMinMinutes * per_minute, high = kMaxMinutes * per_minute;
  try {
    return parse_number("minutes", text.substr(0, text.size() - unit.size()), low, high) / per_minute;
  } catch (const Error&) {
    fail("minutes: must be between {}{} and {}{}, a number with one unit (s, m or h) or none; got {}", low, unit, high,
         unit, truncate_for_message(text));
  }
}

// A vocabulary can be smaller than its limit.
std::string tokens_text(const Plan& plan) {
  const TokenizerKind& kind = tokenizer_kind(plan.config.tokenizer);
  return (kind.has_limit ? with_separators(plan.vocabulary) + ' ' : "") + kind.plural;
}

// How the loss will compare with what counting alone reaches.
std::string expectation(const Plan& plan) {
  constexpr double kWorthNaming = 0.005;  // a share of the loss; half of the 1 % that is named at least
  if (plan.by_heart || plan.expected_loss <= 0) return "";
  const double below = 1 - plan.expected_loss;
  if (below < kWorthNaming) return "; a loss of about what counting alone reaches";
  return fmt::format("; a loss about {:.0f}% below that of counting alone", std::max(1.0, 100 * below));
}

// A run sees no more than its teachers, and has counted what they have.
void suit_teacher(PlanRequest& request, const Config& teacher) {
  request.most_context = std::min(teacher.block_size, request.most_context.value_or(teacher.block_size));
  if (teacher.ngram_prior == 0 || request.is_fixed("ngram_prior")) return;
  request.config.ngram_prior = teacher.ngram_prior;
  fix_field(request, "ngram_prior");
}

// Whom the network learns from besides the text; "" if from nobody.
std::string teachers_text(const Config& config) {
  const std::int64_t counts = std::ranges::count(config.teacher, kCountingTeacher);
  const std::int64_t networks = std::ssize(config.teacher) - counts;
  if (config.teacher.empty()) return "";
  return fmt::format(", taught by {}{}{},", networks > 0 ? pluralize(networks, "network") : "",
                     networks > 0 && counts > 0 ? " and " : "", counts > 0 ? "counts of many contexts" : "");
}

}  // namespace

bool leaves_steps_open(const ConfigFlags& flags) { return !given_step_option(flags, kStepOptions); }

std::optional<double> given_minutes(const std::string& minutes, const ConfigFlags& flags) {
  if (minutes.empty()) return std::nullopt;
  const double value = minutes_of(minutes);
  const std::span limits(kStepOptions);
  if (const auto option = given_step_option(flags, limits.first(limits.size() - 1)))
    fail("minutes: chooses the number of steps; got {} as well; omit one of them", *option);
  return value;
}

std::shared_ptr<const Tokenizer> fixed_tokenizer(const Config& config, const ConfigFlags& flags, const Corpus& corpus,
                                                 std::shared_ptr<const Tokenizer> given) {
  const std::vector<std::string> options = flags.given();
  if (given || std::ranges::find(options, "--tokenizer") == options.end()) return given;
  if (tokenizer_kind(config.tokenizer).vocabulary != Vocabulary::learned) return nullptr;
  return make_tokenizer(config.tokenizer, corpus.text, tokenizer_options(config));
}

PlanRequest plan_request(const Config& config, const ConfigFlags& flags, double seconds) {
  constexpr std::int64_t kMemoryParts = 5, kUsedParts = 4;  // four fifths of what is available now, which may shrink
  PlanRequest request{.text = {}, .seconds = seconds, .config = config};
  request.is_fixed = [given = flags.given()](std::string_view field) {
    return std::ranges::find(given, find_field(field).option()) != given.end();
  };
  if (const auto available = memory_of_rank()) request.memory = *available / kMemoryParts * kUsedParts;
  for (const std::string& teacher : config.teacher) {
    if (is_run(teacher)) suit_teacher(request, read_checked_state(ContainerReader(teacher)).config);
  }
  return request;
}

void fix_field(PlanRequest& request, const std::string& name) {
  request.is_fixed = [given = request.is_fixed, name](std::string_view field) { return field == name || given(field); };
}

Plan plan_run(PlanRequest request, const Corpus& corpus, const Tokenizer* tokenizer, StepTimer& timer) {
  request.text = text_facts(corpus, tokenizer, request.config.respect_documents, request.config.val_fraction);
  if (tokenizer != nullptr) fix_field(request, "tokenizer");
  if (corpus.prepared) fix_field(request, "val_fraction");
  return make_plan(request, timer);
}

std::vector<std::string> plan_summary(const Plan& plan) {
  constexpr double kBusySlowdown = 1.5;  // by the clock against an idle machine: more than times usually vary
  const Config& c = plan.config;
  std::vector<std::string> lines = {
      fmt::format("plan   {} of width {} on {}{}: {}{} in about {}{}{}", pluralize(c.n_layer, "layer"), c.n_embd,
                  tokens_text(plan), c.ngram_prior > 0 ? " and a count of n-grams" : "", pluralize(c.max_steps, "step"),
                  teachers_text(c), format_duration(plan.seconds),
                  plan.enough.empty() ? "" : fmt::format(", because {}", plan.enough), expectation(plan))};
  if (plan.step.seconds > kBusySlowdown * plan.step.idle_seconds) {
    lines.push_back(fmt::format("note: other programs keep this machine busy: a step takes {} instead of {}",
                                milliseconds_text(plan.step.seconds), milliseconds_text(plan.step.idle_seconds)));
  }
  return lines;
}

std::vector<std::string> plan_lines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const PlanChoice& choice : plan.choices) {
    std::vector<std::string> values;
    for (const std::string& name : choice.fields)
      values.push_back(fmt::format("{} {}", name, field_text(plan.config, find_field(name))));
    lines.push_back(fmt::format("plan   {}: {}", fmt::join(values, ", "), choice.reason));
  }
  lines.push_back(fmt::format("plan   {}, {} over the training data, about {} of memory", format_duration(plan.seconds),
                              passes_text(plan.passes), format_bytes(plan.memory_bytes)));
  return lines;
}

}  // namespace maki
