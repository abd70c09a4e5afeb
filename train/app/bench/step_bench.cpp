#include "train/app/bench/step_bench.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autograd/core/table.h"
#include "optim/clip.h"

namespace maki {
namespace {

struct NamedWorkload {
  const char* name;
  std::int64_t n_layer, n_head, n_embd, block_size, batch_size, vocab_size;
  bool bias = false;
  NormKind norm = NormKind::layer;
  Activation activation = Activation::gelu;
  bool tie_weights = true;
};
constexpr NamedWorkload kWorkloadRows[] = {
    {"quickstart", 4, 4, 128, 64, 12, 65},
    {"baby", 6, 6, 384, 256, 16, 65},
    {"gpt2", 12, 12, 768, 64, 4, 50257, true},
    {"long", 4, 4, 128, 2048, 1, 65},
    {"microgpt", 1, 4, 16, 16, 16, 27, false, NormKind::rms, Activation::relu, false},
};
constexpr Table kWorkloads("workload", kWorkloadRows);

constexpr std::int64_t kDifferentBatches = 4;  // for each micro-batch of a step, so that steps differ

// values += factor · gradients, over all trainable parameters.
void move_along_gradient(ParameterStore& store, double factor) {
  const std::int64_t n = store.trainable().size();
  Tensor &values = store.values(), &gradients = store.gradients();
  dispatch(store.dtype(), [&]<class T>() {
    T* const to = values.data<T>();
    const T* const from = gradients.data<T>();
    for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<T>(factor * static_cast<double>(from[i]));
  });
  store.mark_changed();
}

// Makes the values themselves the gradients, for a move where there is no other direction.
void point_along_values(ParameterStore& store) {
  const std::int64_t n = store.trainable().size();
  dispatch(store.dtype(), [&]<class T>() { std::copy_n(store.values().data<T>(), n, store.gradients().data<T>()); });
}

}  // namespace

std::vector<std::string> workload_names() { return kWorkloads.names(); }

std::int64_t apply_workload(Config& c, const std::string& name) {
  const NamedWorkload& w = kWorkloads.row(name);
  c.n_layer = w.n_layer;
  c.n_head = w.n_head;
  c.n_embd = w.n_embd;
  c.block_size = w.block_size;
  c.batch_size = w.batch_size;
  c.bias = w.bias;
  c.norm = w.norm;
  c.activation = w.activation;
  c.tie_weights = w.tie_weights;
  return w.vocab_size;
}

StepBench::StepBench(const Workload& workload)
    : task_(make_random_task(workload.config, random_vocab_sizes(workload.config, workload.vocab_size),
                             kDifferentBatches * workload.config.grad_accum)),
      trainer_(workload.config, *task_) {}

double StepBench::flop_per_step() {
  return flop_per_token(trainer_.model(), trainer_.store(), trainer_.config().block_size) *
         static_cast<double>(tokens_per_step());
}

void StepBench::verify() {
  const Config& c = trainer_.config();
  ParameterStore& store = trainer_.store();
  Tape& tape = trainer_.tape();
  Batch batch;
  task_->fill(0, 0, batch);
  const auto loss = [&] {
    const Recording on(tape, {.seed = static_cast<std::uint64_t>(c.seed)});  // the same dropout masks every time
    return trainer_.model().loss(batch, {.label_smoothing = c.label_smoothing});
  };
  const auto loss_after_move = [&](double factor) {
    move_along_gradient(store, factor);
    const double value = loss().item();
    tape.clear();
    return value;
  };
  const auto slope_over = [&](double h) {
    const double below = loss_after_move(-h), above = loss_after_move(2 * h);
    move_along_gradient(store, -h);
    return (above - below) / (2 * h);
  };

  store.clear_gradients();
  const Tensor first = loss();
  const double initial = first.item();
  tape.backward(first);
  const double norm = grad_norm(store), squared = norm * norm;
  if (squared == 0) {  // right only if nothing changes the loss, as with a vocabulary of one token
    point_along_values(store);
    const double moved = loss_after_move(0.01);
    move_along_gradient(store, -0.01);
    store.clear_gradients();
    check<std::logic_error>(moved == initial,
                            "step: the gradient is 0, so that the loss must stay {:.6g}, but it becomes {:.6g} when "
                            "the parameters grow by 1 %; the gradient is wrong",
                            initial, moved);
    return;
  }
  // With this h the loss changes by 0.01, which is far above its rounding error; but the loss of a narrow model is not
  // linear over that distance. Extrapolating from h and h / 2 leaves an error of fourth order (Richardson 1911).
  const double h = 0.01 / squared, slope = (4 * slope_over(h / 2) - slope_over(h)) / 3;
  store.clear_gradients();
  check<std::logic_error>(std::abs(slope - squared) <= 0.01 * squared,
                          "step: the slope of the loss along its gradient is {:.6g} and must be the squared norm of "
                          "the gradient, {:.6g}; the gradient is wrong",
                          slope, squared);
}

}  // namespace maki
