#include "train/app/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "data/io/number.h"
#include "train/app/help.h"

namespace maki {

namespace {

// Names that other programs use for our options. No verb has two options of the same alias.
constexpr std::pair<const char*, const char*> kAliases[] = {
    {"-o", "--out"},
    {"-q", "--quiet"},
    {"--lr", "--learning-rate"},
    {"--temp", "--temperature"},
    {"-n", "--max-steps"},
    {"-n", "--steps"},
    {"--steps", "--max-steps"},
    {"--max-iters", "--max-steps"},
    {"--warmup-iters", "--warmup-steps"},
    {"--wd", "--weight-decay"},
    {"--batch", "--batch-size"},
    {"--mlp", "--activation"},
    {"--num-samples", "--samples"},
    {"--max-new-tokens", "--max-tokens"},
    {"--out-dir", "--out"},
    {"--gradient-accumulation-steps", "--grad-accum"},
    {"--epoch", "--epochs"},
    {"--num-epochs", "--epochs"},
    {"--num-train-epochs", "--epochs"},
};

// The names of an option, then its aliases, then all of them with underscores.
std::string all_spellings(const std::string& names) {
  std::vector<std::string> all = CLI::detail::split(names, ',');
  for (const auto& [alias, name] : kAliases) {
    if (std::ranges::find(all, name) != all.end()) all.emplace_back(alias);
  }
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    std::string other = all[i];
    std::replace(other.begin() + static_cast<std::ptrdiff_t>(other.find_first_not_of("!-")), other.end(), '-', '_');
    if (other != all[i]) all.push_back(std::move(other));
  }
  return CLI::detail::join(all);
}

// What all options with a value have in common.
CLI::Option* with_value(CLI::Option* option, const std::string& type) {
  return option->transform(without_guard)->type_name(type)->take_last();
}

// In messages "--batch-size" and "-n,--batch-size" are batch_size. `help` already includes the default.
template <class Number, class Parse>
Option add_parsed(CLI::App& parser, const std::string& option, Number& value, const std::string& type,
                  const std::string& help, Parse parse) {
  std::string name = option.substr(option.find("--") + 2);
  std::ranges::replace(name, '-', '_');
  const auto set = [&value, parse, name](const std::string& text) { value = parse(name, text); };
  return Option(*with_value(parser.add_option_function<std::string>(all_spellings(option), set, help), type));
}

auto whole_within(double low, double high) {
  return [low, high](const std::string& name, const std::string& text) { return parse_integer(name, text, low, high); };
}

}  // namespace

void Option::require() const { parser_->required(); }

Command Command::add_verb(const std::string& name, const std::string& help) const {
  return {*parser_->add_subcommand(name, help)->group("Verbs"), *actions_};
}

void Command::set_action(Action action) const { (*actions_)[parser_] = std::move(action); }
void Command::set_footer(const std::string& text) const { parser_->footer(text); }

Option Command::add_argument(const std::string& name, std::string& value, const std::string& help) const {
  return Option(*parser_->add_option(name, value, help)->transform(without_guard));
}

Option Command::add_argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return Option(*parser_->add_option(name, values, help)->transform(without_guard));
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& type,
                           const std::string& help) const {
  return Option(*with_value(parser_->add_option(all_spellings(name), value, help), type));
}

Option Command::add_option(const std::string& name, std::optional<std::string>& value, const std::string& type,
                           const std::string& help) const {
  return Option(*with_value(parser_->add_option(all_spellings(name), value, help), type));
}

Option Command::add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                         const std::string& help) const {
  return Option(*with_value(parser_->add_option(all_spellings(name), values, help), type)
                     ->expected(1)
                     ->allow_extra_args(false)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(*parser_->add_flag(all_spellings(name), value, help)->disable_flag_override());
}

Option Command::add_flag(const std::string& name, std::string& value, const std::string& help) const {
  return Option(*parser_->add_flag(all_spellings(name), value, help)->disable_flag_override()->take_last());
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
