// `maki report`: one page that needs nothing else.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

std::string run_to_report(const TemporaryFolder& folder, const std::string& name, const Arguments& options = {}) {
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / name;
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "40"} + kSmall + options));
  return run;
}

std::string report_of(const Arguments& arguments) {
  const TemporaryFolder folder;
  require_ok(run_maki(Arguments{"report"} + arguments + Arguments{"--out", folder / "page.html"}));
  return read_text(folder / "page.html");
}

// The elements that are not closed in the right order; empty for a page that is well-formed.
std::string first_unclosed(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == page.npos) return page.substr(at, 20);
    const std::string tag = page.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag.starts_with("!") || tag.ends_with("/") || name == "meta" || name == "br") continue;
    if (!tag.starts_with("/")) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return tag;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

bool page_has(const std::string& page, const std::string& text) { return page.find(text) != page.npos; }

}  // namespace

TEST_CASE("a report is one well-formed page of its own, without scripts or anything from elsewhere") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run", {"--sample-interval", "10"}), page = report_of({run});
  REQUIRE(first_unclosed(page) == "");
  REQUIRE(page.size() < 300'000);
  for (const char* const foreign : {"<script", "src=", "href=", "@import", "url(", "javascript:", "<link", "<iframe"})
    REQUIRE_FALSE(page_has(page, foreign));
  for (const char* const part :
       {"Losses", "Optimization and speed", "Layers", "Samples", "step 10<", "step 40<", "How surprised the model is",
        "loss by position", "Attention", "Positions", "Nearest tokens", "counting alone", "all its steps are done",
        "maki train --config", "Where the time of a step goes"})
    REQUIRE(page_has(page, part));
  const std::string japanese = report_of({run, "--lang", "ja"});
  REQUIRE(first_unclosed(japanese) == "");
  REQUIRE(page_has(japanese, "<html lang=\"ja\">"));
  REQUIRE(page_has(japanese, "すべてのステップを終えた"));
  REQUIRE_FALSE(page_has(japanese, "Losses"));
}

TEST_CASE("the language of a report is that of the locale") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run"), out = folder / "page.html";
  RunOptions locale;
  locale.environment = {"LC_ALL=ja_JP.UTF-8"};
  require_ok(run_maki({"report", run, "--out", out}, locale));
  REQUIRE(page_has(read_text(out), "<html lang=\"ja\">"));
}

TEST_CASE("a report names its file by the run and the step, and replaces no file") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run");
  require_ok(run_maki({"report", run}));
  REQUIRE(std::filesystem::exists(run + "/report-40.html"));
  require_refused(run_maki({"report", run}), 2, {"report-40.html"});
  require_ok(run_maki({"report", run, "--force"}));
  require_refused(run_maki({"report", run, run}), 2, {"--out"});
  require_refused(run_maki({"report", folder / "nothing"}), 2, {"nothing"});
}

TEST_CASE("what a report takes from a user is text, never HTML") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "<b>&\"run", {"--sample-interval", "40"}), page = report_of({run});
  REQUIRE(first_unclosed(page) == "");
  REQUIRE_FALSE(page_has(page, "<b>"));
  REQUIRE(page_has(page, "&lt;b&gt;&amp;&quot;run"));
}

TEST_CASE("several runs are side by side, first what differs") {
  const TemporaryFolder folder;
  const std::string first = run_to_report(folder, "first"),
                    second = run_to_report(folder, "second", {"--learning-rate", "0.01"});
  const std::string page = report_of({first, second});
  REQUIRE(first_unclosed(page) == "");
  REQUIRE(page_has(page, "<th scope=\"row\">learning_rate</th><td>0.003</td><td>0.01</td>"));
  REQUIRE(page.find("learning_rate</th>") < page.find("Equal in all of them"));
  REQUIRE(page.find("n_layer = 2") > page.find("Equal in all of them"));
}

TEST_CASE("a report of a run whose text is gone shows everything else, and says so") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run");
  std::filesystem::remove(folder / "corpus.txt");
  const std::string page = report_of({run});
  REQUIRE(page_has(page, "corpus.txt"));
  REQUIRE(page_has(page, "Losses"));
  REQUIRE_FALSE(page_has(page, "How surprised"));
}

TEST_CASE("a report shows what a translator, a classifier and an encoder have learned") {
  const TemporaryFolder folder;
  std::string pairs, labelled;
  for (int i = 0; i < 60; ++i) {
    pairs += "one two " + std::to_string(i) + "\teins zwei " + std::to_string(i) + "\n";
    labelled += (i % 2 == 0 ? "good day\tyes\n" : "bad night\tno\n");
  }
  const auto page = [&](const std::string& text, const Arguments& options) {
    const std::string run = folder / "run";
    std::filesystem::remove_all(run);
    require_ok(run_maki(Arguments{"train", folder.write("text.txt", text), "--out", run, "--max-steps", "4",
                                  "--n-layer", "1", "--n-embd", "16", "--n-head", "2", "--block-size", "32"} +
                        options));
    const std::string html = report_of({run});
    REQUIRE(first_unclosed(html) == "");
    return html;
  };
  const std::string translator = page(pairs, {"--model", "seq2seq"});
  REQUIRE(page_has(translator, "reference</th>"));
  REQUIRE(page_has(translator, "eins zwei"));
  REQUIRE(page_has(translator, "attention of the decoder"));
  REQUIRE(page_has(page(labelled, {"--model", "encoder", "--task", "classify"}), "<th scope=\"row\">yes</th>"));
  REQUIRE(page_has(page(small_text(), {"--model", "encoder"}), "[MASK]"));
}
