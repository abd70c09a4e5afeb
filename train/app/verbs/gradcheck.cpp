// maki gradcheck [RUN | options]: checks the gradient of a whole model, for every parameter, against finite differences
// in float64.
#include "autograd/gradcheck.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "autograd/core/parallel.h"
#include "nn/carried_states.h"
#include "train/app/describe_run.h"
#include "train/app/flags.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/loop/tasks.h"
#include "train/loop/trainer.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

// The largest relative error of a tensor's gradient that passes.
constexpr double kMaxRelativeError = 1e-6;
// At a step of 1e-3 the error of the differences themselves reaches 5e-7; it falls 16-fold each time the step is
// halved. Twelve halvings, to 6e-8, find a step without kinks even among the ten thousand or so units of a relu model.
constexpr double kDifferenceStep = 2.5e-4;
constexpr int kMaxHalvings = 12;
// Differences of a loss near 1 have an error of a few roundings divided by the step, which must not exceed the bound:
// for gradients with a norm below 1e-5, the error is taken relative to 1e-5. A model whose gradient is zero (a
// vocabulary of one) therefore passes.
constexpr double kMinGradientNorm = 1e-5;
// A small batch, because every derivative takes several passes over it: two rows, so that one could be mistaken for the
// other, and a few tokens. A longer context is cut.
constexpr std::int64_t kBatchRows = 2, kMaxTokens = 16;
constexpr std::int64_t kRandomVocabulary = 65;  // of a model that has no run: as many characters as tinyshakespeare has

struct GradcheckVerbOptions {
  explicit GradcheckVerbOptions(const Command& command)
      : flags(command, model_fields_and({"dropout", "label_smoothing", "seed", "threads"},
                                        {"dtype", "tokenizer", "vocab_size", "normalize"})) {}
  ConfigFlags flags;
  std::string run, checkpoint;
  bool json = false, force = false;
};

// The batch on which the gradients of a model are checked.
Config with_small_batch(Config config) {
  config.batch_size = kBatchRows;
  config.grad_accum = 1;
  config.block_size = std::min(config.block_size, kMaxTokens);
  return config;
}

void require_memory_to_check(Config config, const VocabSizes& vocab, bool force) {
  config.dtype = DType::float64;
  MemoryNeed need = memory_needed(config, vocab);
  need.activations = memory_needed(with_small_batch(config), vocab).activations;
  need.moments = 0;
  require_memory(config, need, force);
}

std::vector<GradcheckResult> gradcheck_model(const Model& model, ParameterStore& store, Config config,
                                             const VocabSizes& vocab) {
  config = with_small_batch(std::move(config));
  const std::unique_ptr<Task> task = make_random_task(config, vocab, 1);
  Batch batch;
  task->fill(0, 0, batch);
  // If the model carries a state, every pass starts from the state that one step before it left, as in training. (The
  // random data are long enough for this second batch.)
  CarriedStates carried(model, 1, kBatchRows);
  if (carried.any()) {
    model.loss(batch, {}, carried.of(0));
    task->fill(1, 0, batch);
  }
  GradcheckOptions options;
  options.step = kDifferenceStep;
  options.halvings = kMaxHalvings;
  options.floor = kMinGradientNorm;
  options.relative_floor = 1e-3;  // an exactly zero gradient is compared with the largest one of the model
  options.directions = 3;
  options.entries = 16;
  options.random = {.seed = static_cast<std::uint64_t>(config.seed)};
  const auto loss = [&] {
    CarriedStates::Rewind rewind(carried);
    return model.loss(batch, {.label_smoothing = config.label_smoothing}, carried.of(0));
  };
  return gradcheck(store, loss, options);
}

