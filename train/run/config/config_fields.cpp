// The table of fields: the name, class, range and help text of every option of a run.
#include <algorithm>
#include <fmt/ranges.h>
#include <functional>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "data/io/number.h"
#include "data/ngram/ngram_model.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/tokenizer.h"
#include "nn/names.h"
#include "nn/short_conv.h"
#include "optim/lr_schedule.h"
#include "optim/make_optimizer.h"
#include "train/run/config/config.h"
#include "train/run/config/models.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

using Values = std::vector<std::string>;

constexpr std::array kFloatTypes = {DType::float32, DType::float64};
constexpr NamedMember kNgramOrders{
    [](const Config& c) { return ngram_orders_text(c.ngram_orders); },
    [](Config& c, const std::string&, std::string_view text) { c.ngram_orders = ngram_orders_named(text); }};

// A field, and how its row says what else is true of it.
struct Row : Field {
  // The default cannot be said in one value: help shows these words.
  Row by_default(std::string words) && {
    usual = std::move(words);
    return std::move(*this);
  }
  // Only TOML files set the field.
  Row without_flag() && {
    flag = false;
    return std::move(*this);
  }
  // The field has an effect only if the field `needs` has one of these values. If it has not, the option is refused,
  // and with `off_value`, as for off_at(), every other value wherever it comes from.
  Row only(std::string_view needs, Values values, std::optional<std::string> off_value = {}, bool but_not = false) && {
    conditions.push_back({std::string(needs), std::move(values), but_not, off_value.has_value()});
    return off_value ? std::move(*this).off_at(std::move(*off_value)) : std::move(*this);
  }
  Row except(std::string_view needs, Values values, std::optional<std::string> off_value = {}) && {
    return std::move(*this).only(needs, std::move(values), std::move(off_value), true);
  }
  // The value that asks for nothing, and is therefore accepted.
  Row off_at(std::string value) && {
    off = std::move(value);
    return std::move(*this);
  }
};

// N stands for a whole number in help, and another `type` for a number that may have a fraction.
Row number(std::string name, FieldClass kind, Field::Member member, double low, double high, std::string help,
           std::string type = "N") {
  return {{std::move(name), kind, member, std::move(help), std::move(type), low, high}};
}
Row boolean(std::string name, FieldClass kind, bool Config::*member, std::string help) {
  return {{std::move(name), kind, member, std::move(help), ""}};
}
Row choice(std::string name, FieldClass kind, Field::Member member, Values choices, std::string help) {
  std::string type = fmt::format("{}", fmt::join(choices, "|"));
  return {{std::move(name), kind, member, std::move(help), std::move(type), 0, 0, std::move(choices)}};
}
// One of these values of an enum, by its name.
template <auto member, const auto& values>
Row choice(std::string name, FieldClass kind, std::string help) {
  constexpr auto get = [](const Config& c) -> std::string { return to_string(c.*member); };
  constexpr auto set = [](Config& c, const std::string& field, std::string_view value) {
    c.*member = value_named(field, values, value);
  };
  return choice(std::move(name), kind, NamedMember{get, set}, names_of(values), std::move(help));
}
Row text(std::string name, FieldClass kind, Field::Member member, std::string type, std::string help) {
  return {{std::move(name), kind, member, std::move(help), std::move(type)}};
}
Row list(std::string name, FieldClass kind, Values Config::*member, std::string type, std::string help) {
  return {{std::move(name), kind, member, std::move(help), std::move(type)}};
}
// A list of patterns.
Row patterns(std::string name, FieldClass kind, Values Config::*member, std::string help) {
  return list(std::move(name), kind, member, "GLOB", std::move(help));
}

std::string task_help() {
  std::vector<std::string> lines;
  for (const std::string& name : task_names()) lines.push_back(fmt::format("{}: {}", name, task_rule(name).help));
  return fmt::format("task to learn ({})", fmt::join(lines, "; "));
}

