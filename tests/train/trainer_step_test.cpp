// Steps of the trainer in float64 against the same steps written out in this file: the data of each micro-batch, the
// loss, the average over all targets, clipping, the learning rate and the update. Other tests compare maki with itself.
// These also detect a mistake that it makes everywhere.
#include <cmath>
#include <numbers>
#include <vector>

#include "data/dataset/sequence_order.h"
#include "data/io/error.h"
#include "nn/layers.h"
#include "tests/files.h"
#include "tests/tensors.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/loop/trainer.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Everything that a step can do: three micro-batches, dropout, label smoothing, clipping, weight decay, and a schedule
// whose warmup, decay and end all lie within eight steps.
Config step_config() {
  Config c;
  c.n_layer = 1;
  c.n_head = 2;
  c.n_embd = 8;
  c.block_size = 6;
  c.dropout = 0.2;
  c.activation = Activation::silu;
  c.dtype = DType::float64;
  c.batch_size = 2;
  c.grad_accum = 3;
  c.seed = 7;
  c.label_smoothing = 0.1;
  c.grad_clip = 0.25;
  c.learning_rate = 0.01;
  c.min_lr = 0.002;
  c.beta1 = 0.8;
  c.beta2 = 0.95;
  c.weight_decay = 0.3;
  c.warmup_steps = 3;
  c.lr_decay_steps = 6;
  c.val_fraction = 0;
  return c;
}

// What the trainer does, written out. `c` is read field by field, so that an option that the trainer ignores is
// detected.
class ByHand {
 public:
  ByHand(const Config& config, const Dataset& data)
      : c(config),
        tokens(data.train.ids()),
        model(Scope(store), {.n_layer = c.n_layer,
                             .n_head = c.n_head,
                             .n_embd = c.n_embd,
                             .block_size = c.block_size,
                             .vocab_size = data.tokenizer->vocab_size(),
                             .dropout = c.dropout,
                             .bias = c.bias,
                             .tie_weights = c.tie_weights,
                             .activation = c.activation}) {
    store.seal(static_cast<std::uint64_t>(c.seed));
    for (const auto& p : store.parameters()) {
      const auto n = static_cast<std::size_t>(p->shape().numel());
      gradient.emplace_back(n);
      first_moment.emplace_back(n);
      second_moment.emplace_back(n);
    }
  }

