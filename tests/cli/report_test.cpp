// `maki report`: one page that needs nothing else.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <sys/stat.h>
#include <tuple>
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
        "maki train --config", "Where the time of a step goes", "gpt: 2 layers, 2 heads, width 16, context of 16"})
    REQUIRE(page_has(page, part));
  for (const char* const heading : {"Losses", "Layers", "Samples", "Attention", "Positions"})
    REQUIRE(page_has(page, fmt::format("<h2>{}</h2>", heading)));
  const std::string japanese = report_of({run, "--lang", "ja"});
  REQUIRE(first_unclosed(japanese) == "");
  REQUIRE(page_has(japanese, "<html lang=\"ja\">"));
  REQUIRE(page_has(japanese, "すべてのステップを終えた"));
  REQUIRE(page_has(japanese, "gpt：2 層、2 ヘッド、幅 16、文脈長 16"));
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
  require_refused(run_maki({"report", run, "--out", folder / "page.svg"}), 2, {"out: must end with .html"});
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

TEST_CASE("what counting reaches is drawn for runs of one text, not for those of several") {
  const TemporaryFolder folder;
  const std::string first = run_to_report(folder, "first"), second = run_to_report(folder, "second"),
                    words = run_to_report(folder, "words", {"--tokenizer", "byte", "--n-layer", "1"});
  REQUIRE(page_has(report_of({first, second}), "counting alone"));
  REQUIRE_FALSE(page_has(report_of({first, words}), "counting alone"));
  REQUIRE(page_has(report_of({words}), "gpt: 1 layer, 2 heads"));
}

TEST_CASE("a report of a run whose text is gone shows everything else, and says so") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run");
  std::filesystem::remove(folder / "corpus.txt");
  const std::string page = report_of({run});
  REQUIRE(page_has(page, "corpus.txt"));
  REQUIRE(page_has(page, "Losses"));
  REQUIRE_FALSE(page_has(page, "How surprised"));
  folder.write("corpus.txt", "another text");  // and one that is another now
  REQUIRE(page_has(report_of({run}), "is not the text of this run"));
  REQUIRE(page_has(report_of({run}), "; what the model makes of it is not shown"));
}

TEST_CASE("a report does not wait for a text that was a pipe, and says so") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run"), corpus = folder / "corpus.txt";
  std::filesystem::remove(corpus);
  REQUIRE(mkfifo(corpus.c_str(), 0600) == 0);
  const std::string page = report_of({run});
  REQUIRE(page_has(page, "standard input or a pipe"));
  REQUIRE(page_has(page, "hash of its values"));
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

TEST_CASE("a report replaces nothing that it reads") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run"), other = run_to_report(folder, "other");
  for (const std::string& input : {run + "/config.toml", run + "/metrics.jsonl", run + "/checkpoints/best",
                                   other + "/config.toml", folder / "corpus.txt"}) {
    const std::string before = read_text(input);
    require_refused(run_maki({"report", run, other, "--out", input, "--force"}), 2, {"is read by this command"});
    REQUIRE(read_text(input) == before);
  }
}

TEST_CASE("a report of few or strange measurements says what is missing") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run", {"--max-steps", "1"}), metrics = run + "/metrics.jsonl";
  REQUIRE(page_has(report_of({run}), "There are no curves"));
  const auto page_of = [&](const Arguments& lines) {
    std::string text;
    int step = 0;
    for (const std::string& line : lines)
      text += R"({"kind":"train","step":)" + std::to_string(++step) + "," + line + "}\n";
    write_bytes(metrics, text);
    const std::string page = report_of({run});
    REQUIRE(first_unclosed(page) == "");
    REQUIRE(page.size() < 300'000);
    return page;
  };
  // Numbers between which no tick can be, and the smallest that there are.
  page_of({R"("loss":5e-324)", R"("loss":1e-323)", R"("loss":1)"});
  page_of({R"("loss":1,"elapsed_seconds":1e18)", R"("loss":2,"elapsed_seconds":1000000000000000256)"});
  page_of({R"("loss":1e308)", R"("loss":-1e308)"});
  // Lines in no order.
  Arguments lines;
  for (int i = 0; i < 5000; ++i)
    lines.push_back(R"("loss":3,"elapsed_seconds":)" + std::to_string(i % 2 == 0 ? i : 5000 - i));
  page_of(lines);
  write_bytes(metrics, R"({"kind":"sample","step":1,"text":")" + std::string(1'000'000, 'a') + "\"}\n");
  REQUIRE(report_of({run}).size() < 300'000);
}

TEST_CASE("a validation loss is drawn at its own step, which need not be a logged one") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run");
  write_bytes(run + "/metrics.jsonl", R"({"kind":"train","step":10,"loss":3,"elapsed_seconds":1})"
                                      "\n"
                                      R"({"kind":"eval","step":11,"train_loss":3,"val_loss":3})"
                                      "\n"
                                      R"({"kind":"train","step":20,"loss":2,"elapsed_seconds":2})"
                                      "\n");
  REQUIRE(page_has(report_of({run}), "cx=\"87.8\""));  // a tenth of the width of 358 from its left end at 52
}

