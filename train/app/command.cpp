#include "train/app/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "data/io/number.h"
#include "train/app/command_words.h"

namespace maki {

namespace {

// `option` is "--name", or a short form and then "--name"; in messages "--batch-size" is batch_size. `help` already
// includes the default.
template <class Number, class Parse>
Option add_parsed(CLI::App& parser, const std::string& option, Number& value, const std::string& type,
                  const std::string& help, Parse parse) {
  std::string name = option.substr(option.find("--") + 2);  // "-n,--samples" is samples
  std::ranges::replace(name, '-', '_');
  const auto set = [&value, parse, name](const std::string& text) { value = parse(name, text); };
  return Option(*parser.add_option_function<std::string>(option, set, help)->type_name(type)->take_last());
}

auto whole_within(double low, double high) {
  return [low, high](const std::string& name, const std::string& text) { return parse_integer(name, text, low, high); };
}

}  // namespace

void Option::require() const { parser_->required(); }
void Option::list_under(const std::string& title) const { parser_->group(title); }

Command Command::add_verb(const std::string& name, const std::string& help) const {
  return {*parser_->add_subcommand(name, help)->group("Verbs"), *actions_};
}

void Command::set_action(Action action) const { (*actions_)[parser_] = std::move(action); }
void Command::set_footer(const std::string& text) const { parser_->footer(text); }

Option Command::add_argument(const std::string& name, std::string& value, const std::string& help) const {
  return Option(*parser_->add_option(name, value, help)->transform(without_bracket_guard));
}

Option Command::add_argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return Option(*parser_->add_option(name, values, help)->transform(without_bracket_guard));
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& type,
                           const std::string& help) const {
  return Option(*parser_->add_option(name, value, help)->type_name(type)->take_last());
}

Option Command::add_option(const std::string& name, std::optional<std::string>& value, const std::string& type,
                           const std::string& help) const {
  return Option(*parser_->add_option(name, value, help)->type_name(type)->take_last());
}

Option Command::add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                         const std::string& help) const {
  return Option(*parser_->add_option(name, values, help)
                     ->expected(1)
                     ->allow_extra_args(false)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                     ->type_name(type));
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(*parser_->add_flag(name, value, help));
}

Option Command::add_flag(const std::string& name, std::string& value, const std::string& help) const {
  return Option(*parser_->add_flag(name, value, help)->take_last());
}

Option Command::add_number(const std::string& name, std::int64_t& value, double low, double high,
                           const std::string& help) const {
  return add_parsed(*parser_, name, value, "N", fmt::format("{} [{}]", help, value), whole_within(low, high));
}

Option Command::add_number(const std::string& name, std::optional<std::int64_t>& value, double low, double high,
                           const std::string& help) const {
  return add_parsed(*parser_, name, value, "N", help, whole_within(low, high));
}

Option Command::add_number(const std::string& name, double& value, double low, double high, const std::string& type,
                           const std::string& help) const {
  const auto parse = [low, high](const std::string& field, const std::string& text) {
    return parse_number(field, text, low, high);
  };
  return add_parsed(*parser_, name, value, type, fmt::format("{} [{}]", help, short_number(value)), parse);
}

void Command::list_under(const std::string& option, const std::string& title) const {
  parser_->get_option(option)->group(title);
}

bool Command::given(const std::string& option) const { return parser_->get_option(option)->count() > 0; }

std::vector<std::string> Command::given_among(std::vector<std::string> options) const {
  std::erase_if(options, [this](const std::string& option) { return !given(option); });
  return options;
}

}  // namespace maki
