#include "train/app/command_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/ranges.h>
#include <system_error>
#include <utility>

#include "autograd/core/nearest.h"
#include "data/io/shell_quote.h"
#include "train/app/progress.h"

namespace maki {
namespace {

struct Alias {
  const char *alias, *name;
};

// Names that other programs use for our options. An alias may have several rows: the first whose option the verb has
// applies.
constexpr Alias kOptionAliases[] = {
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

constexpr Alias kVerbAliases[] = {
    {"sample", "generate"}, {"complete", "generate"}, {"write", "generate"}, {"chat", "generate"}, {"fit", "train"},
    {"resume", "train"},    {"test", "eval"},         {"validate", "eval"},  {"info", "inspect"},  {"show", "inspect"},
};

std::vector<const CLI::App*> subcommands_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

std::string path_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : path_of(*parent) + " " + command.get_name();
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// The option of `command` that `word` stands for; `word` itself if there is none.
std::string canonical_option(const CLI::App& command, const std::string& word) {
  const auto has = [&](const std::string& name) { return command.get_option_no_throw(name) != nullptr; };
  if (has(word)) return word;
  const std::string name = with_dashes(word);
  if (has(name)) return name;
  for (const Alias& known : kOptionAliases) {
    if (name == known.alias && has(known.name)) return known.name;
  }
  return word;
}

struct VerbOption {
  std::string name;
  const CLI::App* verb;
};

// Appends the options that `command` and its subcommands show in their help.
void collect_options(const CLI::App& command, std::vector<VerbOption>& options) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) options.push_back({"--" + name, &command});
  }
  for (const CLI::App* sub : subcommands_of(command)) collect_options(*sub, options);
}

std::string unknown_option(const CLI::App& app, const CLI::App& command, const std::string& given) {
  std::vector<VerbOption> options;
  collect_options(app, options);
  // Options of this verb come first, so that they win a tie between equally near names.
  std::stable_partition(options.begin(), options.end(),
                        [&](const VerbOption& option) { return option.verb == &command; });
  const std::string see = fmt::format("; see {} --help", path_of(command));

  std::vector<const CLI::App*> owners;
  std::vector<std::string> names;
  for (const auto& [name, verb] : options) {
    if (verb != &app && canonical_option(*verb, given) == name) owners.push_back(verb);
    names.push_back(name.substr(2));
  }
  if (!owners.empty() && (&command == &app || owners.front() == &command))
    return fmt::format("{0}: options come after the verb, as in {1} {0}{2}", given, path_of(*owners.front()), see);
  if (!owners.empty()) {
    std::string list = path_of(*owners.front());
    for (std::size_t i = 1; i < owners.size(); ++i)
      list += (i + 1 < owners.size() ? ", " : " and ") + path_of(*owners[i]);
    return fmt::format("{}: is an option of {}, not of {}{}", given, list, path_of(command), see);
  }
  const std::string word = with_dashes(given.substr(std::min(given.size(), given.find_first_not_of('-'))));
  const std::string nearest = nearest_name(word, names);
  const CLI::App* const owner =
      nearest.empty() ? &command
                      : options[static_cast<std::size_t>(std::ranges::find(names, nearest) - names.begin())].verb;
  // A name of three letters is near to almost every other one; that of another verb was hardly meant.
  if (nearest.empty() || (owner != &command && nearest.size() <= 3))
    return fmt::format("{}: unknown option{}", given, see);
  return fmt::format("{}: unknown option; the nearest is --{}{}{}", given, nearest,
                     owner == &command ? "" : " of " + path_of(*owner), see);
}

