// Values of the command line that are empty, mostly because a variable of the shell is not set.
#include "autograd/core/check.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "train/app/command.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::string refusal(const std::vector<std::string>& words) {
  return error_message<Error>([&] { parse_command_line(words); });
}

}  // namespace

TEST_CASE("an empty value is refused, and not taken for an option that was not given") {
  REQUIRE(refusal({"train", "--resume", "", "t.txt"}) == "resume: must not be empty; give a value, or omit --resume");
  REQUIRE(refusal({"train", "t.txt", "--init-from="}) ==
          "init_from: must not be empty; give a value, or omit --init-from");
  for (const char* const option :
       {"--minutes", "--epochs", "--encoding", "--config", "--preset", "--tokenizer-file", "--out", "--checkpoint",
        "--n-layer", "--model", "--include", "--freeze", "--teacher", "--rank-timeout"}) {
    INFO(option);
    const std::string said = refusal({"train", "t.txt", option, ""});
    REQUIRE(said.find(": must not be empty; give a value, or omit ") != std::string::npos);
    REQUIRE(said.ends_with(option));
  }
  REQUIRE(refusal({"tokenizer", "train", "t.txt", "--out", ""}) == "out: must not be empty; give a value");
  for (const auto& [verb, option] : {std::pair{"generate", "--prompt-file"},
                                     {"generate", "--temperature"},
                                     {"generate", "--prompts"},
                                     {"generate", "--stop"},
                                     {"generate", "--with"},
                                     {"embed", "--npy"},
                                     {"embed", "--word"},
                                     {"attend", "--out"},
                                     {"report", "--out"},
                                     {"serve", "--token"},
                                     {"eval", "--checkpoint"}}) {
    INFO(verb << " " << option);
    REQUIRE_THAT(refusal({verb, "run", option, ""}), ContainsSubstring("must not be empty"));
  }
}

TEST_CASE("an empty path is refused by the name of the argument") {
  REQUIRE(refusal({"generate", ""}) == "RUN: must not be empty; give a value");
  REQUIRE(refusal({"inspect", "run", ""}) == "PATH: must not be empty; give a value");
  REQUIRE(refusal({"train", ""}) == "CORPUS: must not be empty; give a value, or omit CORPUS");
}

TEST_CASE("an empty text has a meaning where it is a prompt, a text of its own rules, or a way to read a text") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "run", "--prompt", ""},
        {"attend", "run", "--prompt", "a", "--target", ""},
        {"classify", "run", "a", ""},
        {"embed", "run", ""},
        {"eval", "run", "t.txt", "--json-field", "", "--document-separator", ""}}) {
    INFO(words[0]);
    REQUIRE(refusal(words).empty());
  }
}
