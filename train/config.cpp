#include "train/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/ranges.h>
#include <sstream>
#include <toml++/toml.h>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {
namespace {

constexpr double kMost = 1e9;  // of counts

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
      choice("invalid_utf8", run, &C::invalid_utf8, {"error", "replace"}, "what to do with bytes that are not UTF-8"),
      number("val_fraction", training, &C::val_fraction, 0, 0.99,
             "of the characters, the last ones, for validation; 0: none"),
      number("batch_size", training, &C::batch_size, 1, 1e6, "windows a micro-batch"),
      number("grad_accum", training, &C::grad_accum, 1, 1e6, "micro-batches a step"),
      number("seed", training, &C::seed, 0, 9e15, "of everything random"),
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
      number("threads", run, &C::threads, 0, 1024, "0: OMP_NUM_THREADS, else every core; changes no result"),
      number("eval_interval", run, &C::eval_interval, 1, kMost, "steps between evaluations"),
      number("eval_batches", run, &C::eval_batches, 0, kMost, "batches of an evaluation; 0: the whole validation text"),
      number("checkpoint_interval", run, &C::checkpoint_interval, 1, kMost, "steps between checkpoints"),
      number("keep_last", run, &C::keep_last, 1, kMost, "checkpoints to keep, beside the best"),
      number("log_interval", run, &C::log_interval, 1, kMost, "steps between lines of metrics"),
      {"target", run, &C::target, "SIMD target that ran; bits are promised within one", 0, 0, {}, false},
  };
}

struct Preset {
  const char* name;
  void (*apply)(Config&);
};
// quickstart is what Config's own defaults say; nanoGPT's CPU quick start. baby: nanoGPT's train_shakespeare_char.
constexpr Preset kPresets[] = {
    {"quickstart",
     [](Config& c) {
       const Config defaults;
       for (const Field& field : fields()) {
         if (field.kind == FieldClass::training || field.name == "max_steps") {
           std::visit([&](auto member) { c.*member = defaults.*member; }, field.member);
         }
       }
     }},
    {"baby",
     [](Config& c) {
       c.n_layer = c.n_head = 6;
       c.n_embd = 384;
       c.block_size = 256;
       c.batch_size = 64;
       c.dropout = 0.2;
       c.max_steps = 5000;
       c.learning_rate = 1e-3;
       c.min_lr = 1e-4;
       c.warmup_steps = 100;
       c.beta2 = 0.99;
     }},
};

std::string shown(double value) { return fmt::format("{}", value); }

void check_range(const Field& field, double value, std::string_view text) {
  check(value >= field.low && value <= field.high, "{}: must be between {} and {}; got {}", field.name,
        shown(field.low), shown(field.high), text);
}

void check_choice(const Field& field, const std::string& value) {
  if (field.choices.empty() || std::ranges::find(field.choices, value) != field.choices.end()) return;
  fail("{}: must be one of {}; got {}; the nearest is {}", field.name, fmt::join(field.choices, ", "), value,
       nearest_name(value, field.choices));
}

template <class Number>
Number parse_number(const Field& field, std::string_view text, const char* what) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  check(whole && std::isfinite(static_cast<double>(value)), "{}: must be {}; got {}", field.name, what, text);
  return value;
}

struct SetFromText {
  Config& config;
  const Field& field;
  std::string_view text;

  void operator()(std::int64_t Config::*member) const {
    config.*member = parse_number<std::int64_t>(field, text, "a whole number");
    check_range(field, static_cast<double>(config.*member), text);
  }
  void operator()(double Config::*member) const {
    config.*member = parse_number<double>(field, text, "a finite decimal number");
    check_range(field, config.*member, text);
  }
  void operator()(bool Config::*member) const {
    check(text == "true" || text == "false", "{}: must be true or false; got {}", field.name, text);
    config.*member = text == "true";
  }
  void operator()(std::string Config::*member) const {
    config.*member = std::string(text);
    check_choice(field, config.*member);
  }
};