  StepReport step() {
    for (auto& g : gradient) std::fill(g.begin(), g.end(), 0.0);
    const auto targets = static_cast<double>(c.grad_accum * c.batch_size * c.block_size);
    double sum = 0, squares = 0;
    for (std::int64_t micro = 0; micro < c.grad_accum; ++micro) sum += add_micro_batch(micro);
    for (auto& g : gradient) {
      for (double& x : g) {
        x /= targets;
        squares += x * x;
      }
    }
    const double norm = std::sqrt(squares), lr = learning_rate();
    const double factor = c.grad_clip > 0 && norm > c.grad_clip ? c.grad_clip / (norm + 1e-6) : 1;
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      const Parameter& p = *store.parameters()[k];
      double* const value = store.values().data<double>() + p.offset();
      const double decay = p.shape().rank() >= 2 ? c.weight_decay : 0;
      for (std::size_t i = 0; i < gradient[k].size(); ++i) {
        update(value[i], first_moment[k][i], second_moment[k][i], factor * gradient[k][i], lr, decay);
      }
    }
    store.mark_changed();
    ++steps;
    return {.step = steps, .loss = sum / targets, .learning_rate = lr, .grad_norm = norm, .tokens = 36};
  }

  ParameterStore store{DType::float64};

 private:
  // Returns the sum of the losses of one micro-batch and adds its gradient to `gradient`.
  double add_micro_batch(std::int64_t micro) {
    const auto seed = static_cast<std::uint64_t>(c.seed);
    const SequenceOrder windows(static_cast<std::int64_t>(tokens.size()), c.block_size, seed);
    Tensor ids = empty({c.batch_size, c.block_size}, DType::int32), targets = empty_like(ids);
    for (std::int64_t row = 0; row < c.batch_size; ++row) {
      const std::int64_t start = windows.start((steps * c.grad_accum + micro) * c.batch_size + row);
      for (std::int64_t t = 0; t < c.block_size; ++t) {
        ids.data<std::int32_t>()[row * c.block_size + t] = tokens[static_cast<std::size_t>(start + t)];
        targets.data<std::int32_t>()[row * c.block_size + t] = tokens[static_cast<std::size_t>(start + t + 1)];
      }
    }
    Tape tape;
    store.clear_gradients();
    const Tensor loss = [&] {
      const Recording on(
          tape,
          {.seed = seed, .step = static_cast<std::uint64_t>(steps), .micro_batch = static_cast<std::uint64_t>(micro)});
      return cross_entropy(model.logits(ids), targets, {.label_smoothing = c.label_smoothing, .sum = true});
    }();
    tape.backward(loss);
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      const Tensor g = store.parameters()[k]->gradient();
      for (std::size_t i = 0; i < gradient[k].size(); ++i) gradient[k][i] += g.at(static_cast<std::int64_t>(i));
    }
    return loss.item();
  }

  double learning_rate() const {
    if (steps < c.warmup_steps) {
      return c.learning_rate * static_cast<double>(steps + 1) / static_cast<double>(c.warmup_steps);
    }
    if (c.schedule == "constant") return c.learning_rate;
    if (steps >= c.lr_decay_steps) return c.min_lr;
    const double f =
        static_cast<double>(steps - c.warmup_steps) / static_cast<double>(c.lr_decay_steps - c.warmup_steps);
    const double left = c.schedule == "linear" ? 1 - f : (1 + std::cos(std::numbers::pi * f)) / 2;
    return c.min_lr + (c.learning_rate - c.min_lr) * left;
  }

  void update(double& value, double& m, double& v, double g, double lr, double decay) const {
    if (c.optimizer == "sgd") {
      g += decay * value;
      m = c.momentum * m + g;
      value -= lr * (c.nesterov ? g + c.momentum * m : m);
      return;
    }
    if (c.optimizer == "adam") g += decay * value;
    if (c.optimizer == "adamw") value -= lr * decay * value;
    m = c.beta1 * m + (1 - c.beta1) * g;
    v = c.beta2 * v + (1 - c.beta2) * g * g;
    const auto n = static_cast<double>(steps + 1);
    value -= lr * (m / (1 - std::pow(c.beta1, n))) / (std::sqrt(v / (1 - std::pow(c.beta2, n))) + 1e-8);
  }

  const Config& c;
  std::vector<std::int32_t> tokens;
  Gpt model;
  std::vector<std::vector<double>> gradient, first_moment, second_moment;
  std::int64_t steps = 0;
};

void require_same_training(const Config& config, bool clips = true) {
  const Dataset data = dataset_of(seeded_text(200, "abcdefg \n"), config);
  TextTrainer trainer(config, data);
  ByHand by_hand(config, data);
  REQUIRE(largest_difference(trainer.store().values(), by_hand.store.values()) == 0);
  for (int s = 0; s < 8; ++s) {
    const StepReport expected = by_hand.step(), got = trainer.step().value();
    INFO("step " << s);
    REQUIRE(got.step == expected.step);
    REQUIRE(got.tokens == expected.tokens);
    REQUIRE(got.loss == Approx(expected.loss).epsilon(1e-12));
    REQUIRE(got.learning_rate == Approx(expected.learning_rate).epsilon(1e-14));
    REQUIRE(got.grad_norm == Approx(expected.grad_norm).epsilon(1e-11));
    REQUIRE((got.grad_norm > config.grad_clip) == clips);
    REQUIRE(largest_difference(trainer.store().values(), by_hand.store.values()) < 1e-12);
  }
}

}  // namespace

TEST_CASE("eight steps of AdamW under a cosine schedule are those written out by hand") {
  require_same_training(step_config());
}

TEST_CASE("eight steps of Adam, without biases and with an output layer of its own, are those written out by hand") {
  Config c = step_config();
  c.optimizer = "adam";
  c.schedule = "constant";
  c.bias = c.tie_weights = false;
  c.activation = Activation::relu;
  c.beta1 = 0.7;
  require_same_training(c);
}

