// maki plan CORPUS… --minutes N [--ranks R] [--json] [options]
#include <algorithm>
#include <memory>

#include "autograd/core/check.h"
#include "data/io/printable.h"
#include "train/app/plan_ranks.h"
#include "train/app/plan_run.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/run_corpus.h"
#include "train/app/verbs.h"
#include "train/loop/plan/data_facts.h"
#include "train/loop/tasks.h"

namespace maki {
namespace {

// Fields that are no options of this verb: they do not change a plan, or a plan alone decides them.
constexpr std::string_view kNotOffered[] = {"out",        "max_steps",    "lr_decay_steps",   "keep_last",
                                            "patience",   "early_stop",   "freeze",           "lora_rank",
                                            "lora_alpha", "lora_targets", "recompute_blocks", "tensorboard"};

std::vector<std::string> planned_fields() {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (std::ranges::find(kNotOffered, field.name) == std::end(kNotOffered)) names.push_back(field.name);
  }
  return names;
}

struct PlanOptions {
  explicit PlanOptions(const Command& command) : flags(command, planned_fields(), Unset::planned), ranks(command) {}
  ConfigFlags flags;
  RankOptions ranks;
  std::vector<std::string> corpus;
  std::string minutes;
  bool json = false;
};

void print_plan(const Plan& plan, RankStepTimer& timer, bool json) {
  Json fields = Json::object(), reasons = Json::array(), measured = Json::array();
  for (const PlanChoice& choice : plan.choices) {
    for (const std::string& name : choice.fields)
      std::visit([&](const auto& value) { fields[name] = value; }, find_field(name).value(plan.config));
    reasons.push_back({{"fields", choice.fields}, {"reason", choice.reason}});
  }
  for (const MeasuredShape& shape : plan.measured) {
    measured.push_back({{"n_layer", shape.n_layer},
                        {"n_embd", shape.n_embd},
                        {"block_size", shape.block_size},
                        {"batch_size", shape.batch_size},
                        {"seconds_per_step", shape.step.seconds},
                        {"idle_seconds_per_step", shape.step.idle_seconds}});
  }
  Report report;
  report.add("seconds", plan.seconds)
      .add("passes", plan.passes)
      .add("memory_bytes", plan.memory_bytes)
      .add("most_steps", plan.most_steps)
      .add("fields", fields)
      .add("reasons", reasons)
      .add("measured", measured);
  for (const std::string& line : plan_summary(plan)) report.text(escape_unprintable(line));
  for (const std::string& line : plan_lines(plan)) report.text(escape_unprintable(line));
  timer.add_ranks(plan, report);
  report.print(json);
}

// As PlannedStart does it where the shape of the network is not chosen: parts and tokens for the data, then the length.
// `tokenizer` is the one that is given, or null.
Plan plan_for_data(PlanRequest request, const Corpus& corpus, const std::shared_ptr<const Tokenizer>& tokenizer,
                   const ConfigFlags& flags, StepTimer& timer) {
  if (tokenizer) fix_field(request, "tokenizer");
  const Plan size = choose_size(request, data_facts(corpus, request.config, tokenizer));
  request.config = size.config;
  flags.complete(request.config);
  Config uncounted = request.config;
  std::erase(uncounted.teacher, kCountingTeacher);  // it counts when the run begins, which takes long
  Plan plan = plan_length(request, *make_task(uncounted, corpus, {tokenizer, tokenizer}), timer);
  plan.choices.insert(plan.choices.begin(), size.choices.begin(), size.choices.end());
  return plan;
}

int plan_for_text(const PlanOptions& o) {
  RankStepTimer timer(o.ranks, o.flags);
  const double minutes = given_minutes(o.minutes, o.flags).value_or(kUsualMinutes);
  Config config;
  config.corpus = o.corpus;
  o.flags.apply(config, "quickstart");
  config.teacher = teacher_checkpoints(config.teacher);
  use_threads(config);
  Corpus corpus = read_corpus(o.corpus, corpus_options(config));
  const auto given =
      corpus.prepared ? adopt_prepared(corpus, o.flags, nullptr, config) : tokenizer_of_teacher(o.flags, config);
  PlanRequest request = plan_request(config, o.flags, 60 * minutes);
  const Plan plan = chooses_model(config) ? plan_run(std::move(request), corpus,
                                                     fixed_tokenizer(config, o.flags, corpus, given).get(), timer)
                                          : plan_for_data(std::move(request), corpus, given, o.flags, timer);
  Config checked = plan.config;  // what `maki train` refuses is not shown
  o.flags.complete(checked);
  print_plan(plan, timer, o.json);
  return 0;
}

}  // namespace

void add_plan(const Command& command) {
  const auto o = std::make_shared<PlanOptions>(command);
  add_corpus_argument(command, o->corpus).require();
  command.add_option(
      "--minutes", o->minutes, "TIME",
      fmt::format("time to plan for, in minutes unless a unit follows, as in 90s or 1h [{}]", kUsualMinutes));
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return plan_for_text(*o); });
}

}  // namespace maki
