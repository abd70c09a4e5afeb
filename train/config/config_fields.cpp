// The table of fields: every option of a run with its class, range and words of help.
#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "data/text/printable.h"
#include "train/config/config.h"
#include "train/config/number.h"

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

Field text(std::string name, Field::Member member, std::string help) {
  return {std::move(name), FieldClass::run, member, std::move(help), 0, 0, {}, true};
}
// A training field that came with a later schema, and what a checkpoint of an older one means by not having it.
Field since(std::int64_t schema, std::string absent, Field field) {
  field.since = schema;
  field.absent = std::move(absent);
  return field;
}

// The order is that of the canonical form: fields that are there never change places.
std::vector<Field> make_fields() {
  using enum FieldClass;
  using C = Config;
  return {
      since(2, "gpt", choice("model", training, &C::model, {"gpt"}, "kind of model")),
      number("n_layer", training, &C::n_layer, 1, 1000, "Transformer blocks"),
      number("n_head", training, &C::n_head, 1, 1000, "attention heads per block; must divide n_embd"),
      number("n_embd", training, &C::n_embd, 1, 1e6, "embedding width of the model"),
      number("block_size", training, &C::block_size, 1, 1e6, "context length in tokens"),
      number("dropout", training, &C::dropout, 0, 0.99,
             "dropout probability of embeddings, attention weights and residual branches"),
      boolean("bias", training, &C::bias, "use biases in linear layers and layer norms"),
      boolean("tie_weights", training, &C::tie_weights, "share the token embedding with the output layer"),
      choice("activation", training, &C::activation, {"gelu", "gelu_tanh", "relu", "silu"},
             "activation of the feed-forward layers"),
      choice("dtype", training, &C::dtype, {"float32", "float64"}, "number type of weights and arithmetic"),
      choice("tokenizer", training, &C::tokenizer, {"char", "byte"}, "what a token is: a character or a byte"),
      choice("invalid_utf8", run, &C::invalid_utf8, {"error", "replace"},
             "what to do with bytes that are not UTF-8; at most 1 % of a file is replaced"),
      text("encoding", &C::encoding,
           "encoding of the text, as iconv names it (SHIFT_JIS, EUC-JP, UTF-16, …); default UTF-8"),
      text("include", &C::include, "of directories, read only files with such names (*.txt); may be repeated"),
      text("exclude", &C::exclude, "of directories, leave out files with such names (drafts, *.md); may be repeated"),
      number("val_fraction", training, &C::val_fraction, 0, 0.99,
             "share of every file, taken from its end, that is held out for validation; 0: none"),
      number("batch_size", training, &C::batch_size, 1, 1e6, "sequences per micro-batch"),
      number("grad_accum", training, &C::grad_accum, 1, 1e6, "micro-batches per optimizer step"),
      number("seed", training, &C::seed, 0, kMostSeed, "seed of initial weights, data order and dropout"),
      number("label_smoothing", training, &C::label_smoothing, 0, 0.99,
             "share of the target probability that is spread over all tokens"),
      number("grad_clip", training, &C::grad_clip, 0, kMost, "clip the gradient to this norm; 0: never"),
      choice("optimizer", training, &C::optimizer, {"adamw", "adam", "sgd"}, "optimizer"),
      number("learning_rate", training, &C::learning_rate, 0, 1e3, "peak learning rate"),
      number("min_lr", training, &C::min_lr, 0, 1e3, "learning rate at the end of the schedule"),
      number("beta1", training, &C::beta1, 0, 0.9999999, "Adam: decay rate of the first moment"),
      number("beta2", training, &C::beta2, 0, 0.9999999, "Adam: decay rate of the second moment"),
      number("momentum", training, &C::momentum, 0, 0.9999999, "SGD: momentum"),
      boolean("nesterov", training, &C::nesterov, "SGD: use Nesterov momentum"),
      number("weight_decay", training, &C::weight_decay, 0, kMost,
             "weight decay of tensors with two or more dimensions"),
      choice("schedule", training, &C::schedule, {"cosine", "linear", "constant", "inverse_sqrt", "wsd"},
             "learning-rate schedule"),
      number("warmup_steps", training, &C::warmup_steps, 0, kMost, "steps of linear warm-up"),
      number("lr_decay_steps", training, &C::lr_decay_steps, 0, kMost, "step at which the schedule ends; 0: max_steps"),
      text("out", &C::out, "run directory; default runs/<corpus>-<n>"),
      number("max_steps", run, &C::max_steps, 0, kMost, "total number of optimizer steps"),
      number("threads", run, &C::threads, 0, kMostThreads,
             "number of threads; 0: OMP_NUM_THREADS, else all cores; results do not depend on it"),
      number("eval_interval", run, &C::eval_interval, 1, kMost, "steps between evaluations"),
      number(
          "eval_batches", run, &C::eval_batches, -1, kMost,
          "batches per evaluation, spread evenly over the validation text; 0: all of it; -1: as many as cost a tenth "
          "of the training between two evaluations"),
      boolean("early_stop", run, &C::early_stop,
              "stop when the model is overfitting: the validation loss no longer improves and the training loss falls"),
      number("patience", run, &C::patience, 1, kMost, "evaluations without a new best before early_stop ends the run"),
      number("checkpoint_interval", run, &C::checkpoint_interval, 1, kMost, "steps between checkpoints"),
      number("keep_last", run, &C::keep_last, 1, kMost, "recent checkpoints to keep, in addition to the best"),
      number("sample_interval", run, &C::sample_interval, 0, kMost,
             "steps between sample texts during training; 0: none"),
      number("log_interval", run, &C::log_interval, 1, kMost, "steps between lines in the log and in metrics.jsonl"),
      {"target",
       run,
       &C::target,
       "SIMD target of the run; results are bit-identical within one target",
       0,
       0,
       {},
       false},
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
