// The table of fields: each is read back from config.toml as it was written, refuses values outside its range or of the
// wrong type with a message, and is suggested for names that are close to its own.
#include "train/run/config/config.h"

#include <fmt/format.h>

#include "tests/train/config_messages.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

namespace {

// An allowed value that is not the default.
std::string another_value(const Field& field) {
  const Config defaults;
  if (const auto* member = std::get_if<std::int64_t Config::*>(&field.member)) {
    const std::int64_t value = defaults.*(*member);
    return std::to_string(static_cast<double>(value) + 1 <= field.high ? value + 1 : value - 1);
  }
  if (std::holds_alternative<double Config::*>(field.member))
    return field.low > 0.0625 ? fmt::format("{}", field.low) : "0.0625";
  if (const auto* member = std::get_if<bool Config::*>(&field.member)) return defaults.*(*member) ? "false" : "true";
  for (const std::string& choice : field.choices) {
    if (choice != option_text(defaults, field)) return choice;
  }
  return field.name == "ngram_orders" ? "2,3" : "something";
}

}  // namespace

TEST_CASE("every documented option is a field with a help text") {
  for (const char* name : {"n_layer",       "n_head",
                           "n_embd",        "block_size",
                           "batch_size",    "grad_accum",
                           "dropout",       "max_steps",
                           "learning_rate", "min_lr",
                           "warmup_steps",  "lr_decay_steps",
                           "schedule",      "optimizer",
                           "beta1",         "beta2",
                           "weight_decay",  "grad_clip",
                           "eval_interval", "eval_batches",
                           "val_fraction",  "checkpoint_interval",
                           "keep_last",     "seed",
                           "threads",       "dtype",
                           "tokenizer",     "tie_weights",
                           "bias",          "momentum",
                           "nesterov",      "label_smoothing",
                           "muon_lr",       "log_interval",
                           "invalid_utf8",  "activation",
                           "out",           "early_stop",
                           "patience",      "counting"}) {
    INFO(name);
    const Field& field = find_field(name);
    REQUIRE(field.flag);
    REQUIRE(field.help.size() >= 3);
    std::string option = std::string("--") + name;
    for (char& c : option) c = c == '_' ? '-' : c;
    REQUIRE(field.option() == option);
  }
}

TEST_CASE("momentum is 0.95 for muon and 0 for the others, unless it is given") {
  for (const auto& [optimizer, expected] : {std::pair{"muon", 0.95}, {"sgd", 0.0}, {"adamw", 0.0}}) {
    for (const double given : {-1.0, 0.5}) {
      Config config;
      apply_preset(config, "quickstart");
      config.optimizer = optimizer;
      if (given >= 0) set_field(config, find_field("momentum"), fmt::format("{}", given));
      fill_open_fields(config);
      REQUIRE(config.momentum == (given >= 0 ? given : expected));
    }
  }
}

TEST_CASE("a task that a model does not have is refused with the models that have it") {
  Config config;
  config.task = "classify";
  REQUIRE(error_message<Error>([&] { task_rule(config); }) ==
          "task: must be next_token for a model of kind gpt; got classify; use `model` encoder for it");
  config.model = "encoder";
  config.task = "next_token";
  REQUIRE(error_message<Error>([&] { task_rule(config); }) ==
          "task: must be masked or classify for a model of kind encoder; got next_token; use `model` gpt or "
          "linear or transformer-xl for it");
}

TEST_CASE("every field is in its class: training, teachers or run") {
  for (const char* name : {"n_layer", "n_head", "n_embd", "block_size", "batch_size", "grad_accum", "dropout", "dtype",
                           "tokenizer", "val_fraction", "seed", "optimizer", "schedule", "lr_decay_steps", "bias"}) {
    INFO(name);
    REQUIRE(find_field(name).is_training());
  }
  for (const char* name : {"teacher", "teacher_weight"}) {
    REQUIRE(find_field(name).kind == FieldClass::teachers);
    REQUIRE_FALSE(find_field(name).is_training());  // where a teacher is does not belong in a checkpoint
    REQUIRE_FALSE(contains(to_toml(Config()), "# run: " + find_field(name).help));
  }
  for (const char* name : {"encoding", "include", "exclude", "out", "threads", "max_steps", "eval_interval",
                           "eval_batches", "checkpoint_interval", "keep_last", "log_interval", "counting"}) {
    INFO(name);
    REQUIRE(find_field(name).kind == FieldClass::run);
  }
}