int print_results(const std::vector<GradcheckResult>& results, bool json) {
  const bool passed =
      !results.empty() && std::ranges::all_of(results, [](const auto& r) { return r.passed(kMaxRelativeError); });
  std::int64_t compared = 0, halved = 0;
  for (const GradcheckResult& r : results) {
    compared += r.compared;
    halved += r.halved;
  }
  Report report;
  report.add("passed", passed).add("bound", kMaxRelativeError).add("compared", compared).add("halved", halved);
  report.text(
      fmt::format("{:28} {:14} {:>9}  {}", "tensor", "shape", "error", "worst: by backward, by finite differences"));
  Json tensors;
  for (const GradcheckResult& r : results) {
    tensors.push_back({{"name", r.name},
                       {"compared", r.compared},
                       {"halved", r.halved},
                       {"error", r.error},
                       {"worst", r.worst},
                       {"backward", r.worst_analytic},
                       {"differences", r.worst_numeric},
                       {"passed", r.passed(kMaxRelativeError)}});
    report.text(fmt::format("{:28} {:14} {:9.1e}  {}: {:.9g}, {:.9g}{}", r.name, to_string(r.shape), r.error, r.worst,
                            r.worst_analytic, r.worst_numeric, r.passed(kMaxRelativeError) ? "" : "   WRONG"));
  }
  report.add("tensors", tensors)
      .text(fmt::format("{}: {} tensors, {} derivatives, bound {:.0e}",
                        passed ? "every gradient is correct" : "a gradient is WRONG", results.size(), compared,
                        kMaxRelativeError));
  if (halved > 0)
    report.text(fmt::format("{} of the differences needed a smaller step because of a kink or a sharp bend", halved));
  report.print(json);
  return passed ? 0 : 1;
}

// Adds noise to the initial values of a new model: biases of 0 and gains of 1 hide mistakes, and a relu may have its
// argument exactly at the kink.
void perturb(ParameterStore& store, std::uint64_t seed) {
  for (const auto& parameter : store.parameters()) {
    const RandomStream stream(seed, RandomPurpose::gradcheck, parameter->name() + " moved");
    const auto values = store.values().values<double>().subspan(static_cast<std::size_t>(parameter->offset()),
                                                                static_cast<std::size_t>(parameter->shape().numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.1 * stream.normal(i);
  }
  store.mark_changed();
}

int run_gradcheck(const GradcheckVerbOptions& o) {
  if (!o.run.empty()) {
    for (const std::string& option : o.flags.given()) {
      check(option == "--threads", "gradcheck: {} and {} both describe a model; use only one of them", option, o.run);
    }
    check(!o.force, "gradcheck: --force is for a model that options describe; omit it, or {}", o.run);
    Config config;
    o.flags.apply(config, "");
    if (config.threads > 0) set_threads(config.threads);
    LoadedModel loaded =
        read_checkpoint(o.run, o.checkpoint, [](const std::string& path) { return LoadedModel(path, DType::float64); });
    return print_results(gradcheck_model(*loaded.model, loaded.store, loaded.state.config, vocab_sizes(loaded.state)),
                         o.json);
  }
  check(o.checkpoint.empty(), "gradcheck: --checkpoint selects a checkpoint of a RUN; add a RUN");
  Config config;
  o.flags.apply(config, "quickstart");
  validate(config);
  o.flags.require_effect(config);
  if (config.threads > 0) set_threads(config.threads);
  ParameterStore store(DType::float64);
  const VocabSizes vocab = random_vocab_sizes(config, kRandomVocabulary);
  require_memory_to_check(config, vocab, o.force);
  const std::unique_ptr<Model> model = make_model(config, vocab, Scope(store));
  store.seal(static_cast<std::uint64_t>(config.seed));
  perturb(store, static_cast<std::uint64_t>(config.seed));
  return print_results(gradcheck_model(*model, store, config, vocab), o.json);
}

}  // namespace

void add_gradcheck(const Command& command) {
  const auto o = std::make_shared<GradcheckVerbOptions>(command);
  command.add_argument("RUN", o->run, "run directory or .maki file; without one, the options describe the model");
  add_checkpoint_option(command, o->checkpoint);
  add_memory_option(command, o->force);
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return run_gradcheck(*o); });
}

}  // namespace maki
