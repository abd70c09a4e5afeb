#include "train/bench/step_bench.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <stdexcept>

#include "autograd/core/nearest.h"
#include "data/text/utf8.h"
#include "optim/clip.h"

namespace maki {
namespace {

struct NamedWorkload {
  const char* name;
  std::int64_t n_layer, n_head, n_embd, block_size, batch_size, vocab_size;
  bool bias;
};
constexpr NamedWorkload kWorkloads[] = {
    {"quickstart", 4, 4, 128, 64, 12, 65, false},
    {"baby", 6, 6, 384, 256, 16, 65, false},
    {"gpt2", 12, 12, 768, 64, 4, 50257, true},
    {"long", 4, 4, 128, 2048, 1, 65, false},
};

// A text of n different characters: the first n code points from 1 on, skipping the surrogates.
std::string text_of_characters(std::int64_t n) {
  constexpr std::int64_t kMost = 1'000'000;
  check(n >= 1 && n <= kMost, "vocab_size: must be between 1 and {}; got {}", kMost, n);
  std::string text;
  for (std::int64_t c = 1; c <= n; ++c) append_utf8(text, static_cast<char32_t>(c < 0xD800 ? c : c + 0x800));
  return text;
}

// Random tokens, enough for a few different batches.
Dataset random_dataset(const Workload& workload) {
  const Config& c = workload.config;
  const std::int64_t tokens = (4 * c.batch_size * c.grad_accum + 2) * c.block_size + 1;
  const RandomStream stream(static_cast<std::uint64_t>(c.seed), Purpose::shuffle, "benchmark");
  Dataset dataset;
  dataset.tokenizer = make_tokenizer("char", text_of_characters(workload.vocab_size));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  std::uint64_t i = 0;
  for (std::int32_t& id : ids)
    id = static_cast<std::int32_t>(stream.below(i++, static_cast<std::uint64_t>(workload.vocab_size)));
  dataset.train = Tokens(workload.vocab_size);
  dataset.train.append(ids);
  return dataset;
}

// values += factor · gradients, over all trainable parameters.
void move_along_gradient(ParameterStore& store, double factor) {
  const std::int64_t n = store.trainable().size();
  Tensor &values = store.values(), &gradients = store.gradients();
  dispatch(store.dtype(), [&]<class T>() {
    T* const to = values.data<T>();
    const T* const from = gradients.data<T>();
    for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<T>(factor * static_cast<double>(from[i]));
  });
  store.touch();
}

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const NamedWorkload& w : kWorkloads) names.emplace_back(w.name);
  return names;
}

std::int64_t apply_workload(Config& c, const std::string& name) {
  const auto* const w = std::ranges::find_if(kWorkloads, [&](const NamedWorkload& x) { return x.name == name; });
  check(w != std::end(kWorkloads), "workload: must be one of {}; got {}{}", fmt::join(workload_names(), ", "), name,
        nearest_hint(name, workload_names()));
  c.n_layer = w->n_layer;
  c.n_head = w->n_head;
  c.n_embd = w->n_embd;
  c.block_size = w->block_size;
  c.batch_size = w->batch_size;
  c.bias = w->bias;
  return w->vocab_size;
}

std::int64_t counted_parameters(const Gpt& model) {
  const GptConfig& c = model.config;
  return model.parameter_count() - (c.tie_weights ? 0 : c.vocab_size * c.n_embd);
}

double flop_per_token(const Gpt& model) {
  const GptConfig& c = model.config;
  return 6 * static_cast<double>(counted_parameters(model)) +
         12 * static_cast<double>(c.n_layer * c.n_embd) * static_cast<double>(c.block_size);
}

StepBench::StepBench(const Workload& workload)
    : tokens_per_step_(workload.config.batch_size * workload.config.grad_accum * workload.config.block_size),
      dataset_(random_dataset(workload)),
      trainer_(workload.config, dataset_) {}

void StepBench::verify() {
  const Config& c = trainer_.config();
  ParameterStore& store = trainer_.store();
  Tape& tape = trainer_.tape();
  const std::vector<std::int32_t> first =
      dataset_.train.view().ids(0, static_cast<std::size_t>(c.batch_size * c.block_size + 1));
  const std::span<const std::int32_t> read(first);
  const Tensor ids = tensor(read.first(read.size() - 1), {c.batch_size, c.block_size});
  const Tensor targets = tensor(read.subspan(1), {c.batch_size, c.block_size});
  const auto loss = [&] {
    const Recording on(tape, {.seed = static_cast<std::uint64_t>(c.seed)});  // the same dropout masks every time
    return trainer_.model().loss(ids, targets, {.label_smoothing = c.label_smoothing});
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
  tape.backward(loss());
  const double norm = grad_norm(store), squared = norm * norm;
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
