#include "train/run/config/configured_optimizer.h"

#include "optim/make_optimizer.h"

namespace maki {

std::unique_ptr<Optimizer> make_optimizer(const Config& c, ParameterStore& store) {
  const HyperParameters hyper{.beta1 = c.beta1,
                              .beta2 = c.beta2,
                              .momentum = c.momentum,
                              .nesterov = c.nesterov,
                              .matrix_factor = c.learning_rate > 0 ? c.muon_lr / c.learning_rate : 0,
                              .weight_decay = c.weight_decay};
  std::unique_ptr<Optimizer> optimizer = make_optimizer(c.optimizer, hyper, store);
  optimizer->set_row_rate(c.ngram_lr_factor);
  return optimizer;
}

std::vector<LrPhase> lr_phases(const Config& c) {
  const LrDecay* const decay = lr_decay_named(c.schedule);
  const auto low = [&](double min_lr) { return decay->constant ? 0 : min_lr; };
  std::vector<LrPhase> phases = {{.start = 0,
                                  .schedule = {.decay = decay,
                                               .learning_rate = c.learning_rate,
                                               .min_lr = low(c.min_lr),
                                               .warmup_steps = c.warmup_steps,
                                               .decay_steps = c.lr_decay_steps}}};
  for (const Phase& phase : c.phases) {
    phases.push_back({.start = phase.start,
                      .schedule = {.decay = decay,
                                   .learning_rate = phase.learning_rate,
                                   .min_lr = low(phase.min_lr),
                                   .warmup_steps = phase.warmup_steps,
                                   .decay_steps = phase.end - phase.start}});
  }
  for (const LrPhase& phase : phases) phase.schedule.validate();
  return phases;
}

}  // namespace maki
