#include "train/app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "autograd/core/check.h"
#include "train/app/command_words.h"
#include "train/app/help.h"
#include "train/app/verbs.h"
#include "train/app/version.h"

namespace maki {

namespace {

// The program with its verbs.
struct Parser {
  Parser() : app("maki trains Transformer language models on a CPU, from a text file.", "maki") {
    app.set_version_flag("--version", version_text(), "Print the version and the commit");
    app.set_help_flag("-h,--help", "Print this help");
    app.formatter(make_help_formatter(help_columns()));
    app.footer(
        "To get started:\n"
        "  maki train @stories         (or with a text file of your own)\n"
        "  maki generate runs/stories-1\n"
        "Help for a verb:\n"
        "  maki VERB --help            (or: maki help VERB)");
    add_verbs(Command(app, actions));
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

// The message for a parse error, in our words where CLI11's are unclear: "--stop: 1 required TEXT missing", "Could not
// convert: --json = x". "RUN is required" stays.
std::string parse_error_text(const CLI::ParseError& error) {
  const std::string words = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind == CLI::ExitCodes::ArgumentMismatch) return words.substr(0, words.find(':')) + ": needs a value";
  const std::size_t option = words.find("--");
  if (kind == CLI::ExitCodes::ConversionError && option != std::string::npos) {
    return words.substr(option, words.find_first_of(" =", option) - option) + ": takes no value";
  }
  return words;
}

// Throws if a verb that consists of verbs was given an option of its own before one of them, where it has no effect.
void require_options_of_innermost(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) {
    const CLI::App* const inner = verb->get_subcommands().front();
    for (const CLI::Option* option : verb->get_options()) {
      check(option->count() == 0,
            "{0}: --{1} was given before {2}, to which it does not apply; put the options of {2} after it",
            verb->get_name(), option->get_single_name(), inner->get_name());
    }
    verb = inner;
  }
}

}  // namespace

Action parse_command_line(const std::vector<std::string>& words) {
  const auto parser = std::make_shared<Parser>();
  CLI::App& app = parser->app;
  try {
    std::vector<std::string> arguments = canonical_arguments(app, words);
    std::ranges::reverse(arguments);  // CLI11 expects them in reverse order
    app.parse(arguments);
  } catch (const CLI::Success& success) {
    const std::vector<std::string> extras = app.remaining();
    if (!extras.empty() && !extras.front().starts_with('-')) fail("{}", unknown_word(app, extras.front()));
    std::ostringstream text;
    app.exit(success, text, text);
    return [help = text.str()] {
      fmt::print("{}", help);
      return 0;
    };
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> extras = app.remaining(true);
    if (!extras.empty()) fail("{}", unknown_word(app, extras.front()));
    const CLI::App& verb = innermost_command(app);
    const std::string sentence = parser->actions.contains(&verb)
                                     ? parse_error_text(error)
                                     : fmt::format("needs a verb: {}", fmt::join(verb_names(verb), ", "));
    fail("{}; see {} --help", sentence, command_path(app));
  } catch (const std::out_of_range&) {  // CLI11 negates the number in --no-bias=12, which std::stoll() may refuse
    const auto word = std::ranges::find_if(words, [](const std::string& text) {
      return text.starts_with("--no-") && text.find('=') != std::string::npos;
    });
    if (word == words.end()) throw;
    fail("{}: takes no value; see {} --help", word->substr(0, word->find('=')), command_path(app));
  }
  require_options_of_innermost(app);
  // The action may ask the parser which options were given.
  return [parser, run = parser->actions.at(&innermost_command(app))] { return run(); };
}

}  // namespace maki