TEST_CASE("eight steps of SGD, with momentum and with Nesterov's, are those written out by hand") {
  Config c = step_config();
  c.optimizer = "sgd";
  c.schedule = "linear";
  c.momentum = 0.9;
  c.activation = Activation::gelu_tanh;
  c.learning_rate = 0.5;
  for (const bool nesterov : {false, true}) {
    c.nesterov = nesterov;
    require_same_training(c);
  }
}

TEST_CASE("a gradient below the limit is not clipped, and a limit of 0 means none") {
  Config c = step_config();
  c.grad_clip = 50;
  require_same_training(c, false);
  Config unclipped = c;
  unclipped.grad_clip = 0;
  require_same_training(unclipped);
}

TEST_CASE("however large a gradient is, a step of SGD is as long as clipping allows and no longer") {
  Config c = step_config();
  c.optimizer = "sgd";
  c.tie_weights = false;
  c.weight_decay = 0;
  c.learning_rate = 0.5;
  const Dataset data = dataset_of(seeded_text(200, "abcdefg \n"), c);
  for (const double scale : {1.0, 1e6}) {
    INFO("logits times " << scale);
    TextTrainer trainer(c, data);
    const auto values = trainer.store().values().values<double>();
    const Parameter& head = trainer.store().find("lm_head.weight");
    for (std::int64_t i = 0; i < head.shape().numel(); ++i)
      values[static_cast<std::size_t>(head.offset() + i)] *= scale;
    trainer.store().mark_changed();
    const std::vector<double> before(values.begin(), values.end());
    const StepReport report = trainer.step().value();
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i) squares += (values[i] - before[i]) * (values[i] - before[i]);
    const double most = report.learning_rate * c.grad_clip;
    REQUIRE(report.grad_norm > (scale == 1 ? c.grad_clip : 1e3));
    REQUIRE(std::sqrt(squares) <= most * (1 + 1e-6));
    REQUIRE(std::sqrt(squares) >= most * (1 - 1e-4));
  }
}

TEST_CASE("a gradient that is not finite stops the run before anything is updated, even if the loss is finite") {
  Config c = step_config();
  c.tie_weights = false;
  c.dropout = 0;
  const Dataset data = dataset_of(seeded_text(200, "abcdefg \n"), c);
  TextTrainer trainer(c, data);
  // The last norm returns zeros, so every logit is 0 and the loss is log V. The gradient passes through the output
  // layer, and its sum of squares overflows float64.
  const auto set = [&](const char* name, double value) {
    const Parameter& p = trainer.store().find(name);
    std::fill_n(trainer.store().values().data<double>() + p.offset(), p.shape().numel(), value);
  };
  set("ln_f.weight", 0);
  set("ln_f.bias", 0);
  const Parameter& head = trainer.store().find("lm_head.weight");
  for (std::int64_t i = 0; i < head.shape().numel(); ++i) {
    trainer.store().values().data<double>()[head.offset() + i] = i % 3 == 0 ? 1e200 : -1e200;
  }
  trainer.store().mark_changed();
  const Tensor before = convert(trainer.store().values(), DType::float64);
  const std::string said = error_message<DivergedError>([&] { trainer.step(); });
  INFO(said);
  REQUIRE(contains(said, "gradient"));
  REQUIRE_FALSE(contains(said, "--"));  // what to do is for the caller to say
  REQUIRE(trainer.steps() == 0);
  REQUIRE(largest_difference(trainer.store().values(), before) == 0);
}

TEST_CASE("a step that is abandoned between two micro-batches changes nothing and does not affect the next step") {
  const Config c = step_config();
  const Dataset data = dataset_of(seeded_text(200, "abcdefg \n"), c);
  TextTrainer straight(c, data), stopped(c, data);
  int calls = 0;
  REQUIRE_FALSE(stopped.step([&] { return ++calls == 3; }).has_value());
  REQUIRE(calls == 3);
  REQUIRE(stopped.steps() == 0);
  REQUIRE(largest_difference(stopped.store().values(), straight.store().values()) == 0);
  for (int s = 0; s < 2; ++s) {
    REQUIRE(stopped.step().value().loss == straight.step().value().loss);
    REQUIRE(largest_difference(stopped.store().values(), straight.store().values()) == 0);
  }
}