// The names of the rows that have a property; row_of(name) is the row of a name.
Values names_with(auto property, Values names, auto row_of) {
  std::erase_if(names, [&](const std::string& name) { return !std::invoke(property, row_of(name)); });
  return names;
}
Values optimizers_with(auto property) { return names_with(property, optimizer_names(), optimizer_kind); }
Values schedules_with(auto property) { return names_with(property, lr_decay_names(), lr_decay_named); }

// The canonical form of a checkpoint's configuration lists the fields in this order, so existing fields must never
// change places.
std::vector<Field> make_fields() {
  using enum FieldClass;
  using C = Config;
  const Values running = tasks_where(&TaskRule::plain_text), files = {"a file", "a directory"};
  return {
      choice("model", model, &C::model, model_names(), "kind of model"),
      choice("task", model, &C::task, task_names(), task_help()).by_default("the first that the model can learn"),
      number("n_layer", model, &C::n_layer, 1, 1000, "number of Transformer blocks"),
      number("n_head", model, &C::n_head, 1, 1000, "number of attention heads per block; must divide n_embd"),
      number("n_kv_head", model, &C::n_kv_head, 0, 1000,
             "number of heads of keys and values, which groups of attention heads share; must divide n_head; 0: n_head")
          .only("model", {"gpt", "encoder"}, "0"),
      number("n_embd", model, &C::n_embd, 1, 1e6, "width of the embeddings and of the residual path"),
      number("block_size", model, &C::block_size, 1, 1e6, "context length in tokens"),
      number("dropout", training, &C::dropout, 0, 0.99,
             "dropout probability of embeddings, attention weights and residual branches", "PROBABILITY"),
      boolean("bias", model, &C::bias, "use biases in linear layers and layer norms"),
      boolean("tie_weights", model, &C::tie_weights, "share the token embedding with the output layer")
          .except("task", tasks_where(&TaskRule::labels))
          .off_at("true"),
      boolean("share_vocabulary", model, &C::share_vocabulary,
              "use one vocabulary and one token embedding for source and target")
          .only("task", tasks_where(&TaskRule::reads_source), "false"),
      choice<&C::activation, kActivations>(
          "activation", model, "activation of the feed-forward layers (swiglu: a gated layer of width 8/3 n_embd)"),
      choice<&C::norm_order, kNormOrders>(
          "norm_order", model, "place of the norm: before each layer (GPT-2) or after it (the original Transformer)")
          .by_default("depends on the model"),
      choice<&C::norm, kNormKinds>("norm", model, "layer norm or root mean square norm"),
      choice<&C::positions, kPositions>("positions", model,
                                        "encoding of the order of tokens; all but learned work beyond block_size")
          .except("model", {"transformer-xl"}, "sinusoidal")
          .by_default("depends on the model"),
      number("position_base", model, &C::position_base, 2, 1e12,
             "base of the wavelengths of sinusoidal and rotary positions", "NUMBER")
          .only("positions", {"sinusoidal", "rotary"}),
      text("attention", model, &C::attention, "KIND",
           "kind of attention: softmax, or elu, random:M or nystrom:M with M features per head")
          .only("model", {"linear"}, "softmax")
          .by_default("softmax; elu for the model linear"),
      number("memory", model, &C::memory, 0, 1e6, "number of earlier tokens that each layer attends to")
          .only("model", {"transformer-xl"}, "0")
          .by_default("block_size"),
      text("ngram_orders", model, kNgramOrders, "N,...",
           "lengths in tokens of the n-grams whose embeddings are added to the input, such as 2,3,4; none: no such "
           "embeddings"),
      number("ngram_rows", model, &C::ngram_rows, 1, 1e8,
             "rows of the table of each n-gram length; where there are more n-grams, they share rows by hash")
          .except("ngram_orders", {"none"}),
      number("ngram_dropout", training, &C::ngram_dropout, 0, 0.99, "dropout probability of n-gram embeddings",
             "PROBABILITY")
          .except("ngram_orders", {"none"}),
      number("ngram_lr_factor", training, &C::ngram_lr_factor, 0, kMaxCount,
             "learning rate of the n-gram tables, relative to that of the other parameters", "FACTOR")
          .except("ngram_orders", {"none"}),
      number("ngram_prior", model, &C::ngram_prior, 0, kMaxCountedNgram,
             "add the log-probabilities of an n-gram count of the training text, of n-grams of up to this many tokens, "
             "to the logits; 0: none")
          .only("task", tasks_where(&TaskRule::predicts_next), "0"),
      boolean("respect_documents", training, &C::respect_documents,
              "keep every sequence within one document: each document is cut from its beginning, and its last sequence "
              "is filled up; needs a text of documents")
          .only("task", tasks_where(&TaskRule::predicts_next), "false")
          .except("model", {"transformer-xl"}, "false"),
      boolean("qk_norm", model, &C::qk_norm,
              "normalize the queries and keys of self-attention in every head (RMS norm)")
          .except("model", {"transformer-xl"}, "false"),
      number("conv_width", model, &C::conv_width, 0, kMaxConvWidth,
             "width in tokens of a short convolution before attention and feed-forward, at least 2; 0: none")
          .only("model", {"gpt", "linear", "encoder"}, "0"),
      number("ffn_width", model, &C::ffn_width, 0, 1e7,
             "hidden width of the feed-forward layers; 0: 4 n_embd, or for swiglu 8/3 n_embd"),
      number("norm_epsilon", model, &C::norm_epsilon, 1e-12, 1,
             "number that norms add to the variance or the mean square", "NUMBER"),
      boolean("zero_projections", training, &C::zero_projections,
              "begin with weights of 0 in the projections that end in the residual path"),
      number("lora_rank", model, &C::lora_rank, 0, 1e4,
             "rank of the adapters (LoRA) that are trained instead of the weights; 0: none"),
      number("lora_alpha", model, &C::lora_alpha, 0, kMaxCount,
             "multiply the output of an adapter by lora_alpha / lora_rank; 0: by 1", "NUMBER")
          .except("lora_rank", {"0"}),
      patterns("lora_targets", model, &C::lora_targets,
               "adapt only layers whose weights have a name that matches (for example *.attn.*); may be repeated")
          .except("lora_rank", {"0"})
          .by_default("all linear layers of the blocks"),
      patterns("freeze", training, &C::freeze,
               "do not train parameters whose name matches (for example h.0.*; maki inspect shows the names); may be "
               "repeated"),
      choice<&C::dtype, kFloatTypes>("dtype", model, "data type of weights and arithmetic"),
      choice<&C::precision, kPrecisions>(
          "precision", training,
          "data type to which products and attention round their operands in training and evaluation; bfloat16 is "
          "faster on CPUs with AMX or AVX512_BF16 (AMD); weights and sums stay float32")
          .only("dtype", {"float32"}, "float32"),
      choice("tokenizer", model, &C::tokenizer, tokenizer_names(), tokenizer_help()),
      number("vocab_size", model, &C::vocab_size, kMinBpeVocabulary, kMaxBpeVocabulary,
             "largest number of tokens in the vocabulary that is learned from the text")
          .only("tokenizer", names_with(&TokenizerKind::has_limit, tokenizer_names(), tokenizer_kind)),
      choice("normalize", model, &C::normalize, normalization_names(),
             "Unicode normalization of all text before it is encoded (nfkc cannot be undone)"),
      choice("invalid_utf8", run, &C::invalid_utf8, {"error", "replace"},
             "treatment of bytes that are not UTF-8; replace accepts at most 1 % of a file")
          .only(kCorpus, files)
          .off_at("error"),
      text("encoding", run, &C::encoding, "NAME",
           "encoding of the text, by its iconv name (SHIFT_JIS, EUC-JP, UTF-16, …)")
          .only(kCorpus, files)
          .off_at("")
          .by_default("UTF-8"),
      patterns("include", run, &C::include,
               "read only files of directories whose names match (for example *.txt); may be repeated")
          .by_default("*")
          .only(kCorpus, {"a directory"}),
      patterns("exclude", run, &C::exclude,
               "skip files and folders of directories whose names match (for example drafts or *.md); may be repeated")
          .by_default(".*")
          .only(kCorpus, {"a directory"}),
      boolean("documents", run, &C::documents,
              "treat every file as a document, which is kept whole in training or validation text, and followed by the "
              "end-of-text token of the vocabulary, if it has one")
          .only("document_separator", {""})
          .only("json_field", {""})
          .only("task", running, "false")
          .only(kCorpus, files),
      text("document_separator", run, &C::document_separator, "TEXT",
           "treat every text between lines that are this, such as <|endoftext|>, as a document, which is kept whole")
          .only("task", running, "")
          .only(kCorpus, files),
      text("json_field", run, &C::json_field, "NAME",
           "read every line as a JSON object (.jsonl) with a document, which is kept whole, in the field of this name, "
           "such as text")
          .only("task", running, "")
          .only(kCorpus, files),
      number("val_fraction", training, &C::val_fraction, 0, 0.99,
             "fraction of the data that is used for validation: the end of each file, the last pairs, or documents or "
             "labelled lines that are spread evenly; 0: none",
             "FRACTION"),
      number("batch_size", training, &C::batch_size, 1, 1e6, "sequences per micro-batch"),
      number("grad_accum", training, &C::grad_accum, 1, 1e6, "micro-batches per optimizer step"),
      number("seed", training, &C::seed, 0, kMaxSeed, "random seed for initial weights, data order and dropout"),
      number("label_smoothing", training, &C::label_smoothing, 0, 0.99,
             "fraction of the target probability that is spread evenly over all tokens", "FRACTION"),
      number("grad_clip", training, &C::grad_clip, 0, kMaxCount, "maximum gradient norm; 0: no clipping", "NORM"),
      choice("optimizer", training, &C::optimizer, optimizer_names(), optimizer_help()),
      number("learning_rate", training, &C::learning_rate, 0, 1e3, "peak learning rate", "RATE"),
      number("muon_lr", training, &C::muon_lr, 0, 1e3,
             "peak learning rate of the matrices of the blocks; the schedule changes it in proportion to that of all "
             "other parameters",
             "RATE")
          .only("optimizer", optimizers_with(&OptimizerKind::matrix_rate)),
      number("min_lr", training, &C::min_lr, 0, 1e3, "learning rate at the end of the schedule", "RATE")
          .except("schedule", schedules_with(&LrDecay::constant)),
      number("beta1", training, &C::beta1, 0, 0.9999999, "decay rate per step of the first moment of Adam", "FRACTION")
          .only("optimizer", optimizers_with(&OptimizerKind::betas)),
      number("beta2", training, &C::beta2, 0, 0.9999999, "decay rate per step of the second moment of Adam", "FRACTION")
          .only("optimizer", optimizers_with(&OptimizerKind::betas)),
      number("momentum", training, &C::momentum, 0, 0.9999999, "decay rate per step of the momentum", "FRACTION")
          .only("optimizer", optimizers_with(&OptimizerKind::momentum))
          .by_default("0.95 for muon, else 0"),
      boolean("nesterov", training, &C::nesterov, "use Nesterov momentum, as muon always does")
          .only("optimizer", optimizers_with(&OptimizerKind::nesterov)),
      number("weight_decay", training, &C::weight_decay, 0, kMaxCount,
             "weight decay of matrices and embeddings, but not of vectors, convolutions and n-gram tables", "RATE"),
      choice("schedule", training, &C::schedule, lr_decay_names(), "learning-rate schedule"),
      number("warmup_steps", training, &C::warmup_steps, 0, kMaxCount, "steps of linear warmup"),
      number("lr_decay_steps", training, &C::lr_decay_steps, 0, kMaxCount,
             "step at which the schedule ends; 0: max_steps")
          .only("schedule", schedules_with(&LrDecay::ends)),
      text("out", run, &C::out, "DIR", "directory of the run").by_default("runs/<corpus>-<n>"),
      number("max_steps", run, &C::max_steps, 0, kMaxCount, "total number of optimizer steps"),
      number("threads", run, &C::threads, 0, kMaxThreads,
             "number of threads; 0: OMP_NUM_THREADS, else one per core; results do not depend on it"),
      number("eval_interval", run, &C::eval_interval, 1, kMaxCount, "steps between evaluations"),
      number("eval_batches", run, &C::eval_batches, -1, kMaxCount,
             "batches per evaluation, spread evenly over the validation text, or with transformer-xl its first ones; "
             "0: all of it; -1: as many as cost a tenth of the training between two evaluations"),
      boolean("early_stop", run, &C::early_stop,
              "stop when the model is overfitting: the validation loss no longer improves but the training loss still "
              "falls")
          .except("val_fraction", {"0.0"})
          .off_at("false"),
      number("patience", run, &C::patience, 1, kMaxCount,
             "evaluations without improvement before early_stop ends the run")
          .only("early_stop", {"true"})
          .except("val_fraction", {"0.0"}),
      boolean("counting", run, &C::counting,
              "measure before training what counting n-grams alone would reach, for comparison")
          .only("task", tasks_where(&TaskRule::predicts_next))
          .except("val_fraction", {"0.0"})
          .off_at("false"),
      boolean("recompute_blocks", run, &C::recompute_blocks,
              "keep only the input of each block for the backward pass and compute the block again: less memory, more "
              "time, identical results")
          .only("model", {"gpt", "linear", "encoder"}, "false"),
      number("checkpoint_interval", run, &C::checkpoint_interval, 1, kMaxCount, "steps between checkpoints"),
      number("keep_last", run, &C::keep_last, 1, kMaxCount,
             "number of recent checkpoints to keep, in addition to the best"),
      number("sample_interval", run, &C::sample_interval, 0, kMaxCount,
             "steps between sample texts during training; 0: none")
          .only("task", tasks_where(&TaskRule::writes))
          .off_at("0"),
      number("log_interval", run, &C::log_interval, 1, kMaxCount,
             "steps between training lines in metrics.jsonl and the log"),
      list("teacher", teachers, &C::teacher, "RUN|@counts|@own:N",
           "learn from this run, too: from the probabilities that it gives to each token of the text (distillation); "
           "@counts: from counts in many contexts, which predict each quarter of the text from the others; @own:N: "
           "from a network like this one with another seed, which is trained for N steps before; several may be named, "
           "and count by their mean; a run that is resumed needs it only to find a teacher that has moved")
          .only("task", tasks_where(&TaskRule::predicts_next), "[]"),
      number("teacher_weight", teachers, &C::teacher_weight, 0, 1,
             "weight of the teachers' predictions in what is learned; the text itself has the rest", "FRACTION")
          .except("teacher", {"[]"}),
      boolean("tensorboard", run, &C::tensorboard, "write event files for TensorBoard into the run directory"),
      text("target", run, &C::target, "NAME",
           "SIMD target of the run; avx3, avx2 and neon give the same bits, and so do sse4 and floor")
          .without_flag(),
  };
}