TEST_CASE("each field, set to another value, is found as a difference and read back from config.toml") {
  REQUIRE(fields().size() > 30);
  for (const Field& field : fields()) {
    if (field.choices.size() == 1) continue;  // has no other value
    INFO(field.name);
    Config config;
    set_field(config, field, another_value(field));
    REQUIRE(field_text(config, field) != field_text(Config(), field));
    const std::string echo = to_toml(config);
    const Config again = read_back(echo);
    REQUIRE(field_text(again, field) == field_text(config, field));
    REQUIRE(to_toml(again) == echo);
    const std::vector<FieldDifference> differences = training_differences(Config(), config);
    if (!field.is_training()) {
      REQUIRE(differences.empty());
      REQUIRE_FALSE(contains("\n" + training_toml(config), "\n" + field.name + " ="));
    } else {
      REQUIRE(differences.size() == 1);
      REQUIRE(differences[0].name == field.name);
      REQUIRE(differences[0].first == field_text(Config(), field));
      REQUIRE(differences[0].second == field_text(config, field));
      const Config trained = read_training_toml(training_toml(config));
      REQUIRE(training_differences(trained, config).empty());
      REQUIRE(training_toml(trained) == training_toml(config));
    }
  }
}

TEST_CASE("a field keeps its value when another one is refused") {
  int refused = 0;
  for (const Field& field : fields()) {
    if (field.is_list() || (std::holds_alternative<std::string Config::*>(field.member) && field.choices.empty()))
      continue;  // every text is allowed
    INFO(field.name);
    Config config;
    REQUIRE_THROWS_AS(set_field(config, field, "nothing of the kind"), Error);
    REQUIRE(field_text(config, field) == field_text(Config(), field));
    ++refused;
  }
  REQUIRE(refused > 30);
}

TEST_CASE("lists keep their entries and order, whatever characters the entries contain") {
  Config config;
  config.include = {"*.txt", "猫 'and' \"quotes\"", ""};
  REQUIRE(read_back(to_toml(config)).include == config.include);
  REQUIRE(read_back(to_toml(config)).exclude.empty());
  REQUIRE(contains(toml("include = \"*.txt\""), "list of strings"));
  REQUIRE(contains(toml("exclude = [1]"), "list of strings"));
}

TEST_CASE("numbers outside their range are refused, naming the field and the value") {
  int numbers = 0;
  for (const Field& field : fields()) {
    if (field.is_text() || field.is_boolean() || field.is_list()) continue;
    const bool whole = std::holds_alternative<std::int64_t Config::*>(field.member);
    Config config;
    for (const double end : {field.low, field.high})
      set_field(config, field, whole ? std::to_string(static_cast<std::int64_t>(end)) : fmt::format("{}", end));
    for (const std::string& text :
         {whole ? std::to_string(static_cast<std::int64_t>(field.low) - 1) : std::string("-0.001"),
          whole ? std::to_string(static_cast<std::int64_t>(field.high) + 1) : std::string("1e300")}) {
      const std::string said = set(field.name, text);
      INFO(field.name << " " << text << ": " << said);
      REQUIRE(contains(said, field.name));
      REQUIRE(contains(said, text));
      ++numbers;
    }
  }
  REQUIRE(numbers > 30);
}

TEST_CASE("sizes of a model go up to their limits and no further") {
  for (const auto& [name, low, high] : {std::tuple{"n_layer", 1, 1000},
                                        {"n_head", 1, 1000},
                                        {"n_kv_head", 0, 1000},
                                        {"n_embd", 1, 1'000'000},
                                        {"block_size", 1, 1'000'000}}) {
    INFO(name);
    for (const int allowed : {low, high}) REQUIRE(set(name, std::to_string(allowed)).empty());
    for (const int refused : {low - 1, high + 1}) {
      REQUIRE(set(name, std::to_string(refused)) ==
              fmt::format("{}: must be between {} and {}; got {}", name, low, high, refused));
    }
  }
}

