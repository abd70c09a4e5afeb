// A plan on the command line: when a run is planned, and how the plan is shown.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/text/corpus.h"
#include "train/cli/flags.h"
#include "train/plan/plan.h"

namespace maki {

/// The shortest and the longest time that --minutes may ask for, in minutes. Chosen without a measurement.
inline constexpr double kMinMinutes = 0.01, kMaxMinutes = 1e5;
/// The time of a run, in minutes, for which the user has chosen neither a time nor a number of steps, nor a preset or a
/// file.
inline constexpr double kUsualMinutes = 1;

/// The value of --minutes; nullopt if `minutes` is empty: the option was not given. Throws Error unless it is a number
/// in that range, and if an option was given that decides the number of steps in another way (--preset, --config,
/// --max-steps or --lr-decay-steps).
std::optional<double> given_minutes(const std::string& minutes, const ConfigFlags& flags);
/// Whether none of these four was given, so that a plan may choose the number of steps.
bool leaves_steps_open(const ConfigFlags& flags);

/// The tokenizer that the user has fixed: `given`, from a file, if it is not null; else one of the kind that
/// --tokenizer names, learned from the whole text. Null if neither was given, and for the kinds char and byte, whose
/// number of tokens is known without learning.
std::shared_ptr<const Tokenizer> fixed_tokenizer(const Config& config, const ConfigFlags& flags, const Corpus& corpus,
                                                 std::shared_ptr<const Tokenizer> given = nullptr);
/// The plan for a text, with `seconds` left for the run, of which measuring step times takes a part; `config` has the
/// values that were given, and defaults, and `tokenizer` is that of fixed_tokenizer(). Throws what make_plan() throws.
Plan plan_run(const Config& config, const ConfigFlags& flags, const Corpus& corpus, double seconds,
              const Tokenizer* tokenizer);
/// Lines for a user: the values that were chosen, each with its reason, and what they lead to.
std::vector<std::string> plan_lines(const Plan& plan);

}  // namespace maki