// A TOML value as the text a flag would have; throws where its type does not fit the field.
std::string toml_text(const Field& field, const toml::node& node) {
  const bool wants_string = std::holds_alternative<std::string Config::*>(field.member);
  if (const auto* string = node.as_string(); string != nullptr && wants_string) return string->get();
  if (const auto* flag = node.as_boolean(); flag != nullptr && field.is_boolean())
    return flag->get() ? "true" : "false";
  const bool wants_number = !wants_string && !field.is_boolean();
  if (const auto* integer = node.as_integer(); integer != nullptr && wants_number)
    return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point(); real != nullptr && wants_number) {
    const bool wants_whole = std::holds_alternative<std::int64_t Config::*>(field.member);
    check(!wants_whole, "{}: must be a whole number; got the decimal {}", field.name, real->get());
    return shown(real->get());
  }
  fail("{}: must be {}", field.name,
       wants_string         ? "a string in quotes"
       : field.is_boolean() ? "true or false"
                            : "a number");
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::table{{"s", text}});
  const std::string line = out.str();
  return line.substr(line.find('=') + 2);
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
  fail("configuration: there is no {}; the nearest is {}", name, nearest_name(name, names));
}

void set_field(Config& config, const Field& field, std::string_view text) {
  std::visit(SetFromText{config, field, text}, field.member);
}

std::string field_text(const Config& config, const Field& field) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = config.*member;
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return quoted(value);
        } else if constexpr (std::is_same_v<Value, double>) {
          const std::string text = shown(value);  // the shortest that reads back to the same
          return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
        } else {
          return fmt::format("{}", value);
        }
      },
      field.member);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

void apply_preset(Config& config, const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.apply(config);
  }
  fail("preset: there is no {}; the nearest of {} is {}", name, fmt::join(preset_names(), ", "),
       nearest_name(name, preset_names()));
}

void apply_toml(Config& config, std::string_view text, const std::string& name) {
  // The parser descends once for every dot of a key, without a limit: 50,000 of them end the process.
  std::size_t dots = 0;
  for (const char c : text) {
    dots = c == '.' ? dots + 1 : c == '\n' || c == ',' || c == '/' || c == '=' ? 0 : dots;
    check(dots <= 256, "{}: a key or value with more than 256 dots is not part of a configuration", name);
  }
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail("{}: line {}: {}", name, error.source().begin.line, error.description());
  }
  for (const auto& [key, node] : table) {
    const std::string_view word = key.str();
    try {
      if (word == "corpus") {
        config.corpus.clear();
        const toml::array* const list = node.as_array();
        check(list != nullptr, "corpus: must be a list of strings");
        for (const toml::node& entry : *list) {
          check(entry.is_string(), "corpus: must be a list of strings");
          config.corpus.push_back(entry.as_string()->get());
        }
        continue;
      }
      const Field& field = find_field(word);
      set_field(config, field, toml_text(field, node));
    } catch (const Error& error) {
      fail("{}: line {}: {}", name, node.source().begin.line, error.what());
    }
  }
}

void resolve(Config& config) {
  if (config.lr_decay_steps != 0) return;
  check(config.max_steps > 0, "lr_decay_steps: must be given where max_steps is 0: it is the horizon of the schedule");
  config.lr_decay_steps = config.max_steps;
}

void validate(const Config& c) {
  check(c.n_embd % c.n_head == 0, "n_embd: must be a multiple of n_head; got {} and {}", c.n_embd, c.n_head);
  check(c.min_lr <= c.learning_rate, "min_lr: must not exceed learning_rate; got {} and {}", c.min_lr, c.learning_rate);
  check(!c.nesterov || c.momentum > 0, "nesterov: needs a momentum above 0");
}

std::string to_toml(const Config& config) {
  std::string text =
      "# The configuration of a maki run. Training fields are fixed; run fields may change on --resume.\n\n";
  std::vector<std::string> corpus;
  for (const std::string& source : config.corpus) corpus.push_back(quoted(source));
  text += fmt::format("corpus = [{}]\n", fmt::join(corpus, ", "));
  for (const Field& field : fields()) {
    text += fmt::format("{} = {}  # {}{}\n", field.name, field_text(config, field),
                        field.kind == FieldClass::run ? "run: " : "", field.help);
  }
  return text;
}

std::string training_toml(const Config& config) {
  std::string text;
  for (const Field& field : fields()) {
    if (field.kind == FieldClass::training) text += fmt::format("{} = {}\n", field.name, field_text(config, field));
  }
  return text;
}

std::vector<Difference> training_differences(const Config& a, const Config& b) {
  std::vector<Difference> list;
  for (const Field& field : fields()) {
    if (field.kind != FieldClass::training) continue;
    const std::string first = field_text(a, field), second = field_text(b, field);
    if (first != second) list.push_back({field.name, first, second});
  }
  return list;
}

}  // namespace maki
