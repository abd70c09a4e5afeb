#include "train/app/verbs/drawing_options.h"

#include <filesystem>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "train/app/flags.h"
#include "train/app/progress.h"
#include "train/app/report.h"

namespace maki {

void add_drawing_options(const Command& command, DrawingOptions& o) {
  command.add_option("--out", o.out, "FILE", "draw to this file, as SVG");
  add_force(command, o.force);
  command.add_option("--lang", o.lang, fmt::format("{}", fmt::join(languages(), "|")),
                     "language of the words in the drawing [en]");
  command.add_flag("--text", o.text, "draw in the terminal, at most 80 columns wide; the default without --out");
  command.add_flag("--csv", o.csv, "print the numbers as CSV, one per line");
  command.add_flag("--json", o.json, "print the numbers as JSON");
}

void check_drawing_options(const char* verb, const DrawingOptions& o) {
  const int forms = (o.out.empty() ? 0 : 1) + (o.text ? 1 : 0) + (o.csv ? 1 : 0) + (o.json ? 1 : 0);
  check(forms <= 1, "{}: --out, --text, --csv and --json are four forms of one result; use only one of them", verb);
  check_force("--out", o.out, o.force);
  check(o.lang.empty() || (!o.csv && !o.json), "lang: is the language of a drawing; {} has no words; omit one of them",
        o.csv ? "--csv" : "--json");
  words_of(o);
}

const Words& words_of(const DrawingOptions& o) { return words_in(o.lang.empty() ? "en" : o.lang); }

void print_drawing(const DrawingOptions& o, const std::vector<std::string>& inputs,
                   const std::function<std::string()>& picture, const std::function<std::string()>& text,
                   const std::function<std::string()>& json, const std::function<std::string()>& csv) {
  if (o.out.empty()) return print_result(o.json ? json() : o.csv ? csv() : text());
  const OutputPath place{o.out, o.force, inputs};
  require_place_for_browsers(place, ".svg");
  write_for_browsers(place, picture());
}

void require_place_for_browsers(const OutputPath& out, const std::string& ending) {
  require_file_place(out);
  const std::string given = std::filesystem::path(out.path).extension().string();
  check(given.empty() || given == ending, "out: must end with {}, the form that is written; got {}", ending, out.path);
}

void write_for_browsers(const OutputPath& out, const std::string& text) {
  write_output(posix_file_system(), out, {text_bytes(text)});
  to_stderr("{}: written, {} KB; browsers show it\n", out.path, (text.size() + 999) / 1000);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace maki
