#include "train/cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "data/text/error.h"
#include "data/text/file.h"
#include "train/config/field_effects.h"
#include "train/config/models.h"
#include "train/config/number.h"

namespace maki {

namespace {

// `help` already includes the default.
template <class Number, class Parse>
CLI::Option* add_parsed(CLI::App& command, const std::string& option, Number& value, const std::string& help,
                        Parse parse) {
  std::string name = option.substr(option.find("--") + 2);  // "-n,--samples" is samples
  std::ranges::replace(name, '-', '_');
  return command
      .add_option_function<std::string>(
          option, [&value, parse, name](const std::string& text) { value = parse(name, text); }, help)
      ->type_name("VALUE")
      ->take_last();
}

auto whole_within(double low, double high) {
  return [low, high](const std::string& name, const std::string& text) { return parse_integer(name, text, low, high); };
}

}  // namespace

CLI::Option* add_number(CLI::App& command, const std::string& option, std::int64_t& value, double low, double high,
                        const std::string& help) {
  return add_parsed(command, option, value, fmt::format("{} [{}]", help, value), whole_within(low, high));
}

CLI::Option* add_number(CLI::App& command, const std::string& option, std::optional<std::int64_t>& value, double low,
                        double high, const std::string& help) {
  return add_parsed(command, option, value, help, whole_within(low, high));
}

CLI::Option* add_number(CLI::App& command, const std::string& option, double& value, double low, double high,
                        const std::string& help) {
  return add_parsed(
      command, option, value, fmt::format("{} [{}]", help, value),
      [low, high](const std::string& name, const std::string& text) { return parse_number(name, text, low, high); });
}

void add_search_options(CLI::App& command, std::int64_t& beam_size, double& length_penalty) {
  constexpr double kMaxBeam = 1000, kMaxLengthPenalty = 100;
  add_number(command, "--beam", beam_size, 1, kMaxBeam,
             "models that translate: hypotheses that beam search keeps; 1: greedy search");
  add_number(command, "--length-penalty", length_penalty, 0, kMaxLengthPenalty,
             "models that translate: a higher value prefers longer translations");
}

void add_reading_options(CLI::App& command, const std::string& texts, std::string& unknown, std::string& checkpoint,
                         std::int64_t& threads) {
  command
      .add_option("--unknown", unknown,
                  fmt::format("what to do with characters of {} that are not in the vocabulary [error]", texts))
      ->type_name("error|skip|replace")
      ->take_last();
  command.add_option("--checkpoint", checkpoint, "checkpoint to use: last, best or a step [best, else last]")
      ->type_name("WHICH")
      ->take_last();
  add_number(command, "--threads", threads, 0, kMaxThreads, "number of threads; 0: OMP_NUM_THREADS, else one per core");
}

ConfigFlags::ConfigFlags(CLI::App& command, const std::vector<std::string>& names) {
  const Config defaults;
  command.add_option("--preset", preset_, fmt::format("predefined configuration: {}", fmt::join(preset_names(), ", ")))
      ->type_name("NAME")
      ->take_last();
  command.add_option("--config", config_file_, "TOML file that sets fields by their names")
      ->type_name("FILE")
      ->take_last();
  for (const Field& field : fields()) {
    const bool wanted = names.empty() || std::ranges::find(names, field.name) != names.end();
    if (!field.flag || !wanted) continue;
    Given& given = *given_.emplace_back(std::make_unique<Given>(Given{&field, {}, {}}));
    const std::string group = !names.empty()                       ? "Options"
                              : field.kind == FieldClass::model    ? "Model (fixed for the run)"
                              : field.kind == FieldClass::training ? "Training (fixed for the run)"
                                                                   : "Run (may change on --resume)";
    const std::string value = field_text(defaults, field);
    if (field.is_boolean()) {
      const std::string both = fmt::format("{0},!--no-{1}", field.option(), field.option().substr(2));
      given.option =
          command.add_flag(both, given.text, fmt::format("{} [{}]", field.help, value))->take_last()->group(group);
      continue;
    }
    if (field.is_list()) {
      given.option = command.add_option(field.option(), given.list, field.help)
                         ->expected(1)
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                         ->type_name("GLOB")
                         ->group(group);
      continue;
    }
    const std::string type = field.choices.empty() ? "VALUE" : fmt::format("{}", fmt::join(field.choices, "|"));
    const bool quoted = value.front() == '\'' || value.front() == '"';
    const std::string bare = quoted ? value.substr(1, value.size() - 2) : value;
    const std::string shown = bare.empty() ? "" : fmt::format(" [{}]", bare);
    given.option =
        command.add_option(field.option(), given.text, field.help + shown)->type_name(type)->take_last()->group(group);
  }
}

namespace {

// read_file() reports a CorpusError (exit code 3), but an unreadable configuration is a usage error (2).
std::string read_configuration(const std::string& path) {
  try {
    std::error_code unknown;  // set for a pipe, which has no size
    const auto size = std::filesystem::file_size(path, unknown);
    check(unknown || size <= kMaxConfigBytes, "{}: must have at most {} bytes; got {}", path, kMaxConfigBytes, size);
    return read_file(path);
  } catch (const CorpusError& error) {
    throw Error(error.what());
  }
}

}  // namespace

void ConfigFlags::apply(Config& config, const std::string& default_preset) const {
  const std::string preset = preset_.empty() ? default_preset : preset_;
  if (!preset.empty()) apply_preset(config, preset);
  if (!config_file_.empty()) apply_toml(config, read_configuration(config_file_), config_file_);
  for (const auto& given : given_) {
    if (given->option->count() == 0) continue;
    if (given->field->is_list()) {
      set_list(config, *given->field, given->list);
    } else {
      set_field(config, *given->field, given->text);
    }
  }
  fill_open_fields(config);
}

void ConfigFlags::require_effect(const Config& config) const {
  std::vector<std::string> names;
  for (const auto& given : given_) {
    if (given->option->count() > 0) names.push_back(given->field->name);
  }
  maki::require_effect(config, names);
}

std::vector<std::string> ConfigFlags::given() const {
  std::vector<std::string> options;
  if (!preset_.empty()) options.emplace_back("--preset");
  if (!config_file_.empty()) options.emplace_back("--config");
  for (const auto& given : given_) {
    if (given->option->count() > 0) options.push_back(given->field->option());
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
  config.target = kernels::target();
}

}  // namespace maki