TEST_CASE("numbers must be decimal and finite") {
  for (const char* text :
       {"", " 1", "1 ", "one", "0x10", "1e", "1,5", "nan", "inf", "-inf", "infinity", "1e400", "1.5.2", "٣", "true"}) {
    INFO(text);
    REQUIRE(contains(set("learning_rate", text), "learning_rate"));
    REQUIRE(contains(set("n_layer", text), "n_layer"));
  }
  for (const char* text : {"2.0", "2.5", "1e2", "99999999999999999999"}) REQUIRE(contains(set("n_layer", text), text));
  for (const char* text : {"1", "0", "1e-3", ".5", "5e-4", "0.001"}) REQUIRE(set("learning_rate", text).empty());
  for (const char* text : {"yes", "1", "True", ""}) REQUIRE(contains(set("bias", text), "true or false"));
}

TEST_CASE("errors about unknown names and choices suggest the nearest one") {
  REQUIRE(contains(toml("\nn_layr = 2\n"), "some.toml: line 2"));
  REQUIRE(contains(toml("n_layr = 2"), "n_layer"));
  REQUIRE(contains(toml("[model]\nn_layer = 2"), "model"));
  REQUIRE(contains(toml("learning_rte = 2"), "learning_rate"));
  REQUIRE(contains(set("schedule", "cosin"), "nearest is cosine"));
  REQUIRE(contains(set("optimizer", "adamW"), "nearest is adamw"));
  REQUIRE(contains(error_message<Error>([] { find_field("lerning_rate"); }), "nearest is learning_rate"));
  Config config;
  REQUIRE(contains(error_message<Error>([&] { apply_preset(config, "babby"); }),
                   "one of quickstart, baby, translate; got babby; the nearest is baby"));
}

TEST_CASE("the presets have the values of nanoGPT's configurations") {
  Config quick;
  quick.n_layer = 9;
  apply_preset(quick, "quickstart");
  fill_open_fields(quick);
  REQUIRE(training_toml(quick) == training_toml(Config()));
  REQUIRE(quick.n_layer == 4);
  REQUIRE(quick.n_head == 4);
  REQUIRE(quick.n_embd == 128);
  REQUIRE(quick.block_size == 64);
  REQUIRE(quick.batch_size == 12);
  REQUIRE(quick.max_steps == 2000);
  REQUIRE(quick.learning_rate == 1e-3);
  REQUIRE(quick.min_lr == 1e-4);
  REQUIRE(quick.warmup_steps == 100);
  REQUIRE(quick.beta2 == 0.99);
  REQUIRE(quick.weight_decay == 0.1);
  REQUIRE(quick.grad_clip == 1);
  REQUIRE(quick.dropout == 0);
  REQUIRE(quick.tokenizer == "char");
  REQUIRE(quick.val_fraction == 0.1);
  Config baby;
  apply_preset(baby, "baby");
  REQUIRE(baby.n_layer == 6);
  REQUIRE(baby.n_head == 6);
  REQUIRE(baby.n_embd == 384);
  REQUIRE(baby.block_size == 256);
  REQUIRE(baby.batch_size == 64);
  REQUIRE(baby.dropout == 0.2);
  REQUIRE(baby.max_steps == 5000);
  REQUIRE(baby.beta2 == 0.99);
  for (const std::string& name : preset_names()) {
    Config config;
    apply_preset(config, name);
    fill_open_fields(config);
    fill_dependent_defaults(config);
    validate(config);
    REQUIRE(config.lr_decay_steps == config.max_steps);
  }
}

TEST_CASE("fields that depend on the model are those of the model unless they are given") {
  for (const auto& [model, task, order, positions, attention] :
       {std::array{"gpt", "next_token", "pre", "learned", "softmax"},
        std::array{"linear", "next_token", "pre", "learned", "elu"},
        std::array{"transformer-xl", "next_token", "pre", "sinusoidal", "softmax"},
        std::array{"seq2seq", "translate", "post", "sinusoidal", "softmax"}}) {
    for (const std::string& preset : preset_names()) {
      INFO(model << ", " << preset);
      Config config;
      apply_preset(config, preset);
      config.model = model;
      fill_open_fields(config);
      REQUIRE(config.task == task);
      REQUIRE(to_string(config.norm_order) == std::string_view(order));
      REQUIRE(to_string(config.positions) == std::string_view(positions));
      REQUIRE(config.attention == attention);
      REQUIRE(config.memory == (model == std::string("transformer-xl") ? config.block_size : 0));
      validate(config);
    }
    Config config;
    apply_preset(config, "quickstart");
    config.model = model;
    set_field(config, find_field("norm_order"), "pre");
    fill_open_fields(config);
    REQUIRE(config.norm_order == NormOrder::pre);
  }
}