TEST_CASE("a report tells from which text it shows a part, and how to begin with the same weights") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run", {"--val-fraction", "0"}), page = report_of({run});
  REQUIRE(page_has(page, "From the training text, because there is no validation text."));
  REQUIRE_FALSE(page_has(page, "From the validation text"));
  const std::string next = folder / "next";
  require_ok(run_maki({"train", folder / "corpus.txt", "--init-from", run, "--out", next, "--max-steps", "2"}));
  REQUIRE(page_has(report_of({next}), "--init-from"));
}

TEST_CASE("the command of a report trains the same model again, also one whose tokenizer came from a file") {
  const TemporaryFolder folder;
  const std::string tokenizer = folder / "tokenizer.json", again = folder / "again";
  require_ok(run_maki({"tokenizer", "train", folder.write("words.txt", small_text() + "0123456789"), "--vocab-size",
                       "270", "--out", tokenizer}));
  const std::string run = run_to_report(folder, "run", {"--tokenizer-file", tokenizer}), config = run + "/config.toml";
  REQUIRE(page_has(report_of({run}),
                   fmt::format("maki train --config {} --tokenizer-file {} --out NEW_RUN<", config, run)));
  require_ok(run_maki({"train", "--config", config, "--tokenizer-file", run, "--out", again}));
  REQUIRE(read_text(checkpoint(again, 40)) == read_text(checkpoint(run, 40)));
  // A smaller vocabulary than the configuration asks for was learned, and is learned again.
  const std::string learned = run_to_report(folder, "learned", {"--tokenizer", "bpe", "--vocab-size", "100000"});
  REQUIRE(page_has(report_of({learned}), fmt::format("maki train --config {}/config.toml --out NEW_RUN<", learned)));
}

TEST_CASE("a report of a single checkpoint, or of a run with a damaged configuration, shows the rest") {
  const TemporaryFolder folder;
  const std::string run = run_to_report(folder, "run");
  const std::string file = report_of({run + "/checkpoints/step-00000040.maki"});
  REQUIRE(page_has(file, "hash of its values"));
  REQUIRE(page_has(file, "does not name the text of its training"));
  write_bytes(run + "/config.toml", "damaged");
  const std::string page = report_of({run});
  REQUIRE(page_has(page, "config.toml: line 1"));
  REQUIRE(page_has(page, "hash of its values"));
  REQUIRE(page_has(page, "Losses"));
}

TEST_CASE("a report of a long context or of many labels is no larger than others") {
  const TemporaryFolder folder;
  std::string text, labelled;
  for (int i = 0; i < 20'000; ++i) text += small_text()[static_cast<std::size_t>(i) % 100];
  for (int i = 0; i < 2000; ++i)
    labelled += "text " + std::to_string(i % 7) + "\tlabel " + std::to_string(i % 500) + "\n";
  const auto page = [&](const std::string& name, const std::string& content, const Arguments& options) {
    const std::string run = folder / name + "-run";
    require_ok(run_maki(Arguments{"train", folder.write(name, content), "--out", run, "--max-steps", "2", "--n-layer",
                                  "1", "--n-embd", "8", "--n-head", "1", "--batch-size", "1"} +
                        options));
    const std::string html = report_of({run});
    REQUIRE(first_unclosed(html) == "");
    REQUIRE(html.size() < 130'000);
    return html;
  };
  page("long.txt", text, {"--block-size", "1900"});
  const std::string labels =
      page("many.tsv", labelled, {"--block-size", "16", "--model", "encoder", "--task", "classify"});
  // The most frequent ones, of those of as many batches as the report reads.
  const auto facts = nlohmann::json::parse(
      require_ok(run_maki({"eval", folder / "many.tsv-run", "--eval-batches", "32", "--json"})).out);
  std::vector<std::tuple<int, std::size_t, std::size_t>> mistakes;
  for (std::size_t label = 0; label < facts.at("labels").size(); ++label) {
    for (std::size_t answer = 0; answer < facts.at("labels").size(); ++answer) {
      const int count = facts.at("confusion")[label][answer];
      if (count > 0 && answer != label) mistakes.emplace_back(-count, label, answer);
    }
  }
  REQUIRE(mistakes.size() > 24);
  std::ranges::sort(mistakes);
  std::string rows;
  for (const auto& [count, label, answer] : std::span(mistakes).first(24))
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
                        facts.at("labels")[label].get<std::string>(), facts.at("labels")[answer].get<std::string>(),
                        -count);
  REQUIRE(page_has(labels, "Most frequent mistakes"));
  REQUIRE(page_has(labels, "<th scope=\"col\">times</th></tr>\n" + rows + "</table>"));
}
