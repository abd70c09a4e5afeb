// maki generate RUN --interactive.
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/cli/every_kind.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;

namespace {

struct InteractiveRun {
  explicit InteractiveRun(const Arguments& more = {}) {
    const std::string corpus = folder.write("corpus.txt", small_text());
    require_ok(run_maki(Arguments{"train", corpus, "--out", path, "--max-steps", "30"} + kSmall + more));
  }
  Finished type(const std::string& lines, const Arguments& more = {}) const {
    RunOptions piped;
    piped.input = lines;
    return require_ok(run_maki(Arguments{"generate", path, "--interactive", "--max-tokens", "20"} + more, piped));
  }
  // What the session writes for a prompt with this seed.
  std::string text(const std::string& prompt, int seed) const {
    const std::string out = require_ok(run_maki({"generate", path, "--prompt", prompt, "--max-tokens", "20", "--seed",
                                                 std::to_string(seed)}))
                                .out;
    return out.ends_with('\n') ? out : out + "\n";
  }
  TemporaryFolder folder;
  std::string path = folder / "run";
};

// Gives up after half a minute, so that the test fails by its next requirement.
void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000 && !holds(); ++i) usleep(10000);
}

// Requires that a session, to which keys are typed, writes this, and that it ends by Ctrl-C.
void interrupt_after(const std::string& written, const InteractiveRun& run, const Arguments& session,
                     RunOptions typed) {
  typed.output_file = run.folder / "out.txt";
  std::filesystem::remove(typed.output_file);
  typed.meanwhile = [&](pid_t process) {
    wait_until([&] { return text_so_far(typed.output_file) == written; });
    // The first one may come while the end of the text is reported, and end only that.
    wait_until([&] {
      kill(process, SIGINT);
      return text_so_far("/proc/" + std::to_string(process) + "/stat").find(") Z ") != std::string::npos;
    });
  };
  REQUIRE(run_maki(session, typed).exit_code == 130);
  REQUIRE(read_text(typed.output_file) == written);
}

}  // namespace

TEST_CASE("an interactive session continues every prompt, with a seed of its own") {
  const InteractiveRun run;
  const Finished finished = run.type("the maki\ns\r\nthe\\\nreel\\\n\\\na\n\nthe maki\nend\\", {"--seed", "7"});
  REQUIRE(finished.out == run.text("the maki", 7) + run.text("s", 8) + run.text("the\nreel\n\na", 9) +
                              run.text("", 10) + run.text("the maki", 11) + run.text("end\n", 12));
  REQUIRE_THAT(finished.err, ContainsSubstring("\nseed 8\n"));
  REQUIRE_THAT(finished.err, !ContainsSubstring("reproduce"));
  REQUIRE_THAT(finished.err, !ContainsSubstring("> "));  // a pipe needs no prompts
  REQUIRE(run.type("").out.empty());
  for (const Arguments& greedy : {Arguments{"--temperature", "0"}, Arguments{"--top-k", "1"}})
    REQUIRE_THAT(run.type("the\n", greedy).err, !ContainsSubstring("seed"));
  // Several samples and JSON work as they do without a session.
  const std::string objects = run.type("the\ns\n", {"--seed", "1", "--json", "-n", "2"}).out;
  REQUIRE(std::count(objects.begin(), objects.end(), '\n') == 4);
}

TEST_CASE("a prompt that cannot be continued is reported, and the session goes on") {
  const InteractiveRun run;
  const Finished finished = run.type("Q\nthe maki unrolls slowly and\nthe\n", {"--seed", "1", "--overflow", "stop"});
  REQUIRE_THAT(finished.err, ContainsSubstring("maki: prompt: ") && ContainsSubstring("Q (U+0051)"));
  REQUIRE_THAT(finished.err, ContainsSubstring("maki: prompt: has 27 tokens, but the context window holds 16"));
  REQUIRE(finished.out == require_ok(run_maki({"generate", run.path, "--prompt", "the", "--max-tokens", "20", "--seed",
                                               "3", "--overflow", "stop"}))
                                  .out +
                              "\n");
}

TEST_CASE("a conversation that has grown too long is named, and can be forgotten") {
  const InteractiveRun run;
  const std::string first = "the maki unroll";  // one token less than the context window holds
  const std::string err =
      run.type(first + "\na\n/clear\na\nthe maki unrolls slowly\n", {"--remember", "--overflow", "stop"}).err;
  REQUIRE_THAT(err, ContainsSubstring("maki: prompt: the conversation has ") &&
                        ContainsSubstring("the context window holds 16; forget the conversation with /clear, or"));
  REQUIRE_THAT(err.substr(err.find("/clear, or")), ContainsSubstring("is full"));  // the prompt after /clear
  // Of an empty conversation the prompt alone is too long.
  REQUIRE_THAT(run.type("the maki unrolls slowly\n", {"--remember", "--overflow", "stop"}).err,
               ContainsSubstring("maki: prompt: has 23 tokens, but the context window holds 16; shorten it"));
  REQUIRE_THAT(run.type(first + "\na\n", {"--remember"}).err,
               ContainsSubstring("the conversation has ") && ContainsSubstring("the model reads only the last 16"));
}