TEST_CASE("the schedule ends with the run unless its end is given, which a run without an end needs") {
  Config config;
  config.max_steps = 30;
  config.lr_decay_steps = 0;
  fill_dependent_defaults(config);
  REQUIRE(config.lr_decay_steps == 30);
  config.max_steps = 0;
  fill_dependent_defaults(config);
  REQUIRE(config.lr_decay_steps == 30);
  config.lr_decay_steps = 0;
  REQUIRE(contains(error_message<Error>([&] { fill_dependent_defaults(config); }),
                   "lr_decay_steps: must be given if max_steps is 0"));
  config.schedule = "constant";
  fill_dependent_defaults(config);
}

TEST_CASE("what a row says its field needs are fields and values that exist, and help names the kinds") {
  for (const Field& field : fields()) {
    INFO(field.name);
    Config config;
    if (field.off) set_field(config, field, *field.off);
    for (const Condition& condition : field.conditions) {
      REQUIRE(condition.always <= field.off.has_value());
      if (condition.needs == kCorpus) continue;
      for (const std::string& value : condition.values) set_field(config, find_field(condition.needs), value);
    }
  }
  REQUIRE(contains(find_field("n_kv_head").help, "heads share (gpt, encoder); must divide"));
  REQUIRE(contains(find_field("respect_documents").help, " (next_token; not transformer-xl)"));
  REQUIRE(find_field("lora_alpha").conditions.size() == 1);
  REQUIRE(find_field("lora_alpha").help.ends_with("0: by 1"));
}

