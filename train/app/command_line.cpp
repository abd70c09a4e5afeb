// From the words of a command line to the verb that runs, or to the sentence that says what is wrong with them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <memory>
#include <sstream>
#include <system_error>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "data/io/shell_quote.h"
#include "train/app/command.h"
#include "train/app/help.h"
#include "train/app/shell_texts.h"
#include "train/app/verbs.h"
#include "train/app/version.h"

namespace maki {

namespace {

// Words of other programs; each only leads to a sentence that names the verb of this one.
constexpr std::pair<const char*, const char*> kForeignVerbs[] = {
    {"sample", "generate"}, {"complete", "generate"}, {"write", "generate"}, {"chat", "generate"}, {"fit", "train"},
    {"resume", "train"},    {"test", "eval"},         {"validate", "eval"},  {"info", "inspect"},  {"show", "inspect"},
};

std::vector<std::string> verb_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(command)) names.push_back(verb->get_name());
  return names;
}

// A command as the user types it: "maki bench gemm".
std::string path_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : path_of(*parent) + " " + command.get_name();
}

// The innermost verb that was parsed; `app` itself if there is none.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

// The program with its verbs, and the options of the verb `only` or, if that is empty, of all.
struct Parser {
  explicit Parser(std::string_view only)
      : app("maki trains Transformer language models on a CPU, from a text file.", "maki") {
    app.set_version_flag("--version", version_text(), "Print the version and the commit");
    app.set_help_flag("-h,--help", "Print this help");
    app.add_option("--completion", "print a script with which this shell completes words")
        ->type_name(fmt::format("{}", fmt::join(shell_names(), "|")));
    app.add_flag("--man")->description("print the manual page (maki --man | man -l -)");
    app.formatter(make_help_formatter());
    app.footer(
        "To get started:\n"
        "  maki train @stories         (or with a text file of your own)\n"
        "  maki generate runs/stories-1\n"
        "Help for a verb:\n"
        "  maki VERB --help            (or: maki help VERB)");
    add_verbs(Command(app, actions), only);
    require_verbs(app);
  }
  // A command that does nothing itself needs one of its verbs. More than one verb is never meant: in "maki train plan",
  // the second is the name of a file.
  void require_verbs(CLI::App& command) {
    command.require_subcommand(actions.contains(&command) ? 0 : 1, 1);
    for (CLI::App* verb : command.get_subcommands([](const CLI::App*) { return true; })) require_verbs(*verb);
  }
  CLI::App app;
  Actions actions;
};

// The words in reverse order, as CLI11 wants them, after "help VERB" became "VERB --help", "help" and nothing at all
// "--help", and "version" "--version".
std::vector<std::string> words_for_parser(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) words = {"help"};
  if (words == std::vector<std::string>{"version"}) words = {"--version"};
  if (words.front() == "help") {
    words.erase(words.begin());
    const std::vector<std::string> verbs = verb_names(app);
    // An unknown word is left as it is, so that it gets its own error message.
    if (words.empty() || std::ranges::find(verbs, words.front()) != verbs.end()) words.emplace_back("--help");
  }
  for (std::string& word : words) {
    if ((word.starts_with('[') && word.ends_with(']')) || (word.starts_with("--") && word.ends_with('=')))
      word += kGuard;
  }
  std::ranges::reverse(words);
  return words;
}

// Appends the command and all verbs below it, unless they are in the list.
void collect_verbs(const CLI::App& command, std::vector<const CLI::App*>& all) {
  if (std::ranges::find(all, &command) == all.end()) all.push_back(&command);
  for (const CLI::App* verb : verbs_of(command)) collect_verbs(*verb, all);
}

// The message for an option that `command` does not have: it may belong after the verb, to another verb, or be
// misspelt.
std::string unknown_option(const CLI::App& app, const CLI::App& command, const std::string& given) {
  std::vector<const CLI::App*> verbs = {&command};  // the first, so that it wins a tie between equally near names
  collect_verbs(app, verbs);
  std::vector<std::string> names, owners;
  std::vector<const CLI::App*> verb_of_name;
  for (const CLI::App* verb : verbs) {
    if (verb != &app && verb->get_option_no_throw(given) != nullptr) owners.push_back(path_of(*verb));
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : shown_names(*option)) {
        if (!name.starts_with("--")) continue;
        names.push_back(name.substr(2));
        verb_of_name.push_back(verb);
      }
    }
  }
  const std::string path = path_of(command), see = fmt::format("; see {} --help", path);
  if (!owners.empty() && (&command == &app || owners.front() == path))
    return fmt::format("{0}: options come after the verb, as in {1} {0}{2}", given, owners.front(), see);
  if (!owners.empty()) {
    std::string list = owners.front();
    for (std::size_t i = 1; i < owners.size(); ++i) list += (i + 1 < owners.size() ? ", " : " and ") + owners[i];
    return fmt::format("{}: is an option of {}, not of {}{}", given, list, path, see);
  }
  std::string word = given.substr(std::min(given.size(), given.find_first_not_of('-')));
  std::ranges::replace(word, '_', '-');
  const std::string nearest = nearest_name(word, names);
  const CLI::App* const owner =
      nearest.empty() ? &command
                      : verb_of_name[static_cast<std::size_t>(std::ranges::find(names, nearest) - names.begin())];
  // Almost any short word is near to a name of three letters; then that of another verb was hardly meant.
  const std::string shown = truncate_for_message(given);
  if (nearest.empty() || (owner != &command && nearest.size() <= 3))
    return fmt::format("{}: unknown option{}", shown, see);
  return fmt::format("{}: unknown option; the nearest is --{}{}{}", shown, nearest,
                     owner == &command ? "" : " of " + path_of(*owner), see);
}

