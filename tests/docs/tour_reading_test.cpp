// What the tests of the tours notice: other words, other numbers, missing lines, files and names that do not exist.
#include "tests/catch.h"
#include "tests/docs/tour.h"
#include "tests/files.h"

using namespace maki::tests;

namespace {

bool agree(const std::string& expected, const std::string& printed, const std::string& mode = "") {
  return difference(expected, printed, mode).empty();
}

std::string rejected(const std::string& markdown) {
  return error_message<std::runtime_error>([&] { read_tour(markdown); });
}

}  // namespace

TEST_CASE("a tour notices other words, other integers, and other numbers if they are far away") {
  REQUIRE(agree("step 20  loss 2.50\n", "step 20   loss 2.50"));
  REQUIRE(agree("step 20  loss 2.50", "step 20  loss 2.31"));
  REQUIRE_FALSE(agree("step 20  loss 2.50", "step 20  loss 2.20"));
  REQUIRE_FALSE(agree("step 20  loss 2.50", "step 21  loss 2.50"));
  REQUIRE_FALSE(agree("step 20  loss 2.50", "Step 20  loss 2.50"));
  REQUIRE_FALSE(agree("step 20  loss 2.50", "step 20  loss 2.50 nats"));
  REQUIRE_FALSE(agree("1,800 tokens", "1,801 tokens"));
  REQUIRE(agree("0.02 and -3.1e-11", "0.04 and -3.3e-11"));
  REQUIRE_FALSE(agree("0.02", "0.05"));
  REQUIRE_FALSE(agree("x -3.1", "x 3.1"));
  REQUIRE_FALSE(agree("loss 2.5", "loss nan"));
  REQUIRE(agree("positions 0-15", "positions 0-15"));
  REQUIRE_FALSE(agree("損失 2.5", "誤差 2.5"));
}

TEST_CASE("a tour notices missing and further lines, except where it is shortened") {
  REQUIRE_FALSE(agree("a\nb", "a"));
  REQUIRE_FALSE(agree("a", "a\nb"));
  REQUIRE(agree("a\n…\nd", "a\nb\nc\nd"));
  REQUIRE(agree("a\n…\nd", "a\nd\nb\nd"));  // the gap may end at either d
  REQUIRE(agree("a\n…", "a"));
  REQUIRE_FALSE(agree("a\n…\nd", "a\nb\nc"));
  REQUIRE_FALSE(agree("…\nb\n…", "a\nc"));
  REQUIRE(agree("weight 0.5 …", "weight 0.5 and so on"));
  REQUIRE_FALSE(agree("weight 0.5 …", "bias 0.5 and so on"));
  REQUIRE(difference("a\nb\n", "a\nc\n", "") == "expected \"b\", printed \"c\"");
  REQUIRE(difference("a\nb\n", "a\n", "") == "expected \"b\", printed the end");
}

TEST_CASE("a tour may leave numbers open, or all of an output") {
  REQUIRE(agree("error 2.5e-11 at 3", "error 8.1e-10 at 17", "numbers"));
  REQUIRE_FALSE(agree("error 2.5e-11", "failed 2.5e-11", "numbers"));
  REQUIRE(agree("Once upon", "a time", "sample"));
  REQUIRE_FALSE(agree("Once upon", "\n", "sample"));
}

TEST_CASE("a tour is read: sections, commands, outputs, links") {
  const Tour tour = read_tour(
      "# T\n[a](b.md) [`f`](c.h#L3) [web](https://x) [here](#y)\n[`g` and\n`h`](d.h)\n## 1. "
      "One\n```sh\nmaki\n```\n\n```text "
      "numbers\nout\n```\n"
      "## 2. Two\n```console\n$ no\n```\n");
  REQUIRE(tour.sections == std::vector<int>{1, 2});
  REQUIRE(tour.blocks.size() == 1);
  REQUIRE(tour.blocks[0].line == 6);
  REQUIRE(tour.blocks[0].section == 1);
  REQUIRE(tour.blocks[0].command == "maki\n");
  REQUIRE(tour.blocks[0].expected == "out\n");
  REQUIRE(tour.blocks[0].mode == "numbers");
  REQUIRE(tour.links.size() == 3);
  REQUIRE(tour.links[1].text == "`f`");
  REQUIRE(tour.links[2].line == 3);
  REQUIRE(tour.links[2].target == "d.h");
  REQUIRE(rejected("```sh\na\n```\n```sh\nb\n```\n") == "line 4: a command has no output");
  REQUIRE(rejected("```sh\na\n```\n") == "line 3: the last command has no output");
  REQUIRE(rejected("```text\na\n```\n") == "line 1: output of no command");
  REQUIRE(rejected("```bash\na\n```\n") == "line 1: unknown kind of block: ```bash");
  REQUIRE(rejected("x\n```sh\na\n") == "line 2: the block has no end");
}

TEST_CASE("a tour notices links to files that do not exist, and to files without the named function") {
  const TemporaryFolder folder;
  folder.write("nn/layers.h", "struct Linear {};\nTensor activate_all();\n");
  const auto wrong = [&](const std::string& text, const std::string& target) {
    return defect({1, text, target}, folder.path());
  };
  REQUIRE(wrong("layers", "nn/layers.h") == "");
  REQUIRE(wrong("layers", "nn/layer.h") == "nn/layer.h does not exist");
  REQUIRE(wrong("`Linear`", "nn/layers.h#L1") == "");
  REQUIRE(wrong("`Linear` and `activate_all`", "nn/layers.h") == "");
  REQUIRE(wrong("`activate`", "nn/layers.h") == "nn/layers.h does not contain activate");
  REQUIRE(wrong("`Linear` and `Conv`", "nn/layers.h") == "nn/layers.h does not contain Conv");
  REQUIRE(wrong("`nn/layers.h`", "nn/layers.h") == "");
  REQUIRE(wrong("`layers.h`", "nn/layers.h") == "");
}

TEST_CASE("a page is renewed where a command prints something else, and shortened as it was") {
  REQUIRE(renewed("loss 2.50\n", "loss 2.49\n", "") == "loss 2.50\n");  // close enough: the page stays
  REQUIRE(renewed("a\nb\n", "a\nc\nd\n", "") == "a\nc\nd\n");
  REQUIRE(renewed("a\nb\nc\n", "x\n", "") == "x\n");
  REQUIRE(renewed("a\n…\nd\n", "A\nb\nc\nD\n", "") == "A\n…\nD\n");
  REQUIRE(renewed("a\n…\nm\n…\nd\n", "A\nb\nM\nc\nD\n", "") == "A\n…\nm\n…\nD\n");
  REQUIRE(renewed("…\nm\nn\n…\n", "a\nM\nn\nc\n", "") == "…\nM\nn\n…\n");
  REQUIRE(renewed("the old be…\n", "the new beginning\n", "") == "the new be…\n");
  REQUIRE(renewed("損失は…\n", "誤差は 2\n", "") == "誤差は…\n");
}
