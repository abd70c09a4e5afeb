#include "train/app/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "data/io/utf8.h"
#include "train/app/terminal.h"

namespace maki {
namespace {

constexpr std::size_t kMinColumns = 20;  // narrower ones break the lines of the help themselves
// Descriptions begin in this column, and further to the left where there are fewer than 80.
constexpr std::size_t kDescriptionColumn = 28;
constexpr std::size_t kIndent = 2, kNameContinuation = 6;  // spaces before an option, and before the rest of a long one

std::size_t width_of(const std::string& text) { return static_cast<std::size_t>(count_code_points(text)); }

std::string without_leading_spaces(const std::string& text) {
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

// The words of one line, each with the spaces before it. `of_name`: a word also ends after a comma or a bar.
std::vector<std::string> pieces_of(std::string_view line, bool of_name) {
  std::vector<std::string> pieces;
  std::string piece;
  for (std::size_t i = 0; i < line.size(); ++i) {
    piece += line[i];
    const bool before_space = line[i] != ' ' && i + 1 < line.size() && line[i + 1] == ' ';
    if (before_space || (of_name && (line[i] == ',' || line[i] == '|'))) pieces.push_back(std::exchange(piece, ""));
  }
  if (!piece.empty()) pieces.push_back(piece);
  return pieces;
}

// The lines of a text, broken so that each has at most `width` columns. Spaces within a line are kept.
std::vector<std::string> broken_lines(std::string_view text, std::size_t width, bool of_name = false) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    std::string line;
    for (const std::string& piece : pieces_of(text.substr(0, end), of_name)) {
      if (!line.empty() && width_of(line) + width_of(piece) > width) {
        lines.push_back(std::exchange(line, without_leading_spaces(piece)));
      } else {
        line += piece;
      }
    }
    lines.push_back(line);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::size_t columns_of_help() {
  if (const char* const text = std::getenv("COLUMNS")) {
    const std::string_view digits = text;
    std::size_t columns = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
    if (error == std::errc() && end == digits.data() + digits.size() && columns > 0) return columns;
  }
  return terminal_size(STDOUT_FILENO, terminal_size(STDERR_FILENO)).columns;
}

// CLI11's help with lines that fit, and without the types of positional arguments.
class Help : public CLI::Formatter {
 public:
  explicit Help(std::size_t columns)
      : columns_(std::max(columns, kMinColumns)), column_(std::min(kDescriptionColumn, columns_ * 35 / 100)) {
    label("SUBCOMMAND", "VERB");
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n\n");
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(CLI::Formatter::make_description(app));
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return wrapped(CLI::Formatter::make_usage(app, std::move(name)));
  }
  std::string make_footer(const CLI::App* app) const override { return wrapped(CLI::Formatter::make_footer(app)); }
  std::string make_subcommand(const CLI::App* verb) const override {
    return entry(verb->get_name(), verb->get_description());
  }
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return positional ? option->get_name(true) : CLI::detail::join(shown_names(*option));
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) return option->get_expected_max() > 1 ? " ..." : "";
    return CLI::Formatter::make_option_opts(option);
  }

 private:
  std::string wrapped(const std::string& text) const {
    std::string result;
    for (const std::string& line : broken_lines(text, columns_)) result += line + '\n';
    if (!result.empty()) result.pop_back();
    return result;
  }
  // A name, and its description beside it, or below it if the name is too long.
  std::string entry(const std::string& name, const std::string& description) const {
    const bool fits = kIndent + width_of(name) <= columns_;
    std::string text, indent(kIndent, ' ');
    for (const std::string& line : broken_lines(name, fits ? columns_ : columns_ - kNameContinuation, true)) {
      text += (text.empty() ? indent : '\n' + std::string(kNameContinuation, ' ')) + line;
    }
    std::size_t at = kIndent + width_of(name);
    if (at + kIndent > column_) {
      text += '\n';
      at = 0;
    }
    for (const std::string& line : broken_lines(description, columns_ - column_)) {
      text += std::string(column_ - at, ' ') + line + '\n';
      at = 0;
    }
    return text;
  }

  std::size_t columns_, column_;
};

}  // namespace

std::string without_guard(std::string word) {
  if (word.ends_with(kGuard)) word.pop_back();
  return word;
}

// With this filter all, and not only those that were parsed.
std::vector<const CLI::App*> verbs_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

// CLI11 knows other spellings as well, which follow the first long name.
std::vector<std::string> shown_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back('-' + name);
  if (option.get_lnames().empty()) return names;
  const std::string& name = option.get_lnames().front();
  names.push_back("--" + name);
  if (!option.get_fnames().empty()) names.push_back("--no-" + name);
  return names;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter() { return std::make_shared<Help>(columns_of_help()); }

}  // namespace maki
