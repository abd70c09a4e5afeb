// Texts made from a command line, of a small one whose words need quoting everywhere.
#include "train/app/shell_texts.h"

#include <CLI/CLI.hpp>

#include "tests/catch.h"

using namespace maki;

namespace {

// `maki read RUN` and its verb `maki read all`.
struct SmallCommandLine {
  SmallCommandLine() {
    app.set_help_flag();
    app.add_flag("--version", flag, "the version; of this program");
    CLI::App* const read = app.add_subcommand("read", ".first of the verbs");
    read->add_option("-o,--out", text, "a directory (not a file); it's new")->type_name("DIR");
    read->add_option("--shape", text, "'flat' or not")->type_name("flat|round");
    read->add_flag("--dry-run", flag, "writes nothing");
    CLI::App* const all = read->add_subcommand("all", "every one");
    all->add_option("FILE", text, "what is read")->required();
  }

  CLI::App app{"maki reads small runs", "maki"};
  std::string text;
  bool flag = false;
};

}  // namespace

TEST_CASE("a manual page has every verb, argument and option, and no text is a request of roff or breaks at a hyphen") {
  const SmallCommandLine line;
  REQUIRE(manual_page(line.app) == R"(.TH MAKI 1
.SH NAME
maki \- reads small runs
.SH SYNOPSIS
.B maki
.I VERB
[options]
.SH VERBS
.SS Options of the program
.TP
\fB\-\-version\fR
the version; of this program
.SS maki read
\&.first of the verbs
.TP
\fB\-o, \-\-out\fR \fIDIR\fR
a directory (not a file); it's new
.TP
\fB\-\-shape\fR \fIflat|round\fR
\&'flat' or not
.TP
\fB\-\-dry\-run\fR
writes nothing
.SS maki read all
every one
.TP
\fBFILE\fR
what is read
.SH SEE ALSO
The guide, docs/guide.md, explains the program by topic.
)");
}

TEST_CASE("fish completes verbs after the verb that they belong to, with the beginning of their help") {
  const SmallCommandLine line;
  REQUIRE(completion_script(line.app, "fish") == R"(# fish completion for maki
complete -c maki -f
complete -c maki -n '__fish_use_subcommand' -a read -d '.first of the verbs'
complete -c maki -n '__fish_use_subcommand' -l version -d 'the version'
complete -c maki -n '__fish_seen_subcommand_from read' -a all -d 'every one'
complete -c maki -n '__fish_seen_subcommand_from read' -s o -x -a '(__fish_complete_directories)' -d 'a directory'
complete -c maki -n '__fish_seen_subcommand_from read' -l out -x -a '(__fish_complete_directories)' -d 'a directory'
complete -c maki -n '__fish_seen_subcommand_from read' -l shape -x -a 'flat round' -d ''\''flat'\'' or not'
complete -c maki -n '__fish_seen_subcommand_from read' -l dry-run -d 'writes nothing'
complete -c maki -n '__fish_seen_subcommand_from read; and __fish_seen_subcommand_from all' -F
)");
}
