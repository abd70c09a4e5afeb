#include "train/app/flags.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/number.h"
#include "train/app/spelling.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/models.h"

namespace maki {

void add_threads_option(const Command& command, std::int64_t& threads) {
  command.add_number("--threads", threads, 0, kMaxThreads, "number of threads; 0: OMP_NUM_THREADS, else one per core");
}

void add_search_options(const Command& command, std::int64_t& beam_size, double& length_penalty) {
  constexpr double kMaxBeam = 1000, kMaxLengthPenalty = 100;  // hypotheses, exponent: far beyond useful values
  command.add_number("--beam", beam_size, 1, kMaxBeam,
                     "number of hypotheses that beam search keeps when a model translates; 1: greedy search");
  command.add_number("--length-penalty", length_penalty, 0, kMaxLengthPenalty, "EXPONENT",
                     "exponent of the length by which the score of a translation is divided: a higher one prefers "
                     "longer translations");
}

void check_search(const Command& command, const char* verb, std::int64_t beam_size) {
  check(
      beam_size > 1 || !command.given("--length-penalty"),
      "{}: --length-penalty chooses among the hypotheses of a beam, and greedy search keeps one; add --beam with more "
      "than 1, or omit it",
      verb);
}

void add_special_option(const Command& command, const std::string& texts, bool& special) {
  command.add_flag(
      "--special", special,
      fmt::format("read special tokens that are written in {}, such as <|endoftext|>, as these tokens", texts));
}

void add_force(const Command& command, bool& force) {
  command.add_flag("--force", force, "replace an output that exists already, unless this command reads it");
}

void check_force(const char* option, const std::string& out, bool force) {
  check(!force || !out.empty(), "force: replaces the file of {0}; add {0}, or omit --force", option);
}

namespace {

constexpr const char* kCommonFields[] = {"out",    "tokenizer",  "vocab_size", "n_layer",   "n_embd",
                                         "n_head", "block_size", "batch_size", "max_steps", "learning_rate"};

const char* title_of(const Field& field) {
  if (std::ranges::find(kCommonFields, field.name) != std::end(kCommonFields)) return kCommonOptions;
  switch (field.kind) {
    case FieldClass::model:
      return "Model (fixed for the run)";
    case FieldClass::training:
    case FieldClass::teachers:
      return "Training (fixed for the run)";
    case FieldClass::run:
      break;
  }
  return "Run (may change on --resume)";
}

// " [value]" as help shows it; "" if there is none.
std::string shown_default(const Field& field) {
  const Config defaults;
  const auto* const decimal = std::get_if<double Config::*>(&field.member);
  std::string value = field.usual;
  if (value.empty() && decimal != nullptr) value = short_number(defaults.**decimal);
  if (value.empty() && !field.is_list()) value = option_text(defaults, field);
  return value.empty() ? "" : fmt::format(" [{}]", value);
}

}  // namespace

void ConfigFlags::add(Given& given, bool shows_default) {
  const Field& field = *given.field;
  const std::string option = field.option(), help = field.help + (shows_default ? shown_default(field) : "");
  if (field.is_boolean()) {
    command_.add_flag(option + ",!--no-" + option.substr(2), given.text, help);
  } else if (field.is_list()) {
    command_.add_list(option, given.list, field.type, help);
  } else {
    const Option text = command_.add_option(option, given.text, field.type, help);
    // Such as --json-field '', where a run reads its text with one. The usual encoding has a name.
    if (field.off == "" && field.usual.empty()) text.may_be_empty();
  }
}

ConfigFlags::ConfigFlags(const Command& command, const std::vector<std::string>& names, Unset unset)
    : command_(command) {
  if (unset == Unset::preset_or_file) {
    command.add_option("--preset", preset_, "NAME",
                       fmt::format("predefined configuration: {}", fmt::join(preset_names(), ", ")));
  }
  if (unset == Unset::preset_or_file || unset == Unset::file) {
    command.add_option("--config", config_file_, "FILE", "TOML file that sets options by their names, with _ for -");
  }
  for (const Field& field : fields()) {
    const bool wanted = names.empty() || std::ranges::find(names, field.name) != names.end();
    if (!field.flag || !wanted) continue;
    add(*given_.emplace_back(std::make_unique<Given>(Given{&field, {}, {}})), unset != Unset::stored);
    if (names.empty()) command.list_under(field.option(), title_of(field));
  }
  if (!names.empty()) return;
  for (const char* const option : {"--preset", "--config"}) command.list_under(option, kCommonOptions);
}

void ConfigFlags::apply(Config& config, const std::string& default_preset) const {
  const std::string preset = preset_.empty() ? default_preset : preset_;
  if (!preset.empty()) apply_preset(config, preset);
  check(config_file_ != "-", "config: must be a file; got -, which is the standard input; name a file");
  if (!config_file_.empty()) {
    keys_ = apply_toml(config, read_file(config_file_, throw_as<Error>, kMaxConfigBytes), config_file_);
    std::vector<std::string> keys = keys_;
    const std::vector<std::string> options = given_fields();
    std::erase_if(keys, [&](const auto& key) { return std::ranges::find(options, key) != options.end(); });
    spell_as_keys(std::move(keys));
  }
  for (const auto& given : given_) {
    if (!is_given(*given)) continue;
    if (given->field->is_list()) {
      set_list(config, *given->field, given->list);
    } else {
      set_field(config, *given->field, given->text);
    }
  }
  fill_open_fields(config);
}

std::vector<std::string> ConfigFlags::given_fields() const {
  std::vector<std::string> names;
  for (const auto& given : given_) {
    if (is_given(*given)) names.push_back(given->field->name);
  }
  return names;
}

bool ConfigFlags::sets(std::string_view field) const {
  const std::vector<std::string> options = given_fields();
  return std::ranges::find(options, field) != options.end() || std::ranges::find(keys_, field) != keys_.end();
}

void ConfigFlags::complete(Config& config) const {
  fill_dependent_defaults(config);
  validate(config);
  require_effect(config);
}

void ConfigFlags::require_effect(const Config& config) const { maki::require_effect(config, given_fields()); }

std::vector<std::string> ConfigFlags::given() const {
  std::vector<std::string> options;
  if (!preset_.empty()) options.emplace_back("--preset");
  if (!config_file_.empty()) options.emplace_back("--config");
  for (const auto& given : given_) {
    if (is_given(*given)) options.push_back(given->field->option());
  }
  return options;
}

std::vector<std::string> model_fields_and(const std::vector<std::string>& others,
                                          const std::vector<std::string>& except) {
  std::vector<std::string> names = model_field_names();
  std::erase_if(names, [&](const std::string& name) { return std::ranges::find(except, name) != except.end(); });
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

void use_threads(Config& config) {
  if (config.threads > 0) set_threads(config.threads);
  threads();  // throws if the environment asks for too many, before anything is made
  config.target = kernels::target();
  // CPUs with and without these instructions share a target, but in bfloat16 not the bits of their products.
  const std::string_view instructions = kernels::bf16_instructions();
  if (config.precision == Precision::bfloat16 && !instructions.empty()) {
    config.target += fmt::format(", {}", instructions);
  }
}

}  // namespace maki