std::string unknown_verb(const CLI::App& command, const std::string& word) {
  const std::vector<std::string> verbs = verb_names(command);
  const bool outermost = command.get_parent() == nullptr;
  const auto* const alias = outermost ? std::ranges::find(kVerbAliases, word, &Alias::alias) : std::end(kVerbAliases);
  const std::string hint =
      alias != std::end(kVerbAliases) ? fmt::format("; the nearest is {}", alias->name) : nearest_hint(word, verbs);
  std::error_code ignored;
  const bool is_path = outermost && hint.empty() && std::filesystem::exists(word, ignored);
  return fmt::format("{}: unknown verb; must be one of {}{}{}", word, fmt::join(verbs, ", "), hint,
                     is_path ? "; to train on this text: maki train " + shell_quote(word) : "");
}

constexpr char kBracketGuard = '\x1F';  // "unit separator"

std::string with_bracket_guard(std::string argument) {
  if (argument.starts_with('[') && argument.ends_with(']')) argument += kBracketGuard;
  return argument;
}

// Appends an option of `command`, and its value if both are one word: CLI11 would take an empty value for a missing
// one. Returns whether the next word is its value.
bool add_option(const CLI::App& command, const std::string& argument, std::vector<std::string>& words) {
  const std::size_t end = argument.find('=');
  const std::string name = canonical_option(command, argument.substr(0, end));
  const CLI::Option* const option = command.get_option_no_throw(name);
  const bool takes_value = option != nullptr && option->get_items_expected_min() > 0;
  if (end == std::string::npos) {
    words.push_back(name);
  } else if (takes_value && name.starts_with("--")) {
    words.insert(words.end(), {name, argument.substr(end + 1)});
  } else {
    words.push_back(name + argument.substr(end));
  }
  return takes_value && end == std::string::npos;
}

}  // namespace

std::string short_alias(std::string_view option) {
  const auto* const alias = std::ranges::find_if(
      kOptionAliases, [&](const Alias& known) { return known.alias[1] != '-' && known.name == option; });
  return alias == std::end(kOptionAliases) ? "" : alias->alias;
}

std::vector<std::string> canonical_arguments(const CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty()) return {"--help"};
  if (arguments == std::vector<std::string>{"version"}) return {"--version"};
  if (arguments.front() == "help") {
    arguments.erase(arguments.begin());
    const std::vector<std::string> verbs = verb_names(app);
    // An unknown word is left as it is, so that it gets its own error message.
    if (arguments.empty() || std::ranges::find(verbs, arguments.front()) != verbs.end())
      arguments.emplace_back("--help");
  }
  const CLI::App* command = &app;
  std::vector<std::string> words;
  bool is_value = false, only_arguments = false;
  for (std::string& argument : arguments) {
    if (std::exchange(is_value, false)) {
      words.push_back(std::move(argument));
    } else if (only_arguments || argument.size() < 2 || argument.front() != '-') {
      const std::vector<const CLI::App*> verbs = subcommands_of(*command);
      const auto verb = std::ranges::find(verbs, argument, &CLI::App::get_name);
      if (verb != verbs.end()) command = *verb;
      words.push_back(with_bracket_guard(std::move(argument)));
    } else if (argument == "--") {
      only_arguments = true;
      words.push_back(std::move(argument));
    } else {
      is_value = add_option(*command, argument, words);
    }
  }
  return words;
}

std::string without_bracket_guard(std::string argument) {
  if (argument.ends_with(kBracketGuard)) argument.pop_back();
  return argument;
}

const CLI::App& innermost_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string command_path(const CLI::App& app) { return path_of(innermost_command(app)); }

std::vector<std::string> verb_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : subcommands_of(command)) names.push_back(verb->get_name());
  return names;
}

std::string unknown_word(const CLI::App& app, const std::string& guarded) {
  const std::string word = without_bracket_guard(guarded);
  const CLI::App& command = innermost_command(app);
  if (word.size() > 1 && word.front() == '-') return unknown_option(app, command, word.substr(0, word.find('=')));
  if (!subcommands_of(command).empty()) return unknown_verb(command, word);
  return fmt::format("{}: unexpected argument; see {} --help", word, path_of(command));
}

}  // namespace maki
