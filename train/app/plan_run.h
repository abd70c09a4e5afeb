// A plan on the command line: when a run is planned, and how the plan is shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "train/app/flags.h"
#include "train/loop/plan/plan.h"

namespace maki {

/// The shortest and the longest time that --minutes may ask for: 0.6 s, for a few steps, and 69 days.
inline constexpr double kMinMinutes = 0.01, kMaxMinutes = 1e5;
/// The time of a run, in minutes, for which the user has chosen neither a time nor a number of steps, nor a preset or a
/// file: as long as one waits for a first result.
inline constexpr double kUsualMinutes = 1;

/// The value of --minutes in minutes, which may be written as a time: "90s", "2m", "1.5h". nullopt if `minutes` is
/// empty: the option was not given. Throws Error unless it is in that range, and if an option was given that decides
/// the number of steps in another way (--preset, --config or --lr-decay-steps; --max-steps is a second limit).
std::optional<double> given_minutes(const std::string& minutes, const ConfigFlags& flags);
/// Whether neither these nor --max-steps was given, so that a plan may choose the number of steps.
bool leaves_steps_open(const ConfigFlags& flags);

/// The tokenizer that the user has fixed: `given`, from a file, if it is not null; else one of the kind that
/// --tokenizer names, learned from the whole text. Null if neither was given, and for the kinds char and byte, whose
/// number of tokens is known without learning.
std::shared_ptr<const Tokenizer> fixed_tokenizer(const Config& config, const ConfigFlags& flags, const Corpus& corpus,
                                                 std::shared_ptr<const Tokenizer> given = nullptr);
/// What is asked of a plan: `config` has the values that were given, which are fixed, and defaults; `seconds` are left
/// for the run. The facts about the text are left out.
PlanRequest plan_request(const Config& config, const ConfigFlags& flags, double seconds);
/// The request keeps the value of this field, as of one that the user has given.
void fix_field(PlanRequest& request, const std::string& name);
/// The plan for a text, of whose time measuring steps with `timer` takes a part; `tokenizer` is that of
/// fixed_tokenizer(). Throws what make_plan() throws.
Plan plan_run(PlanRequest request, const Corpus& corpus, const Tokenizer* tokenizer, StepTimer& timer);
/// What was planned, in one line, and a second one if the machine is busy.
std::vector<std::string> plan_summary(const Plan& plan);
/// The values that were chosen, each with its reason.
std::vector<std::string> plan_lines(const Plan& plan);

}  // namespace maki
