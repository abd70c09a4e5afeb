// A team of any size trains to the bytes of one process alone.
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/every_small_model.h"
#include "train/loop/team/local_team.h"

using namespace maki;
using namespace maki::tests;

namespace {

// What a checkpoint has of numbers, and what was reported on the way.
struct Outcome {
  std::string state;
  std::vector<double> reported;
  bool operator==(const Outcome&) const = default;
};

void append_bytes(const Tensor& x, std::string& to) {
  dispatch(x.dtype(), [&]<class T>() {
    const auto bytes = std::as_bytes(x.values<T>());
    to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

// Three steps with an evaluation before the last.
Outcome lead(Trainer& trainer) {
  Outcome outcome;
  for (int step = 0; step < 3; ++step) {
    if (step == 2) {
      const EvalReport report = trainer.evaluate().value();
      outcome.reported.push_back(report.train_loss);
      outcome.reported.push_back(report.val_loss.value_or(-1));
      outcome.reported.push_back(report.val_accuracy.value_or(-1));
    }
    const StepReport report = trainer.step().value();
    outcome.reported.push_back(report.loss);
    outcome.reported.push_back(report.grad_norm);
  }
  trainer.require_finite();
  append_bytes(trainer.store().values(), outcome.state);
  for (const Moment& moment : trainer.optimizer().moments()) append_bytes(moment.values, outcome.state);
  if (trainer.carried().any()) append_bytes(trainer.carried().values(), outcome.state);
  trainer.step();  // what was collected is dropped
  return outcome;
}

Outcome trained_by(int ranks, const Config& config) {
  Outcome outcome;
  run_local_team(ranks, [&](Team& team) {
    const auto task = make_random_task(config, random_vocab_sizes(config, 11), 4 * config.grad_accum);
    Trainer trainer(config, *task, trainable_model(config, *task), true, team);
    if (team.leads()) {
      outcome = lead(trainer);
    } else {
      trainer.follow();
    }
  });
  return outcome;
}

}  // namespace

TEST_CASE("teams of 1 to 8 ranks train every kind of model to the same bytes") {
  const ThreadsScope one(1);
  for (SmallModel& model : every_small_model()) {
    for (const std::int64_t micro_batches : {1, 5, 8}) {
      model.config.grad_accum = micro_batches;
      const Outcome alone = trained_by(1, model.config);
      for (const int ranks : {2, 3, 5, 8}) {
        INFO(model.name << ", " << micro_batches << " micro-batches, " << ranks << " ranks");
        REQUIRE(trained_by(ranks, model.config) == alone);
      }
    }
  }
}

TEST_CASE("teams train with every optimizer and precision to the same bytes") {
  const ThreadsScope one(1);
  for (const char* const optimizer : {"sgd", "adam", "adamw", "muon"}) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      Config config = small_model_config("gpt");
      config.optimizer = optimizer;
      config.precision = precision;
      config.n_embd = 64;  // so that parameters have several blocks, and ranks parts of them
      config.grad_accum = 4;
      const Outcome alone = trained_by(1, config);
      for (const int ranks : {2, 3, 4}) {
        INFO(optimizer << ", " << to_string(precision) << ", " << ranks << " ranks");
        REQUIRE(trained_by(ranks, config) == alone);
      }
    }
  }
}

// The model is large enough for several buckets (train/loop/team/buckets.h).
TEST_CASE("teams that exchange gradients layer by layer train to the same bytes") {
  const ThreadsScope one(1);
  for (const std::int64_t micro_batches : {1, 3, 7}) {
    Config config = small_model_config("gpt");
    config.n_embd = 128;
    config.n_layer = 8;
    config.grad_accum = micro_batches;
    config.recompute_blocks = micro_batches == 3;
    const Outcome alone = trained_by(1, config);
    for (const int ranks : {2, 3, 4}) {
      INFO(micro_batches << " micro-batches, " << ranks << " ranks");
      REQUIRE(trained_by(ranks, config) == alone);
    }
  }
}
