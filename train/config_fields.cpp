// The table of fields: every option of a run with its class, range and words of help.
#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "data/printable.h"
#include "train/config.h"
#include "train/number.h"

namespace maki {
namespace {

constexpr double kMost = kMostCount;

Field number(std::string name, FieldClass kind, Field::Member member, double low, double high, std::string help) {
  return {std::move(name), kind, member, std::move(help), low, high, {}, true};
}
Field boolean(std::string name, FieldClass kind, bool Config::*member, std::string help) {
  return {std::move(name), kind, member, std::move(help), 0, 0, {}, true};
}
Field choice(std::string name, FieldClass kind, std::string Config::*member, std::vector<std::string> choices,
             std::string help) {
  return {std::move(name), kind, member, std::move(help), 0, 0, std::move(choices), true};
}

std::vector<Field> make_fields() {
  using enum FieldClass;
  using C = Config;
  return {
      number("n_layer", training, &C::n_layer, 1, 1000, "Transformer blocks"),
      number("n_head", training, &C::n_head, 1, 1000, "attention heads; divides n_embd"),
      number("n_embd", training, &C::n_embd, 1, 1e6, "width of the model"),
      number("block_size", training, &C::block_size, 1, 1e6, "tokens the model sees at once"),
      number("dropout", training, &C::dropout, 0, 0.99,
             "probability, of embeddings, attention weights and residual branches"),
      boolean("bias", training, &C::bias, "biases in linear layers and layer norms"),
      boolean("tie_weights", training, &C::tie_weights, "the output layer is the embedding table"),
      choice("activation", training, &C::activation, {"gelu", "gelu_tanh", "relu", "silu"},
             "of the feed-forward layers"),
      choice("dtype", training, &C::dtype, {"float32", "float64"}, "type of weights and arithmetic"),
      choice("tokenizer", training, &C::tokenizer, {"char", "byte"}, "what a token is"),
      choice("invalid_utf8", run, &C::invalid_utf8, {"error", "replace"},
             "what to do with bytes that are not UTF-8; at most 1 % of a file is replaced"),
      {"encoding",
       run,
       &C::encoding,
       "of the text, as iconv names it (SHIFT_JIS, EUC-JP, UTF-16, …); default UTF-8",
       0,
       0,
       {},
       true},
      {"include",
       run,
       &C::include,
       "of directories, read only files with such names (*.txt); may be repeated",
       0,
       0,
       {},
       true},
      {"exclude",
       run,
       &C::exclude,
       "of directories, leave out such names (drafts, *.md); may be repeated",
       0,
       0,
       {},
       true},
      number("val_fraction", training, &C::val_fraction, 0, 0.99,
             "of the characters of every file, the last ones, for validation; 0: none"),
      number("batch_size", training, &C::batch_size, 1, 1e6, "windows a micro-batch"),
      number("grad_accum", training, &C::grad_accum, 1, 1e6, "micro-batches a step"),
      number("seed", training, &C::seed, 0, kMostSeed, "of everything random"),
      number("label_smoothing", training, &C::label_smoothing, 0, 0.99, "weight spread over all tokens"),
      number("grad_clip", training, &C::grad_clip, 0, kMost, "largest norm of a gradient; 0: never clipped"),
      choice("optimizer", training, &C::optimizer, {"adamw", "adam", "sgd"}, "update rule"),
      number("learning_rate", training, &C::learning_rate, 0, 1e3, "the peak"),
      number("min_lr", training, &C::min_lr, 0, 1e3, "where the schedule ends"),
      number("beta1", training, &C::beta1, 0, 0.9999999, "Adam: decay of the first moment"),
      number("beta2", training, &C::beta2, 0, 0.9999999, "Adam: decay of the second moment"),
      number("momentum", training, &C::momentum, 0, 0.9999999, "SGD"),
      boolean("nesterov", training, &C::nesterov, "SGD: Nesterov's momentum"),
      number("weight_decay", training, &C::weight_decay, 0, kMost, "of tensors with two dimensions and more"),
      choice("schedule", training, &C::schedule, {"cosine", "linear", "constant", "inverse_sqrt", "wsd"},
             "of the learning rate"),
      number("warmup_steps", training, &C::warmup_steps, 0, kMost, "steps of linear warmup"),
      number("lr_decay_steps", training, &C::lr_decay_steps, 0, kMost, "horizon of the schedule; 0: max_steps"),
      {"out", run, &C::out, "run directory; default runs/<corpus>-<n>", 0, 0, {}, true},
      number("max_steps", run, &C::max_steps, 0, kMost, "optimizer steps in all"),
      number("threads", run, &C::threads, 0, kMostThreads, "0: OMP_NUM_THREADS, else every core; changes no result"),
      number("eval_interval", run, &C::eval_interval, 1, kMost, "steps between evaluations"),
      number(
          "eval_batches", run, &C::eval_batches, -1, kMost,
          "batches per evaluation, spread evenly over the validation text; 0: all of it; -1: as many as cost a tenth "
          "of the training between two evaluations"),
      boolean("early_stop", run, &C::early_stop,
              "stop when the model is overfitting: the validation loss no longer improves and the training loss falls"),
      number("patience", run, &C::patience, 1, kMost, "evaluations without a new best before early_stop ends the run"),
      number("checkpoint_interval", run, &C::checkpoint_interval, 1, kMost, "steps between checkpoints"),
      number("keep_last", run, &C::keep_last, 1, kMost, "checkpoints to keep, beside the best"),
      number("sample_interval", run, &C::sample_interval, 0, kMost,
             "steps between short texts that the model writes while it trains; 0: none"),
      number("log_interval", run, &C::log_interval, 1, kMost, "steps between lines of metrics"),
      {"target", run, &C::target, "SIMD target that ran; bits are promised within one", 0, 0, {}, false},
  };
}

}  // namespace

std::string Field::option() const {
  std::string text = "--" + name;
  std::ranges::replace(text, '_', '-');
  return text;
}

const std::vector<Field>& fields() {
  static const std::vector<Field> table = make_fields();
  return table;
}

const Field& find_field(std::string_view name) {
  const auto found = std::ranges::find(fields(), name, &Field::name);
  if (found != fields().end()) return *found;
  std::vector<std::string> names = {"corpus"};
  for (const Field& field : fields()) names.push_back(field.name);
  fail("configuration: there is no {}{}", shortened(name), nearest_hint(name, names));
}

}  // namespace maki
