// maki eval: overlapping windows, every file by itself, and the loss by position.
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/every_kind.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::string trained_run(const TemporaryFolder& folder, const std::string& corpus, const Arguments& more) {
  const std::string run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "30"} + more));
  return run;
}

json eval_facts(const Arguments& arguments) {
  return json::parse(require_ok(run_maki(Arguments{"eval"} + arguments + Arguments{"--json"})).out);
}

}  // namespace

TEST_CASE(
    "eval by position: for every kind of model the positions add up to the loss, and only a classifier has none") {
  int reported = 0;
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string run = trained_run(folder, folder.write("corpus.txt", kind.corpus_text), kind.options);
    if (kind.task == "classify") {
      require_refused(run_maki({"eval", run, "--by-position"}), 2,
                      {"--by-position applies only to a model that predicts tokens", "the task of ", "is classify"});
      continue;
    }
    ++reported;
    const json facts = eval_facts({run, "--by-position"});
    double sum = 0;
    std::int64_t targets = 0;
    for (const json& position : facts.at("by_position")) {
      sum += position.at("loss").get<double>() * position.at("targets").get<double>();
      targets += position.at("targets").get<std::int64_t>();
    }
    REQUIRE(targets == facts.at("targets"));
    REQUIRE(sum / static_cast<double>(targets) == Approx(facts.at("val_loss").get<double>()).epsilon(1e-5));
    REQUIRE(facts == eval_facts({run, "--by-position", "--threads", "1"}));
    const json fewer = eval_facts({run, "--by-position", "--eval-batches", "1"});
    REQUIRE(fewer.at("by_position") != facts.at("by_position"));
    REQUIRE_FALSE(eval_facts({run}).contains("by_position"));
    REQUIRE_THAT(require_ok(run_maki({"eval", run, "--by-position"})).out, ContainsSubstring("\n  3-4 "));
  }
  REQUIRE(reported >= 4);
}

TEST_CASE("eval with a stride: a longer context for most tokens, and for which models there is none") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string run = trained_run(folder, folder.write("corpus.txt", kind.corpus_text), kind.options);
    if (kind.task != "next_token") {
      require_refused(run_maki({"eval", run, "--stride", "4"}), 2,
                      {"--stride applies only to a model that predicts the next token", "is " + kind.task, "omit it"});
      continue;
    }
    if (kind.model == "transformer-xl") {
      require_refused(run_maki({"eval", run, "--stride", "4"}), 2, {"remembers what it has read", "omit it"});
      continue;
    }
    const json plain = eval_facts({run}), whole = eval_facts({run, "--stride", "16"}),
               one = eval_facts({run, "--stride", "1"});
    REQUIRE(whole.at("val_loss") == plain.at("val_loss"));
    REQUIRE(whole.at("stride") == 16);
    REQUIRE_FALSE(plain.contains("stride"));
    REQUIRE(one.at("targets") == plain.at("targets"));
    REQUIRE(one.at("batches_of_text") > plain.at("batches_of_text"));
    REQUIRE(one.at("val_loss") < plain.at("val_loss"));
    REQUIRE(one == eval_facts({run, "--stride", "1", "--threads", "3"}));
    require_refused(run_maki({"eval", run, "--stride", "17"}), 2, {"stride: must be between 1 and 16", "got 17"});
    require_refused(run_maki({"eval", run, "--stride", "0"}), 2, {"stride: must be between 1 and", "got 0"});
    require_refused(run_maki({"eval", run, "--stride", "4", "--by-position"}), 2, {"omit --stride"});
  }
}

