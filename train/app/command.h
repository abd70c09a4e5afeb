// What a verb accepts on the command line, and what was given. CLI11 parses. Its headers take longer to compile than a
// whole verb, so only command.cpp, command_line.cpp, help.cpp and shell_texts.cpp include them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace maki {

/// Runs a verb and returns its exit code. Errors are thrown.
using Action = std::function<int()>;
/// The actions of the verbs. A verb that has none consists of further verbs.
using Actions = std::map<const CLI::App*, Action>;

/// Parses the words after the program's name. Returns what they ask for, which has not happened yet: to run a verb, or
/// to print help or the version to stdout. What the action throws is up to the verb. Throws Error for words that are
/// not a command line of maki, such as none at all, or a number out of range, even if they ask for help as well.
Action parse_command_line(const std::vector<std::string>& words);

/// An option or argument that a Command has just got.
class Option {
 public:
  explicit Option(CLI::Option& parser) : parser_(&parser) {}
  /// The command line is rejected without it.
  void require() const;
  /// An empty text is accepted. Requires: the option has a text or texts.
  const Option& may_be_empty() const;

 private:
  CLI::Option* parser_;
};

/// The program or one of its verbs. A handle to `parser` and `actions`, which must outlive it: copies are the same
/// command. Parsing sets the variables to which options refer; they must live until the action has run. The variable of
/// an option that is not given keeps its value, and `help` must say what that means (for add_number(), see there). Of
/// an option that is given several times, the last value counts, except in lists. An empty text is rejected, unless
/// the option may_be_empty(). Options may also be written with underscores, and by the names that other programs have
/// for them.
class Command {
 public:
  Command(CLI::App& parser, Actions& actions) : parser_(&parser), actions_(&actions) {}

  /// Adds a verb to this command.
  Command add_verb(const std::string& name, const std::string& help) const;
  /// What to do if this command is the innermost verb of the command line.
  void set_action(Action action) const;
  /// A text below the options in help. A verb without one shows that which its parent had when the verb was added.
  void set_footer(const std::string& text) const;

  /// An argument that is given by its place; of a list, any number.
  Option add_argument(const std::string& name, std::string& value, const std::string& help) const;
  Option add_argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const;
  /// An option with a value, for which `type` stands in help: "--out FILE".
  Option add_option(const std::string& name, std::string& value, const std::string& type,
                    const std::string& help) const;
  /// An option with a value that may be empty, which differs from no value: `value` is then not nullopt.
  Option add_option(const std::string& name, std::optional<std::string>& value, const std::string& type,
                    const std::string& help) const;
  /// An option that may be given several times, each time with one value.
  Option add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                  const std::string& help) const;
  /// An option without a value, which sets `value` to true. "--name,!--no-name" has a second form, which sets it to
  /// false. A text gets the words "true" and "false".
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  Option add_flag(const std::string& name, std::string& value, const std::string& help) const;
  /// An option with a number in [low, high], parsed by number.h like the fields of the configuration; parsing the
  /// command line throws Error for any other text. The current `value` is the default, which is appended to `help`. An
  /// optional number stays nullopt if it is not given, and its `help` says what that means. In help, N stands for a
  /// whole number, and `type` for any other one: "--dropout PROBABILITY".
  Option add_number(const std::string& name, std::int64_t& value, double low, double high,
                    const std::string& help) const;
  Option add_number(const std::string& name, std::optional<std::int64_t>& value, double low, double high,
                    const std::string& help) const;
  Option add_number(const std::string& name, double& value, double low, double high, const std::string& type,
                    const std::string& help) const;

  /// Lists an option that the command has in help under `title`, instead of "Options".
  void list_under(const std::string& option, const std::string& title) const;

  /// After parsing: whether this option was given; for "--name", also as --no-name. Requires: the command has it.
  bool given(const std::string& option) const;
  /// After parsing: those of these options that were given.
  std::vector<std::string> given_among(std::vector<std::string> options) const;

 private:
  CLI::App* parser_;
  Actions* actions_;
};

}  // namespace maki
