#include "train/app/shell_texts.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <fmt/ranges.h>

#include "autograd/core/table.h"
#include "train/app/help.h"

namespace maki {
namespace {

// What can stand for a value: one of these words, a file, a directory, or any text.
struct Values {
  std::vector<std::string> words;
  bool files = false, directories = false;
};

Values values_of(const std::string& type) {
  // A run may be a directory or a .maki file.
  for (const char* const path : {"FILE", "PATH", "CORPUS", "RUN", "TOKENIZER"})
    if (type == path) return {{}, true, false};
  Values values;
  values.directories = type == "DIR";
  if (type.find('|') == std::string::npos) return values;
  for (const std::string& word : CLI::detail::split(type, '|')) {
    if (std::ranges::none_of(word, [](unsigned char c) { return std::isupper(c) != 0; })) values.words.push_back(word);
  }
  return values;
}

// An option, or an argument that is given by its place.
struct OptionEntry {
  std::vector<std::string> names;  // without those that only other programs have
  std::string type, help;          // type: empty if the option takes no value
};

// A verb, or the program itself, with what may follow it.
struct VerbEntry {
  std::string path, help;  // path: "bench gemm"; empty for the program
  std::vector<std::string> verbs;
  std::vector<OptionEntry> options, arguments;
};

// What can stand for any of the arguments of a verb: scripts do not count those that are there already.
Values values_of(const std::vector<OptionEntry>& arguments) {
  Values all;
  for (const OptionEntry& argument : arguments) {
    const Values values = values_of(argument.type);
    all.files = all.files || values.files;
    all.directories = all.directories || values.directories;
  }
  return all;
}

void collect(const CLI::App& app, const std::string& path, std::vector<VerbEntry>& all) {
  VerbEntry entry{path, app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_positional();
    OptionEntry one{positional ? std::vector<std::string>{option->get_name(true)} : shown_names(*option), "",
                    option->get_description()};
    if (option->get_items_expected_max() > 0) one.type = positional ? one.names.front() : option->get_type_name();
    (positional ? entry.arguments : entry.options).push_back(one);
  }
  const std::vector<const CLI::App*> verbs = verbs_of(app);
  for (const CLI::App* verb : verbs) entry.verbs.push_back(verb->get_name());
  all.push_back(std::move(entry));
  for (const CLI::App* verb : verbs)
    collect(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), all);
}

std::vector<VerbEntry> entries(const CLI::App& app) {
  std::vector<VerbEntry> all;
  collect(app, "", all);
  return all;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return CLI::detail::find_and_replace(std::move(text), from, to);
}
std::string in_single_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }
// What a menu of completions has room for: what comes before details.
std::string short_help(const std::string& help) { return help.substr(0, std::min(help.find(';'), help.find(" ("))); }

// Arguments: the paths of all verbs, what may follow each, and what stands for the value of each option.
constexpr const char kBashScript[] = R"sh(# bash completion for maki
_maki() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} verb='' words='' other='' kind='' i
  current=${{current#[\'\"]}}  # what it means: files are not found by names that are quoted
  current=${{current//\\/}}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{verb:+$verb }}${{COMP_WORDS[i]}} in
      {}) verb=${{verb:+$verb }}${{COMP_WORDS[i]}} ;;
    esac
  done
  case $verb in
{}  esac
  case $verb:${{COMP_WORDS[COMP_CWORD - 1]}} in
{}  esac
  if [[ -z $kind && ( $current == -* || -z $other ) ]]; then kind='-W "$words"'; fi
  COMPREPLY=()
  if [[ $kind == none ]]; then return; fi
  # By lines, because names of files may have spaces.
  while IFS= read -r i; do COMPREPLY+=("$i"); done < <(eval "compgen ${{kind:-$other}} -- \"\$current\"")
}}
complete -o filenames -F _maki maki
)sh";

std::string bash_values(const Values& values) {
  if (!values.words.empty()) return fmt::format("-W '{}'", fmt::join(values.words, " "));
  return values.files ? "-f" : values.directories ? "-d" : "";
}

std::string bash(const std::vector<VerbEntry>& all) {
  std::string paths, words, values;
  for (const VerbEntry& verb : all) {
    std::vector<std::string> names = verb.verbs;
    const std::string other = verb.verbs.empty() ? bash_values(values_of(verb.arguments)) : "";
    for (const OptionEntry& option : verb.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.type.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(fmt::format("'{}:{}'", verb.path, name));
      const std::string kind = bash_values(values_of(option.type));
      values +=
          fmt::format("    {}) kind={} ;;\n", fmt::join(patterns, "|"), in_single_quotes(kind.empty() ? "none" : kind));
    }
    if (!verb.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", verb.path);
    words +=
        fmt::format("    '{}') words='{}' other={} ;;\n", verb.path, fmt::join(names, " "), in_single_quotes(other));
  }
  return fmt::format(kBashScript, paths, words, values);
}

// Arguments: the paths of all verbs, and the arguments of _arguments for each.
constexpr const char kZshScript[] = R"sh(#compdef maki
_maki() {{
  local verb='' skipped=0 i
  for ((i = 2; i < CURRENT; ++i)); do
    case "${{verb:+$verb }}${{words[i]}}" in
      {}) verb="${{verb:+$verb }}${{words[i]}}"; skipped=$((i - 1)) ;;
    esac
  done
  shift $skipped words
  ((CURRENT -= skipped))
  case $verb in
{}  esac
}}
_maki "$@"
)sh";

