#include "train/app/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "autograd/core/check.h"
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

constexpr const char* kRefusesEmpty = "refuses empty";

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

// In messages "--batch-size" and "-n,--batch-size" are batch_size.
std::string name_in_messages(std::string names) {
  if (const std::size_t dashes = names.find("--"); dashes != std::string::npos) names.erase(0, dashes + 2);
  std::ranges::replace(names, '-', '_');
  return names;
}

// An empty text is mostly a variable of the shell that is not set, and verbs take it for an option that was not given.
Option refusing_empty(CLI::Option* option, const std::string& names) {
  const auto require_text = [option, names](const std::string& text) {
    check(!text.empty(), "{}: must not be empty; give a value{}", name_in_messages(names),
          option->get_required() ? "" : fmt::format(", or omit {}", names.substr(names.find(',') + 1)));
    return std::string();
  };
  option->check(require_text, "", kRefusesEmpty);
  return Option(*option);
}

// `help` already includes the default.
template <class Number, class Parse>
Option add_parsed(CLI::App& parser, const std::string& option, Number& value, const std::string& type,
                  const std::string& help, Parse parse) {
  const auto set = [&value, parse, name = name_in_messages(option)](const std::string& text) {
    value = parse(name, text);
  };
  return refusing_empty(with_value(parser.add_option_function<std::string>(all_spellings(option), set, help), type),
                        option);
}

auto whole_within(double low, double high) {
  return [low, high](const std::string& name, const std::string& text) { return parse_integer(name, text, low, high); };
}

}  // namespace

void Option::require() const { parser_->required(); }

const Option& Option::may_be_empty() const {
  parser_->get_validator(kRefusesEmpty)->active(false);
  return *this;
}

Command Command::add_verb(const std::string& name, const std::string& help) const {
  return {*parser_->add_subcommand(name, help)->group("Verbs"), *actions_};
}

void Command::set_action(Action action) const { (*actions_)[parser_] = std::move(action); }
void Command::set_footer(const std::string& text) const { parser_->footer(text); }

Option Command::add_argument(const std::string& name, std::string& value, const std::string& help) const {
  return refusing_empty(parser_->add_option(name, value, help)->transform(without_guard), name);
}

Option Command::add_argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return refusing_empty(parser_->add_option(name, values, help)->transform(without_guard), name);
}

Option Command::add_option(const std::string& name, std::string& value, const std::string& type,
                           const std::string& help) const {
  return refusing_empty(with_value(parser_->add_option(all_spellings(name), value, help), type), name);
}

Option Command::add_option(const std::string& name, std::optional<std::string>& value, const std::string& type,
                           const std::string& help) const {
  return Option(*with_value(parser_->add_option(all_spellings(name), value, help), type));
}

Option Command::add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                         const std::string& help) const {
  CLI::Option* const list = with_value(parser_->add_option(all_spellings(name), values, help), type)
                                ->expected(1)
                                ->allow_extra_args(false)
                                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return refusing_empty(list, name);
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
