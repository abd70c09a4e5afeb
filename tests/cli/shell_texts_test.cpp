// The manual page and the scripts with which shells complete words.
#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <regex>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

std::vector<std::string> matches(const std::string& text, const char* expression) {
  std::vector<std::string> all;
  const std::regex pattern(expression);
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) all.push_back((*i)[1]);
  return all;
}

// The verbs in the help of the program or of a verb, whose path is "" or "bench ".
std::vector<std::string> verbs_below(const Arguments& path) {
  const std::string help = run_maki(path + Arguments{"--help"}).out;
  const std::size_t begin = help.find("\nVerbs:");
  return begin == std::string::npos
             ? Arguments{}
             : matches(help.substr(begin, help.find("\n\n", begin + 1) - begin), "\n  ([a-z]+) ");
}

// The options that the help of a verb shows, as "--name".
std::vector<std::string> options_of(const Arguments& path) {
  return matches(run_maki(path + Arguments{"--help"}).out, "\n  (?:-[a-z],)?(--[a-z0-9-]+)");
}

std::string completed(const std::string& script, const std::string& words) {
  const TemporaryFolder folder;
  for (const char* const name : {"my text.txt", "my text 2.txt"}) folder.write(name, "");
  const std::string command = fmt::format(
      "bash -c 'cd {0} && source {1} && COMP_WORDS=({2}) && COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) && {{ _maki; "
      "printf \"%s\\n\" \"${{COMPREPLY[@]}}\"; }}' > {0}/out",
      folder.path(), folder.write("script", script), words);
  REQUIRE(std::system(command.c_str()) == 0);
  return read_bytes(folder / "out");
}

}  // namespace

TEST_CASE("every option of every verb is in the manual page and in the completions of every shell") {
  std::string manual = run_maki({"--man"}).out;
  REQUIRE_THAT(run_maki({"--help"}).out, ContainsSubstring("--man ") && ContainsSubstring("--completion "));
  manual = std::regex_replace(manual, std::regex(R"(\\-)"), "-");
  const std::string bash = run_maki({"--completion", "bash"}).out, zsh = run_maki({"--completion", "zsh"}).out,
                    fish = run_maki({"--completion", "fish"}).out;
  std::vector<Arguments> paths = {{}};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (const std::string& verb : verbs_below(paths[i])) paths.push_back(paths[i] + Arguments{verb});
  }
  REQUIRE(paths.size() > 20);
  std::size_t compared = 0;
  for (const Arguments& path : paths) {
    const std::string verb = fmt::format("{}", fmt::join(path, " "));
    INFO(verb);
    for (const std::string& option : options_of(path)) {
      INFO(option);
      REQUIRE(manual.find(option, manual.find(path.empty() ? ".SS Options" : ".SS maki " + verb + "\n")) !=
              std::string::npos);
      const std::size_t words = bash.find("'" + verb + "') words=");
      REQUIRE(words != std::string::npos);
      REQUIRE(bash.substr(words, bash.find('\n', words) - words).find(option) != std::string::npos);
      const std::size_t section = zsh.find("'" + verb + "')\n");
      REQUIRE(zsh.substr(section, zsh.find(";;", section) - section).find("'" + option + "[") != std::string::npos);
      REQUIRE(fish.find(" -l " + option.substr(2) + " ") != std::string::npos);
      ++compared;
    }
  }
  REQUIRE(compared > 200);
  // What can stand for an argument, and for the value of an option.
  for (const std::string line : {"train; and not __fish_seen_subcommand_from tokenizer' -F\n",
                                 "tokenizer; and __fish_seen_subcommand_from train' -F\n", "eval' -F\n"})
    REQUIRE(fish.find("complete -c maki -n '__fish_seen_subcommand_from " + line) != std::string::npos);
  for (const char* const option :
       {" -l prompt-file -r -F -d ", " -l with -r -F -d ", " -l out -x -a '(__fish_complete_directories)' -d ",
        " -l seed -x -d ", " -l overflow -x -a 'recompute stop' -d ", " -l interactive -d "})
    REQUIRE(fish.find(option) != std::string::npos);
  REQUIRE(zsh.find("'*:CORPUS:_files'") != std::string::npos);
  REQUIRE(zsh.find("'*:RUN CORPUS:_files'") != std::string::npos);
  REQUIRE(zsh.find("'*:TOKENIZER FILE:_files'") != std::string::npos);
  for (const char* const value : {"]:FILE:_files'", "]:DIR:_files -/'", "]:N:'", "]:recompute|stop:(recompute stop)'"})
    REQUIRE(zsh.find(value) != std::string::npos);
}

TEST_CASE("bash completes verbs, options, choices, files and directories") {
  const std::string script = run_maki({"--completion", "bash"}).out;
  REQUIRE(run_maki({"--completion=bash"}).out == script);
  REQUIRE(completed(script, "maki tr") == "train\n");
  REQUIRE(completed(script, "maki bench ge") == "gemm\ngenerate\n");
  REQUIRE(completed(script, "maki train --opt") == "--optimizer\n");
  REQUIRE(completed(script, "maki train --optimizer mu") == "muon\n");
  REQUIRE(completed(script, "maki train --learning-rate 1") == "\n");
  REQUIRE(completed(script, "maki train scr") == "script\n");
  REQUIRE(completed(script, "maki train --out scr") == "\n");
  // Whatever stands before it, and also where a run may be a file.
  for (const char* const line : {"maki eval runs scr", "maki tokenizer encode tok.json scr", "maki generate scr"})
    REQUIRE(completed(script, line) == "script\n");
  // A name with spaces is one, also after a part of it has been completed.
  for (const char* const begun : {"my", R"("my\\ text\\ ")", R"("\"my text ")"})
    REQUIRE_THAT(completed(script, fmt::format("maki train {}", begun)), ContainsSubstring("my text 2.txt\n"));
}

TEST_CASE("the scripts are correct for their shells, where these are installed") {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) continue;
    const TemporaryFolder folder;
    const std::string script = folder.write("script", run_maki({"--completion", shell}).out);
    INFO(shell);
    REQUIRE(std::system((shell + " -n " + script).c_str()) == 0);
  }
  const Finished unknown = run_maki({"--completion", "bashh"});
  REQUIRE(unknown.exit_code == 2);
  REQUIRE_THAT(unknown.err, ContainsSubstring("bash, zsh, fish") && ContainsSubstring("the nearest is bash"));
}