TEST_CASE("eval per file: each file has the figures that it has alone") {
  const TemporaryFolder folder;
  const std::string run = trained_run(folder, folder.write("corpus.txt", small_text()), kSmall);
  const std::string a = folder.write("a.txt", "the maki unrolls slowly"), b = folder.write("b.txt", "tape"),
                    one = folder.write("one.txt", "t"), none = folder.write("none.txt", ""),
                    unknown = folder.write("unknown.txt", "the Qaki");
  const json facts = eval_facts({run, a, none, one, b, "--per-file"});
  REQUIRE(facts.at("files").size() == 3);
  REQUIRE(facts.at("files").at(0).at("file") == a);
  REQUIRE(facts.at("files").at(1) == json({{"file", one}, {"targets", 0}, {"unknown_characters", 0}}));
  REQUIRE(facts.at("files").at(2).at("file") == b);
  for (const std::size_t i : {0U, 2U}) {
    const json& file = facts.at("files").at(i);
    const json alone = eval_facts({run, file.at("file")});
    for (const char* const key :
         {"targets", "val_loss", "nats_per_character", "perplexity", "bits_per_byte", "bits_per_character"}) {
      REQUIRE(file.at(key) == alone.at(key));
    }
  }
  REQUIRE_FALSE(eval_facts({run, a, b}).contains("files"));
  const std::string out = require_ok(run_maki({"eval", run, a, one, "--per-file"})).out;
  REQUIRE_THAT(out, ContainsSubstring("\nfile         " + a + ": ") && ContainsSubstring(" bits/byte, "));
  REQUIRE_THAT(out, ContainsSubstring("\nfile         " + one + ": 0 targets\n"));
  // Windows overlap within each file, too, and unknown characters are those of the file.
  const json strided = eval_facts({run, a, b, "--per-file", "--stride", "2"});
  REQUIRE(strided.at("files").at(0).at("val_loss") == eval_facts({run, a, "--stride", "2"}).at("val_loss"));
  const json skipped = eval_facts({run, a, unknown, "--per-file", "--unknown", "skip"});
  REQUIRE(skipped.at("files").at(0).at("unknown_characters") == 0);
  REQUIRE(skipped.at("files").at(1).at("unknown_characters") == 1);
  require_refused(run_maki({"eval", run, a, "--per-file", "--eval-batches", "2"}), 2, {"omit --eval-batches"});
}

TEST_CASE("eval per file of the run's own text measures the validation part of each file") {
  const TemporaryFolder folder;
  const std::string text = small_text();
  folder.write("corpus/a.txt", text.substr(0, 3000));
  folder.write("corpus/b.txt", text.substr(3000));
  const std::string run = trained_run(folder, folder / "corpus", kSmall + Arguments{"--val-fraction", "0.5"});
  const json facts = eval_facts({run, "--per-file"});
  REQUIRE(facts.at("part") == "validation");
  REQUIRE(facts.at("files").size() == 2);
  const std::string tail = folder.write("tail.txt", text.substr(1500, 1500));
  REQUIRE(facts.at("files").at(0).at("file") == folder / "corpus/a.txt");
  REQUIRE(facts.at("files").at(0).at("val_loss") == eval_facts({run, tail}).at("val_loss"));
  REQUIRE(facts.at("files").at(1).at("file") == folder / "corpus/b.txt");
}

TEST_CASE("eval per file of documents: one line for each file, with the figures that it has alone") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const char* words) {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += fmt::format("{{\"text\": \"the {} {}\"}}\n", words, i);
    return folder.write(name, lines);
  };
  const std::string a = file("a.jsonl", "maki unrolls"), b = file("b.jsonl", "tape reel"),
                    c = file("c.jsonl", "maki reel");
  const Arguments fields = {"--json-field", "text"};
  const std::string run = trained_run(folder, a, kSmall + fields + Arguments{"--tokenizer", "bpe"});
  const json own = eval_facts({run, "--per-file"});
  REQUIRE(own.at("files").size() == 1);
  REQUIRE(own.at("files").at(0).at("val_loss") == own.at("val_loss"));
  const json facts = eval_facts(Arguments{run, c, b, "--per-file"} + fields);
  REQUIRE(facts.at("files").size() == 2);
  for (const json& each : facts.at("files")) {
    const json alone = eval_facts(Arguments{run, each.at("file")} + fields);
    REQUIRE(each.at("targets") == alone.at("targets"));
    REQUIRE(each.at("val_loss") == alone.at("val_loss"));
  }
}

TEST_CASE("eval per file of a task that reads columns is refused") {
  for (const SmallKind& kind : every_kind()) {
    if (kind.task != "classify" && kind.task != "translate") continue;
    const TemporaryFolder folder;
    const std::string run = trained_run(folder, folder.write("corpus.txt", kind.corpus_text), kind.options);
    require_refused(run_maki({"eval", run, "--per-file"}), 2,
                    {"--per-file applies only to a model of plain text", "is " + kind.task});
  }
}