std::string zsh_values(const std::string& name, const Values& values) {
  const std::string label = replaced(name, ":", "\\:");
  if (!values.words.empty()) return fmt::format(":{}:({})", label, fmt::join(values.words, " "));
  return fmt::format(":{}:{}", label, values.files ? "_files" : values.directories ? "_files -/" : "");
}
std::string zsh_text(std::string text) {
  for (const char* special : {"[", "]", ":"}) text = replaced(text, special, std::string("\\") + special);
  return text;
}

std::string zsh(const std::vector<VerbEntry>& all) {
  std::string cases;
  for (const VerbEntry& verb : all) {
    cases += fmt::format("    '{}')\n      _arguments -s \\\n", verb.path);
    for (const OptionEntry& option : verb.options) {
      for (const std::string& name : option.names) {
        cases += fmt::format(
            "        {} \\\n",
            in_single_quotes(fmt::format("{}[{}]{}", name, zsh_text(short_help(option.help)),
                                         option.type.empty() ? "" : zsh_values(option.type, values_of(option.type)))));
      }
    }
    if (!verb.verbs.empty()) {
      cases += fmt::format("        ':verb:({})'\n", fmt::join(verb.verbs, " "));
    } else {
      std::vector<std::string> names;
      for (const OptionEntry& argument : verb.arguments) names.push_back(argument.type);
      const std::string label = names.empty() ? "text" : fmt::format("{}", fmt::join(names, " "));
      cases += fmt::format("        '*{}'\n", zsh_values(label, values_of(verb.arguments)));
    }
    cases += "      ;;\n";
  }
  std::vector<std::string> paths;
  for (const VerbEntry& verb : all) {
    if (!verb.path.empty()) paths.push_back("'" + verb.path + "'");
  }
  return fmt::format(kZshScript, fmt::join(paths, "|"), cases);
}

// Whether the words so far name a verb. That one of them is "train" does not tell `maki train` from `maki tokenizer
// train`.
std::string fish_condition(const std::string& path, const std::vector<VerbEntry>& all) {
  if (path.empty()) return "__fish_use_subcommand";
  const std::string seen = "__fish_seen_subcommand_from ";
  const std::vector<std::string> words = CLI::detail::split(path, ' ');
  std::string condition = fmt::format("{}{}", seen, fmt::join(words, "; and " + seen));
  for (const VerbEntry& other : all) {
    if (other.path.ends_with(" " + path))
      condition += fmt::format("; and not {}{}", seen, CLI::detail::split(other.path, ' ').front());
  }
  return condition;
}

std::string fish(const std::vector<VerbEntry>& all) {
  std::string text = "# fish completion for maki\ncomplete -c maki -f\n";
  for (const VerbEntry& verb : all) {
    const std::string begin = fmt::format("complete -c maki -n '{}'", fish_condition(verb.path, all));
    for (const std::string& inner : verb.verbs) {
      const std::string path = verb.path.empty() ? inner : verb.path + " " + inner;
      const auto entry = std::ranges::find(all, path, &VerbEntry::path);
      text += fmt::format("{} -a {} -d {}\n", begin, inner, in_single_quotes(entry->help));
    }
    for (const OptionEntry& option : verb.options) {
      const Values values = values_of(option.type);
      for (const std::string& name : option.names) {
        text += begin + (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
        if (!values.words.empty())
          text += fmt::format(" -x -a '{}'", fmt::join(values.words, " "));
        else if (values.files)
          text += " -r -F";
        else if (values.directories)
          text += " -x -a '(__fish_complete_directories)'";
        else if (!option.type.empty())
          text += " -x";
        text += fmt::format(" -d {}\n", in_single_quotes(short_help(option.help)));
      }
    }
    if (verb.verbs.empty()) {
      const Values values = values_of(verb.arguments);
      if (values.files) text += begin + " -F\n";
      if (values.directories) text += begin + " -a '(__fish_complete_directories)'\n";
    }
  }
  return text;
}

struct Shell {
  const char* name;
  std::string (*script)(const std::vector<VerbEntry>&);
};
constexpr Shell kShellRows[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
constexpr Table kShells("shell", kShellRows);

// Text in which nothing is a request of roff or a hyphen at which a line may break.
std::string roff(const std::string& text) {
  std::string escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

}  // namespace

std::vector<std::string> shell_names() { return kShells.names(); }

std::string completion_script(const CLI::App& app, const std::string& shell) {
  return kShells.row(shell).script(entries(app));
}

std::string manual_page(const CLI::App& app) {
  const std::string what = app.get_description().substr(app.get_name().size() + 1);  // "maki trains …"
  std::string text = fmt::format(
      ".TH MAKI 1\n.SH NAME\nmaki \\- {}\n.SH SYNOPSIS\n.B maki\n.I VERB\n[options]\n.SH VERBS\n", roff(what));
  for (const VerbEntry& verb : entries(app)) {
    text += verb.path.empty() ? ".SS Options of the program\n"
                              : fmt::format(".SS maki {}\n{}\n", roff(verb.path), roff(verb.help));
    for (const auto* list : {&verb.arguments, &verb.options}) {
      for (const OptionEntry& option : *list) {
        text += ".TP\n\\fB" + roff(fmt::format("{}", fmt::join(option.names, ", "))) + "\\fR";
        if (list == &verb.options && !option.type.empty()) text += " \\fI" + roff(option.type) + "\\fR";
        text += fmt::format("\n{}\n", roff(option.help));
      }
    }
  }
  return text + ".SH SEE ALSO\nThe guide, docs/guide.md, explains the program by topic.\n";
}

}  // namespace maki
