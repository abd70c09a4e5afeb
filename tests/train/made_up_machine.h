// What tests of plans ask for, and a machine whose speed they make up.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "train/loop/estimate.h"
#include "train/loop/plan/plan.h"
#include "train/run/config/models.h"

namespace maki::tests {

inline const std::map<std::string, std::string> kNoPrior = {{"ngram_prior", "0"}};

inline constexpr double kSpeed = 5e10;  // floating-point operations per second of a usual machine

// A machine with a constant speed.
struct Machine : StepTimer {
  explicit Machine(double flop_per_second = kSpeed) : speed(flop_per_second) {}
  StepTime time_step(const Config& c, const VocabSizes& vocab) override {
    ParameterStore planned(c.dtype);
    const std::unique_ptr<Model> model = make_model(c, vocab, Scope(planned));
    const double flop =
        flop_per_token(*model, planned, c.block_size) * static_cast<double>(c.block_size * c.batch_size * c.grad_accum);
    spent += busy * flop / speed * kTimedSteps;
    ++asked;
    return {.seconds = busy * flop / speed, .idle_seconds = flop / speed};
  }
  double speed, busy = 1, spent = 0;
  int asked = 0;
};

inline PlanRequest request_for(std::int64_t characters, double seconds, std::int64_t distinct = 65) {
  PlanRequest request{
      .text = {.bytes = characters, .characters = characters, .distinct = distinct}, .seconds = seconds, .config = {}};
  apply_preset(request.config, "quickstart");
  fill_open_fields(request.config);
  return request;
}

inline Plan plan_of(const PlanRequest& request, double speed = kSpeed) {
  Machine machine(speed);
  return make_plan(request, machine);
}

// The request of somebody who has given these fields these values.
inline PlanRequest with(PlanRequest request, const std::map<std::string, std::string>& given) {
  for (const auto& [name, value] : given) set_field(request.config, find_field(name), value);
  request.is_fixed = [given](std::string_view name) { return given.contains(std::string(name)); };
  return request;
}

// The words of @stories.
inline PlanRequest words_request(double seconds) {
  PlanRequest request = request_for(1'900'000, seconds);
  request.text.tokenizer = "word";
  request.text.tokens = 387'000;
  request.text.vocabulary = 5800;
  return request;
}

// Each with a reason.
inline bool names_every_field_once(const Plan& plan) {
  std::set<std::string> seen;
  for (const PlanChoice& choice : plan.choices) {
    if (choice.reason.empty() || choice.fields.empty()) return false;
    for (const std::string& name : choice.fields) {
      if (!seen.insert(name).second) return false;
    }
  }
  return true;
}

}  // namespace maki::tests