std::string unknown_verb(const CLI::App& command, const std::string& word) {
  const std::vector<std::string> verbs = verb_names(command);
  std::string hint = nearest_hint(word, verbs);
  if (command.get_parent() == nullptr) {
    for (const auto& [alias, name] : kForeignVerbs) {
      if (word == alias) hint = fmt::format("; the nearest is {}", name);
    }
    std::error_code ignored;
    if (hint.empty() && std::filesystem::exists(word, ignored))
      hint = "; to train on this text: maki train " + shell_quote(word);
  }
  return fmt::format("{}: unknown verb; must be one of {}{}", truncate_for_message(word), fmt::join(verbs, ", "), hint);
}

// The message for a word that CLI11 could not parse: what may have been meant, and which help to read.
std::string unknown_word(const CLI::App& app, const std::string& guarded) {
  const std::string word = without_guard(guarded);
  const CLI::App& command = innermost(app);
  if (word.size() > 1 && word.front() == '-') return unknown_option(app, command, word.substr(0, word.find('=')));
  if (!verbs_of(command).empty()) return unknown_verb(command, word);
  return fmt::format("{}: unexpected argument; see {} --help", truncate_for_message(word), path_of(command));
}

// The message for another error, in our words where CLI11's are unclear: "--stop: 1 required TEXT missing", "json was
// given a disallowed flag override". "RUN is required" stays.
std::string parse_error_text(const CLI::ParseError& error) {
  const std::string words = error.what();
  if (static_cast<CLI::ExitCodes>(error.get_exit_code()) != CLI::ExitCodes::ArgumentMismatch) return words;
  const std::size_t flag = words.find(" was given");
  return flag != std::string::npos ? fmt::format("--{}: takes no value", words.substr(0, flag))
                                   : words.substr(0, words.find(':')) + ": needs a value";
}

// Throws if an option stands before an inner verb, where it has no effect, as in "maki bench --steps 3 gemm".
void require_options_of_innermost(const CLI::App& verb) {
  if (verb.get_subcommands().empty()) return;
  const CLI::App& inner = *verb.get_subcommands().front();
  for (const CLI::Option* option : verb.get_options()) {
    check(option->count() == 0,
          "{0}: --{1} was given before {2}, to which it does not apply; put the options of {2} after it",
          verb.get_name(), option->get_single_name(), inner.get_name());
  }
  require_options_of_innermost(inner);
}

Action printing(std::string text) {
  return [text = std::move(text)] {
    fmt::print("{}", text);
    return 0;
  };
}

// The verb that the words are about. If there is none, a word that is no verb.
std::string verb_among(const std::vector<std::string>& words) {
  const auto verb =
      std::ranges::find_if(words, [](const std::string& word) { return word != "help" && !word.starts_with('-'); });
  return verb == words.end() ? "help" : *verb;
}

// Throws for an option of the verb with one dash, because CLI11 reads -out as -o ut.
void require_two_dashes(const CLI::App& verb, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    const bool has_one = name.size() > 2 && name.starts_with('-') && !name.starts_with("--");
    check(!has_one || verb.get_option_no_throw("-" + name) == nullptr,
          "{0}: needs two dashes; write -{0}; see {1} --help", name, path_of(verb));
  }
}

// With the options of the verb `only` or, if that is empty, of all verbs.
Action parse(const std::vector<std::string>& words, std::string_view only) {
  const auto parser = std::make_shared<Parser>(only);
  CLI::App& app = parser->app;
  for (const CLI::App* verb : verbs_of(app)) {
    if (verb->get_name() == verb_among(words)) require_two_dashes(*verb, words);
  }
  try {
    app.parse(words_for_parser(app, words));
  } catch (const CLI::Success& success) {
    const std::vector<std::string> extras = app.remaining();
    if (!extras.empty() && !extras.front().starts_with('-')) fail("{}", unknown_word(app, extras.front()));
    std::ostringstream text;
    app.exit(success, text, text);
    return printing(text.str());
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> extras = app.remaining(true);
    if (!extras.empty()) fail("{}", unknown_word(app, extras.front()));
    const CLI::App& verb = innermost(app);
    const bool no_verb = !parser->actions.contains(&verb) &&
                         static_cast<CLI::ExitCodes>(error.get_exit_code()) == CLI::ExitCodes::RequiredError;
    const std::string sentence =
        no_verb ? fmt::format("needs a verb: {}", fmt::join(verb_names(verb), ", ")) : parse_error_text(error);
    fail("{}; see {} --help", sentence, path_of(verb));
  }
  require_options_of_innermost(app);
  require_one_process(path_of(innermost(app)));
  // The action may ask the parser which options were given.
  return [parser, run = parser->actions.at(&innermost(app))] { return run(); };
}

}  // namespace

Action parse_command_line(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"--man"}) return printing(manual_page(Parser("").app));
  const std::string shell_option = "--completion";
  if (words.size() == 2 && words[0] == shell_option) return printing(completion_script(Parser("").app, words[1]));
  if (words.size() == 1 && words[0].starts_with(shell_option + "="))
    return parse_command_line({shell_option, words[0].substr(shell_option.size() + 1)});
  try {
    return parse(words, verb_among(words));
  } catch (const Error&) {
    return parse(words, "");  // the message may name options of other verbs
  }
}

}  // namespace maki