TEST_CASE("the rules between fields") {
  const auto said = [](auto change) {
    Config config;
    change(config);
    return error_message<Error>([&] { validate(config); });
  };
  REQUIRE(said([](Config&) {}).empty());
  REQUIRE(contains(said([](Config& c) { c.learning_rate = 0.00005; }),
                   "min_lr: must not exceed learning_rate; got 0.0001 and 5e-05; lower `min_lr` as well"));
  REQUIRE(said([](Config& c) {
            c.schedule = "constant";  // which has no end to reach
            c.learning_rate = 0.00005;
            c.phases = {{.start = 5, .end = 9, .learning_rate = 0.00001, .min_lr = 0.0001, .warmup_steps = 0}};
            lr_phases(c);
          }).empty());
  REQUIRE(contains(said([](Config& c) { c.teacher.assign(33, "run"); }), "teacher: must be at most 32 runs; got 33"));
  const std::string heads = said([](Config& c) { c.n_head = 3; });
  REQUIRE(contains(heads, "128"));
  REQUIRE(contains(heads, "3"));
  REQUIRE(said([](Config& c) { c.model = "linear"; }).empty());
  REQUIRE(said([](Config& c) {
            c.model = "linear";
            c.attention = "random:64";
          }).empty());
  REQUIRE(contains(said([](Config& c) { c.attention = "elu"; }),
                   "attention: has an effect only if model is linear; it is gpt"));
  REQUIRE(contains(said([](Config& c) {
                     c.model = "linear";
                     c.attention = "random:x";
                   }),
                   "random:x"));
  REQUIRE(contains(said([](Config& c) { c.memory = 64; }),
                   "memory: has an effect only if model is transformer-xl; it is gpt"));
  REQUIRE(contains(said([](Config& c) { c.model = "transformer-xl"; }),
                   "positions: has an effect only if model is not transformer-xl; it is transformer-xl; omit"));
  REQUIRE(said([](Config& c) {
            c.model = "transformer-xl";
            c.positions = Positions::sinusoidal;
            c.memory = 64;
          }).empty());
  REQUIRE(contains(set("ngram_orders", "3,2"), "ascending numbers from 2 to 8"));
  REQUIRE(said([](Config& c) { c.ngram_orders = {2, 3}; }).empty());
  REQUIRE(contains(said([](Config& c) { c.conv_width = 1; }), "conv_width: must be 0 or at least 2"));
  REQUIRE(said([](Config& c) { c.conv_width = 4; }).empty());
  REQUIRE(contains(said([](Config& c) {
                     c.conv_width = 4;
                     c.model = "transformer-xl";
                     c.positions = Positions::sinusoidal;
                   }),
                   "conv_width: has an effect only if model is gpt or linear or encoder; it is transformer-xl; omit"));
  REQUIRE(contains(said([](Config& c) {
                     c.qk_norm = true;
                     c.model = "transformer-xl";
                     c.positions = Positions::sinusoidal;
                   }),
                   "qk_norm: has an effect only if model is not transformer-xl; it is transformer-xl; omit `"));
  REQUIRE(said([](Config& c) { c.n_kv_head = 2; }).empty());
  REQUIRE(said([](Config& c) { c.n_kv_head = 4; }).empty());
  REQUIRE(contains(said([](Config& c) { c.n_kv_head = 3; }), "n_kv_head: must be 0 or divide n_head; got 3 and 4"));
  REQUIRE(contains(
      said([](Config& c) {
        c.n_kv_head = 2;
        c.model = "linear";
      }),
      "n_kv_head: has an effect only if model is gpt or encoder; it is linear; omit `n_kv_head`, or change model"));
  const std::string rates = said([](Config& c) { c.min_lr = 0.5; });
  REQUIRE(contains(rates, "min_lr"));
  REQUIRE(contains(rates, "0.5"));
  const auto phase = [](double min_lr) { return Phase{.end = 10, .learning_rate = 0.01, .min_lr = min_lr}; };
  REQUIRE(said([&](Config& c) { c.phases = {phase(0.01)}; }).empty());
  REQUIRE(contains(said([&](Config& c) { c.phases = {phase(0.02)}; }),
                   "phases: min_lr must not exceed learning_rate; got 0.02 and 0.01"));
  REQUIRE(contains(said([](Config& c) { c.optimizer = "muon", c.learning_rate = c.min_lr = 0; }),
                   "muon_lr: follows the schedule of learning_rate, which must therefore be above 0; got 0.02 and 0"));
  REQUIRE(said([](Config& c) { c.optimizer = "muon", c.learning_rate = c.min_lr = c.muon_lr = 0; }).empty());
  REQUIRE(contains(said([](Config& c) {
                     c.nesterov = true;
                     c.optimizer = "sgd";
                   }),
                   "nesterov: requires momentum greater than 0; got 0"));
  REQUIRE(said([](Config& c) {
            c.nesterov = true;
            c.momentum = 0.9;
          }).empty());
}

TEST_CASE(
    "a field for one kind of corpus is accepted as long as the corpus is not known, and refused for another kind") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "text");
  const auto said = [](const std::vector<std::string>& corpus, const std::string& name, const std::string& value) {
    Config config;
    config.corpus = corpus;
    set_field(config, find_field(name), value);
    const std::string words = error_message<Error>([&] { require_effect(config, std::vector{name}); });
    REQUIRE((value.empty() || has_effect(config, name) == words.empty()));
    return words;
  };
  for (const std::string& corpus : {folder / "none", file, folder.path(), std::string("-")})
    REQUIRE(said({corpus}, "json_field", "text").empty());
  for (const std::string& corpus : {folder / "none", folder.path()})
    REQUIRE(said({corpus}, "include", "*.txt").empty());
  REQUIRE(said({}, "json_field", "text").empty());
  REQUIRE(said({}, "include", "*.txt").empty());
  REQUIRE(said({"@stories"}, "json_field", "text") ==
          "json_field: has an effect only if corpus is a file or a directory; it is a built-in text; omit "
          "`json_field`, or change corpus");
  REQUIRE(contains(said({file}, "include", "*.txt"), "only if corpus is a directory; it is a file; omit `include`"));
  REQUIRE(contains(said({"-"}, "exclude", "*.txt"), "only if corpus is a directory; it is a file; omit `exclude`"));
  REQUIRE(said({"@stories"}, "json_field", "").empty());  // asks for nothing
}