TEST_CASE("standard input that cannot be read is an error, not its end: exit 3") {
  const InteractiveRun run;
  require_refused(run_maki({"generate", run.path, "--interactive"}, directory_as_input()), 3,
                  {"standard input: cannot be read"});
}

TEST_CASE("an interactive session on a terminal") {
  if (!has_terminals()) return;
  const InteractiveRun run({"--tokenizer", "byte"});
  const Arguments session = {"generate", run.path, "--interactive", "--max-tokens", "20", "--seed", "7"};
  const std::string both = run.text("the", 7) + run.text("reel", 8);
  RunOptions typed;
  typed.typed = "the\nreel\n\x04";
  const Finished finished = require_ok(run_maki(session, typed));
  REQUIRE(finished.out == both);
  REQUIRE_THAT(finished.err, ContainsSubstring("end with Ctrl-D") && ContainsSubstring("> "));
  // With stderr on a terminal, too, libedit reads the lines if maki has it. ^U erases what was typed.
  typed.typed = "maki\x15the\nreel\n";
  typed.terminal_columns = 80;
  interrupt_after(both, run, session, typed);
  // Also where the locale has no characters but ASCII, or is not installed.
  const std::string japanese = run.text("猫", 7) + run.text("reel", 8);
  typed.typed = "猫\nreel\n";
  for (const char* const locale : {"LC_ALL=C.UTF-8", "LC_ALL=C", "LC_ALL=xx_XX.UTF-8"}) {
    INFO(locale);
    typed.environment = {locale};
    interrupt_after(japanese, run, session, typed);
  }
}

TEST_CASE("Ctrl-C ends the text that is being written, and one without a text the session") {
  const InteractiveRun run;
  RunOptions options;
  options.input = "the\nkkkkkkkk\n";  // nothing that the model would write
  options.input_stays_open = true;
  options.output_file = run.folder / "out.txt";
  options.error_file = run.folder / "err.txt";
  // The second text has its 100 bytes before anybody interrupts it.
  const auto second_text = [&] {
    const std::string out = text_so_far(options.output_file);
    const std::size_t begin = out.find("\nkkkkkkkk");
    return begin == std::string::npos ? 0 : out.size() - begin;
  };
  options.meanwhile = [&](pid_t process) {
    wait_until([&] { return !text_so_far(options.output_file).empty(); });
    kill(process, SIGINT);
    wait_until([&] { return second_text() > 100; });
    kill(process, SIGINT);
    const auto reports = [&] {
      const std::string err = text_so_far(options.error_file);
      const std::size_t first = err.find("tokens per second");
      return first != std::string::npos && err.find("tokens per second", first + 1) != std::string::npos;
    };
    wait_until(reports);
    kill(process, SIGINT);
  };
  const Finished finished =
      run_maki({"generate", run.path, "--interactive", "--max-tokens", "1000000000", "--seed", "7"}, options);
  REQUIRE(finished.exit_code == 130);
  REQUIRE(second_text() > 100);
  REQUIRE_THAT(read_text(options.error_file), ContainsSubstring("maki: interrupted\n"));
}

TEST_CASE("an interactive session has no other prompts, and no model that translates") {
  const InteractiveRun run;
  require_refused(run_maki({"generate", run.path, "--interactive", "--prompt", "the"}), 2,
                  {"use only one of --prompt, --prompt-file, --prompts, --interactive and -"});
  for (const char* const option : {"--prompt-file=x", "--prompts=x"})
    require_refused(run_maki({"generate", run.path, "-", option}), 2, {"use only one of --prompt, --prompt-file"});
  for (const SmallKind& kind : every_kind()) {
    if (kind.task != "translate") continue;
    const TemporaryFolder folder;
    const std::string path = folder / "run";
    require_ok(
        run_maki(Arguments{"train", folder.write("corpus.txt", kind.corpus_text), "--out", path, "--max-steps", "2"} +
                 kind.options));
    for (const char* const option :
         {"--interactive", "--min-p=0.1", "--repetition-penalty=2", "--logit-bias=a=1", "--logprobs=1"}) {
      const std::string name = std::string(option).substr(0, std::string(option).find('='));
      require_refused(run_maki({"generate", path, option, "--json"}), 2,
                      {"generate: " + name + " does not apply to a model that translates", "omit it"});
    }
    require_refused(
        run_maki({"generate", path, "--adapt", "--top-p=0.5", "--temperature=1", "--samples=2", "--seed=1", "--stop=a",
                  "--overflow=stop", "--top-k=2", "--frequency-penalty=1", "--presence-penalty=1"}),
        2,
        {"generate: --samples, --temperature, --top-k, --top-p, --frequency-penalty, --presence-penalty, --seed, "
         "--stop, --overflow, --adapt do not apply"});
    require_refused(run_maki({"generate", path, "--prompts=x"}), 2, {"generate: --prompts does not apply"});
  }
}
