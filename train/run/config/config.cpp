// Setting fields, the presets, and the rules that relate fields to each other.
#include "train/run/config/config.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "data/io/error.h"
#include "data/io/hash.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "nn/features.h"
#include "optim/lr_schedule.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/models.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

struct Preset {
  const char* name;
  void (*apply)(Config&);
};
// quickstart: the defaults of Config, which follow nanoGPT's CPU quick start. baby: nanoGPT's train_shakespeare_char.
// translate: for some 50,000 sentence pairs, in half an hour on two cores.
constexpr Preset kPresetRows[] = {
    {"quickstart",
     [](Config& c) {
       const Config defaults;
       for (const Field& field : fields()) {
         if (field.is_training() || field.name == "max_steps") copy_field(field, defaults, c);
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
    {"translate",
     [](Config& c) {
       c.model = "seq2seq";
       c.tokenizer = "word";
       c.n_layer = 2;
       c.n_embd = 256;
       c.batch_size = 64;
       c.dropout = 0.2;
       c.label_smoothing = 0.1;
       c.val_fraction = 0.01;
       c.max_steps = 12000;
       c.eval_interval = c.checkpoint_interval = 1000;
       c.sample_interval = 2000;
       c.min_lr = 1e-5;
       c.warmup_steps = 1000;
       c.beta2 = 0.98;
       c.weight_decay = 0.01;
     }},
};
constexpr Table kPresets("preset", kPresetRows);

void check_choice(const Field& field, const std::string& value) {
  if (field.choices.empty() || std::ranges::find(field.choices, value) != field.choices.end()) return;
  throw Error(unknown_name(field.name, value, field.choices));
}

struct SetFromText {
  Config& config;
  const Field& field;
  std::string_view text;

  void operator()(std::int64_t Config::*member) const {
    config.*member = parse_integer(field.name, text, field.low, field.high);
  }
  void operator()(double Config::*member) const {
    config.*member = parse_number(field.name, text, field.low, field.high);
  }
  void operator()(bool Config::*member) const {
    check(text == "true" || text == "false", "{}: must be true or false; got {}", field.name,
          truncate_for_message(text));
    config.*member = text == "true";
  }
  void operator()(std::string Config::*member) const {
    std::string value(text);
    check_choice(field, value);
    config.*member = std::move(value);
  }
  void operator()(const NamedMember& member) const { member.set(config, field.name, text); }
  void operator()(std::vector<std::string> Config::*member) const {
    (config.*member).clear();
    if (!text.empty()) (config.*member).emplace_back(text);
  }
};

struct Copy {
  const Field& field;
  const Config& from;
  Config& to;

  void operator()(auto member) const { to.*member = from.*member; }
  void operator()(NamedMember member) const { member.set(to, field.name, member.name(from)); }
};

}  // namespace

void set_field(Config& config, const Field& field, std::string_view text) {
  std::visit(SetFromText{config, field, text}, field.member);
  config.open.erase(field.name);
}

void copy_field(const Field& field, const Config& from, Config& to) {
  std::visit(Copy{field, from, to}, field.member);
  to.open.erase(field.name);
}

void set_list(Config& config, const Field& field, std::vector<std::string> entries) {
  config.*std::get<std::vector<std::string> Config::*>(field.member) = std::move(entries);
}

std::vector<std::string> preset_names() { return kPresets.names(); }

void apply_preset(Config& config, const std::string& name) {
  kPresets.row(name).apply(config);
  leave_open(config);
}

void fill_dependent_defaults(Config& config) {
  if (config.lr_decay_steps != 0) return;
  check(config.max_steps > 0 || !schedule_ends(config),
        "lr_decay_steps: must be given if max_steps is 0, because it is the step at which the schedule ends");
  config.lr_decay_steps = config.max_steps;
}

namespace {

// Patterns of the names of parameters. A checkpoint contains them, so their size is limited: two lists have 16 KiB at
// most, and the configuration kMaxConfigBytes.
void check_patterns(const char* name, const std::vector<std::string>& patterns) {
  constexpr std::size_t kMaxPatterns = 64, kMaxPatternBytes = 128;
  check(patterns.size() <= kMaxPatterns, "{}: must be at most {} patterns; got {}; use patterns that match more", name,
        kMaxPatterns, patterns.size());
  for (const std::string& pattern : patterns) {
    check(!pattern.empty() && pattern.size() <= kMaxPatternBytes, "{}: a pattern must have 1 to {} bytes; got {}", name,
          kMaxPatternBytes, pattern.empty() ? "an empty one" : truncate_for_message(pattern));
  }
}

void check_heads(const Config& c) {
  check(c.n_embd % c.n_head == 0, "n_embd: must be a multiple of n_head; got {} and {}", c.n_embd, c.n_head);
  check(c.n_kv_head == 0 || c.n_head % c.n_kv_head == 0, "n_kv_head: must be 0 or divide n_head; got {} and {}",
        c.n_kv_head, c.n_head);
}

void check_learning_rates(const Config& c) {
  const bool has_min_lr = has_effect(c, "min_lr");
  check(!has_min_lr || c.min_lr <= c.learning_rate,
        "min_lr: must not exceed learning_rate; got {} and {}; lower `min_lr` as well", c.min_lr, c.learning_rate);
  check(c.muon_lr == 0 || c.learning_rate > 0 || !has_effect(c, "muon_lr"),
        "muon_lr: follows the schedule of learning_rate, which must therefore be above 0; got {} and {}", c.muon_lr,
        c.learning_rate);
  check(!c.nesterov || c.momentum > 0 || !has_effect(c, "nesterov"),
        "nesterov: requires momentum greater than 0; got {}; set momentum, for example to 0.9", c.momentum);
  for (std::size_t i = 0; i < c.phases.size(); ++i) {
    const Phase& phase = c.phases[i];
    check(i == 0 || phase.start > c.phases[i - 1].start, "phases: must start in ascending order; got steps {} and {}",
          i == 0 ? 0 : c.phases[i - 1].start, phase.start);
    check(phase.end > phase.start, "phases: must end after they start; got steps {} to {}", phase.start, phase.end);
    check(!has_min_lr || phase.min_lr <= phase.learning_rate,
          "phases: min_lr must not exceed learning_rate; got {} and {}", phase.min_lr, phase.learning_rate);
  }
}

// A text that is shown on terminals, so it must not hold control characters: letters, digits and `marks`.
void check_words(const char* name, const std::string& words, const char* what, std::string_view marks) {
  constexpr std::size_t kMaxBytes = 2000;
  const bool allowed = std::ranges::all_of(words, [&](char each) {
    return (each >= '0' && each <= '9') || (each >= 'A' && each <= 'Z') || (each >= 'a' && each <= 'z') ||
           marks.find(each) != std::string_view::npos;
  });
  check(allowed && words.size() <= kMaxBytes, "{}: must be {}; got {}", name, what, truncate_for_message(words));
}

}  // namespace

void validate(const Config& c) {
  task_rule(c);                  // throws
  parse_attention(c.attention);  // throws
  require_effective_values(c);
  check_heads(c);
  check(c.conv_width != 1, "conv_width: must be 0 or at least 2, because 1 would mix no tokens; got 1");
  check_patterns("lora_targets", c.lora_targets);
  check_patterns("freeze", c.freeze);
  check_learning_rates(c);
  check(c.init_from.empty() || is_hash(c.init_from),
        "init_from: must be a hash of 32 lower-case hexadecimal digits; got {}", truncate_for_message(c.init_from));
  constexpr std::size_t kMaxTeachers = 32;  // what they are is part of every checkpoint
  check(c.teacher.size() <= kMaxTeachers, "teacher: must be at most {} runs; got {}; name fewer", kMaxTeachers,
        c.teacher.size());
  check_words("taught_by", c.taught_by, "a weight and hashes", ".- ");
  check_words("arithmetic", c.arithmetic, "names such as fused or amx, with commas between them", "_, ");
  check_paths(c);
}

void check_paths(const Config& c) {
  const auto check_text = [](const char* name, const std::string& text, const char* what) {
    check(!invalid_utf8(text), "{}: must be valid UTF-8, because config.toml stores it; got {}; choose another {}",
          name, replace_invalid_utf8(text), what);
  };
  check_text("out", c.out, "name");
  check_text("encoding", c.encoding, "name");
  check_text("json_field", c.json_field, "name");
  check_text("document_separator", c.document_separator, "line");
  for (const std::string& pattern : c.include) check_text("include", pattern, "pattern");
  for (const std::string& pattern : c.exclude) check_text("exclude", pattern, "pattern");
  for (const std::string& pattern : c.lora_targets) check_text("lora_targets", pattern, "pattern");
  for (const std::string& pattern : c.freeze) check_text("freeze", pattern, "pattern");
  for (const std::string& teacher : c.teacher) {
    check_text("teacher", teacher, "name");
    own_teacher_steps(teacher);  // throws for a name that is neither
  }
  check(std::ranges::count(c.teacher, kCountingTeacher) <= 1, "teacher: {} can be named once; got it {} times",
        kCountingTeacher, std::ranges::count(c.teacher, kCountingTeacher));
  for (const std::string& source : c.corpus) {
    check<CorpusError>(!invalid_utf8(source),
                       "{}: the path of a corpus must be valid UTF-8, because config.toml stores it; rename it, or "
                       "pass the text on standard input with -",
                       replace_invalid_utf8(source));
  }
}

std::vector<FieldDifference> training_differences(const Config& a, const Config& b) {
  std::vector<FieldDifference> list;
  for (const Field& field : fields()) {
    if (!field.is_training()) continue;
    const std::string first = field_text(a, field), second = field_text(b, field);
    if (first != second) list.push_back({field.name, first, second});
  }
  if (a.init_from != b.init_from) list.push_back({"init_from", a.init_from, b.init_from});
  if (a.taught_by != b.taught_by) list.push_back({"taught_by", a.taught_by, b.taught_by});
  if (a.phases != b.phases) list.push_back({"phases", phases_text(a), phases_text(b)});
  return list;
}

std::vector<std::string> model_field_names() {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (field.kind == FieldClass::model) names.push_back(field.name);
  }
  return names;
}

const Field& find_field(std::string_view name) {
  const auto found = std::ranges::find(fields(), name, &Field::name);
  if (found != fields().end()) return *found;
  std::vector<std::string> names = {"corpus"};
  for (const Field& field : fields()) names.push_back(field.name);
  fail("configuration: unknown field {}{}; this version knows those that it writes to config.toml",
       truncate_for_message(name), nearest_hint(name, names));
}

std::vector<Phase> phases_before(const Config& config, std::int64_t step) {
  std::vector<Phase> begun = config.phases;
  std::erase_if(begun, [step](const Phase& phase) { return phase.start >= step; });
  return begun;
}

Phase last_phase(const Config& c) {
  if (!c.phases.empty()) return c.phases.back();
  return {0, c.lr_decay_steps, c.learning_rate, c.min_lr, c.warmup_steps};
}

std::int64_t first_learned_step(const Config& config) {
  return config.ngram_prior > 0 || !config.init_from.empty() ? 0 : 1;
}

bool is_run(const std::string& teacher) { return !teacher.starts_with('@'); }

std::optional<std::int64_t> own_teacher_steps(const std::string& teacher) {
  constexpr std::string_view kOwn = "@own:";
  if (is_run(teacher) || teacher == kCountingTeacher) return std::nullopt;
  check(teacher.starts_with(kOwn),
        "teacher: a name that begins with @ must be {}, or @own:STEPS, a teacher that the run trains itself; got {}; "
        "write ./{} for a directory of that name",
        kCountingTeacher, truncate_for_message(teacher), truncate_for_message(teacher));
  return parse_integer("teacher: the steps of @own", std::string_view(teacher).substr(kOwn.size()), 1, kMaxCount);
}

bool has_own_teachers(const Config& config) {
  return std::ranges::any_of(config.teacher,
                             [](const std::string& teacher) { return own_teacher_steps(teacher).has_value(); });
}

bool has_counting_teacher(const Config& config) {
  return std::ranges::find(config.teacher, kCountingTeacher) != config.teacher.end();
}

bool schedule_ends(const Config& config) { return lr_decay_named(config.schedule)->ends; }

}  // namespace maki