// "(gpt, linear)", the kinds with which a field has an effect, or "(not constant)"; empty if that depends on no kind.
std::string kinds_of(const Field& field) {
  constexpr std::string_view kKinds[] = {"model", "task", "optimizer", "schedule", "tokenizer"};
  Values lists;
  for (const Condition& condition : field.conditions) {
    if (std::ranges::find(kKinds, condition.needs) == std::end(kKinds)) continue;
    lists.push_back(fmt::format("{}{}", condition.except ? "not " : "", fmt::join(condition.values, ", ")));
  }
  return lists.empty() ? "" : fmt::format(" ({})", fmt::join(lists, "; "));
}

}  // namespace

std::string Field::option() const {
  std::string text = "--" + name;
  std::ranges::replace(text, '_', '-');
  return text;
}

Field::Value Field::value(const Config& config) const {
  return std::visit(
      [&](const auto& of) -> Value {
        if constexpr (std::is_same_v<decltype(of), const NamedMember&>) {
          return of.name(config);
        } else {
          return config.*of;
        }
      },
      member);
}

bool Condition::allows(std::string_view value) const {
  return (std::ranges::find(values, value) != values.end()) != except;
}

const std::vector<Field>& fields() {
  static const std::vector<Field> table = [] {
    std::vector<Field> all = make_fields();
    for (Field& field : all) field.help.insert(std::min(field.help.find(';'), field.help.size()), kinds_of(field));
    return all;
  }();
  return table;
}

}  // namespace maki
