#include "train/app/planned_start.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <iterator>
#include <utility>

#include "train/app/progress.h"
#include "train/app/ranks.h"

namespace maki {
namespace {

double seconds_since(PlannedStart::Clock::time_point start) {
  return std::chrono::duration<double>(PlannedStart::Clock::now() - start).count();
}

}  // namespace

double PlannedStart::left() const { return seconds_ - seconds_since(start_); }

PlanRequest PlannedStart::request(const Config& config) const {
  PlanRequest request = plan_request(config, options_.flags, left());
  request.has_weights = !options_.init_from.empty();
  if (options_.force) request.memory = std::nullopt;
  return request;
}

void PlannedStart::choose_model(Config& config, const Corpus& corpus,
                                const std::shared_ptr<const Tokenizer>& tokenizer) {
  const ConfigFlags& flags = options_.flags;
  if (options_.init_from.empty() && chooses_model(config)) {
    plan_ = plan_run(request(config), corpus, fixed_tokenizer(config, flags, corpus, tokenizer).get(), timer_);
    config = plan_->config;
    has_length_ = true;
  } else if (options_.init_from.empty()) {
    PlanRequest asked = request(config);
    if (tokenizer) fix_field(asked, "tokenizer");
    plan_ = choose_size(asked, data_facts(corpus, config, tokenizer));
    config = plan_->config;
  } else {
    config = with_planned_schedule(request(config));
  }
  config = divided_among_ranks(config, flags, ranks().size());
  flags.complete(config);
}

void PlannedStart::choose_length(Config& config, const Task& task) {
  if (!has_length_) {
    Plan plan = plan_length(request(config), task, timer_);
    if (plan_) plan.choices.insert(plan.choices.begin(), plan_->choices.begin(), plan_->choices.end());
    plan_ = std::move(plan);
    config = plan_->config;
    options_.flags.complete(config);
  }
  for (const std::string& line : plan_summary(*plan_)) to_stderr("{}\n", line);
  if (!options_.explain) return;
  for (const std::string& line : plan_lines(*plan_)) to_stderr("{}\n", line);
}

std::string PlannedStart::explanation() const {
  std::vector<std::string> lines = plan_summary(*plan_);
  std::ranges::move(plan_lines(*plan_), std::back_inserter(lines));
  constexpr std::string_view kPrefix = "plan   ";  // for the terminal
  for (std::string& line : lines)
    if (line.starts_with(kPrefix)) line.erase(0, kPrefix.size());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

SessionOptions PlannedStart::session_options(std::function<void(const Config&)> record) const {
  return {.limit = TimeLimit{.seconds = seconds_,
                             .elapsed = [start = start_] { return seconds_since(start); },
                             .most_steps = plan_->most_steps,
                             .record = std::move(record)},
          .remarks = {{Remark::Kind::plan, explanation()}}};
}

}  // namespace maki
