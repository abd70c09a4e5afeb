// train --teacher: runs that learn from others.
#include <filesystem>
#include <set>

#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"

using namespace maki::tests;

namespace {

// Two teachers, and the command of a run that they teach.
struct TaughtRun {
  TaughtRun() {
    for (const char* const seed : {"1", "2"})
      require_ok(run_maki(Arguments{"train", corpus, "--out", folder / seed, "--max-steps", "20", "--seed", seed} +
                          kSmall + prior));
  }
  Finished train(const std::string& out, const Arguments& more) const {
    return run_maki(Arguments{"train", corpus, "--out", folder / out, "--teacher", folder / "1"} + kSmall + prior +
                    more);
  }
  std::string weights(const std::string& out, int step = 30) const {
    return read_bytes(checkpoint(folder / out, step));
  }

  TemporaryFolder folder;
  std::string corpus = folder.write("corpus.txt", small_text());
  Arguments prior = {"--ngram-prior", "3"};
};

}  // namespace

TEST_CASE("a taught run has the same bytes however it is interrupted, on any threads, and when it is repeated") {
  const TaughtRun all;
  const Arguments both = {"--teacher", all.folder / "2", "--teacher-weight", "0.7"};
  require_ok(all.train("whole", both + Arguments{"--max-steps", "30"}));
  const std::string whole = all.weights("whole");
  require_ok(all.train("threads", both + Arguments{"--max-steps", "30", "--threads", "3"}));
  REQUIRE(all.weights("threads") == whole);
  require_ok(all.train("parts", both + Arguments{"--max-steps", "7"}));
  require_ok(run_maki({"train", "--resume", all.folder / "parts", "--max-steps", "30"}));
  REQUIRE(all.weights("parts") == whole);
  require_ok(run_maki({"train", "--config", all.folder / "whole/config.toml", "--out", all.folder / "again"}));
  REQUIRE(all.weights("again") == whole);
}

TEST_CASE(
    "a run that counts teach has the same bytes however it is interrupted, on any threads, and when it is repeated") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), whole = folder / "whole",
                    parts = folder / "parts";
  const Arguments taught = Arguments{"train", corpus, "--teacher", "@counts", "--ngram-prior", "3"} + kSmall;
  const Finished said = require_ok(run_maki(taught + Arguments{"--out", whole, "--max-steps", "12"}));
  // Not before it is known that there is enough memory.
  const std::size_t counted = said.err.find("counting the text in many contexts");
  REQUIRE(counted != std::string::npos);
  REQUIRE(said.err.find("memory about ") < counted);
  const std::string bytes = read_bytes(checkpoint(whole, 12));
  require_ok(run_maki(taught + Arguments{"--out", parts, "--max-steps", "5", "--threads", "3"}));
  require_ok(run_maki({"train", "--resume", parts, "--max-steps", "12", "--threads", "1"}));
  REQUIRE(read_bytes(checkpoint(parts, 12)) == bytes);
  require_ok(run_maki({"train", "--config", whole + "/config.toml", "--out", folder / "again"}));
  REQUIRE(read_bytes(checkpoint(folder / "again", 12)) == bytes);
  require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "alone", "--ngram-prior", "3", "--max-steps", "12"} +
                      kSmall));
  REQUIRE(read_bytes(checkpoint(folder / "alone", 12)) != bytes);
  const Finished other =
      run_maki({"train", "--resume", parts, "--max-steps", "14", "--teacher", "@own:3", "--teacher", "@counts"});
  require_refused(other, 2,
                  {"teacher: this run learns from @counts; got 1 run and @counts; name what it has learned from"});
  REQUIRE_THAT(other.err, !ContainsSubstring("counting the text"));
  // Nor does a run get a teacher that it has not had from the beginning.
  require_refused(run_maki({"train", "--resume", folder / "alone", "--max-steps", "14", "--teacher", "@counts"}), 2,
                  {"teacher: this run has learned from its text alone up to step 12", "omit --teacher"});
}

TEST_CASE("teachers, their weight and their order change what is learned") {
  const TaughtRun all;
  std::set<std::string> different;
  const std::vector<Arguments> each = {
      {}, {"--teacher-weight", "0.6"}, {"--teacher", all.folder / "2"}, {"--label-smoothing", "0.1"}};
  for (std::size_t i = 0; i < each.size(); ++i) {
    const std::string out = std::to_string(i + 10);
    require_ok(all.train(out, each[i] + Arguments{"--max-steps", "4"}));
    different.insert(all.weights(out, 4));
  }
  require_ok(
      run_maki(Arguments{"train", all.corpus, "--out", all.folder / "alone", "--max-steps", "4"} + kSmall + all.prior));
  different.insert(all.weights("alone", 4));
  REQUIRE(different.size() == each.size() + 1);
}

TEST_CASE("a run has the tokens of its teacher, unless options say otherwise") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "teacher", "--max-steps", "2", "--tokenizer", "bpe",
                                "--vocab-size", "270"} +
                      kSmall));
  const Arguments taught = Arguments{"train", corpus, "--teacher", folder / "teacher", "--max-steps", "2"} + kSmall;
  const Finished trained = require_ok(run_maki(taught + Arguments{"--out", folder / "run"}));
  REQUIRE_THAT(trained.err, ContainsSubstring("vocabulary of 270"));
  REQUIRE_THAT(trained.err, ContainsSubstring("teach  a weight of 0.5 for the predictions of "));
  require_refused(run_maki(taught + Arguments{"--out", folder / "other", "--tokenizer", "char"}), 2,
                  {"has other tokens than this run"});
  const Finished planned =
      require_ok(run_maki({"plan", corpus, "--teacher", folder / "teacher", "--minutes", "1s", "--threads", "1"}));
  REQUIRE_THAT(planned.out, ContainsSubstring("on 270 byte pairs"));
}

TEST_CASE("a run whose teacher is gone, or another one, is not continued: exit 2") {
  const TaughtRun all;
  require_ok(all.train("run", {"--max-steps", "4"}));
  const Arguments resumed = {"train", "--resume", all.folder / "run", "--max-steps", "8"};
  require_refused(run_maki(resumed + Arguments{"--teacher", all.folder / "2"}), 2, {"name the same checkpoints"});
  require_refused(run_maki(resumed + Arguments{"--teacher-weight", "0.4"}), 2,
                  {"teacher_weight: is fixed for this run at 0.5; got 0.4; omit --teacher-weight"});
  std::filesystem::rename(all.folder / "1", all.folder / "moved");
  require_refused(run_maki(resumed), 2, {"teacher: " + all.folder / "1"});
  require_ok(run_maki(resumed + Arguments{"--teacher", all.folder / "moved"}));
  std::filesystem::remove(all.folder / "run/config.toml");  // which names the teacher
  require_refused(run_maki({"train", all.corpus, "--resume", all.folder / "run", "--max-steps", "12"}), 2,
                  {"learns from 1 run; got none"});
  require_refused(run_maki({"train", all.corpus, "--out", all.folder / "x", "--teacher-weight", "0.4"}), 2,
                  {"teacher_weight: has an effect only with --teacher; add it, or omit --teacher-weight"});
  const std::string damaged = all.folder.write("damaged.maki", "damaged");
  require_refused(run_maki({"train", all.corpus, "--out", all.folder / "x", "--teacher", damaged}), 4,
                  {"teacher: " + damaged});
}

TEST_CASE("what is exported of a run with teachers is a run of its own, which needs none of them") {
  const TaughtRun all;
  require_ok(all.train("run", {"--max-steps", "4", "--teacher-weight", "0.25"}));
  const std::string out = all.folder / "exported";
  require_ok(run_maki({"export", all.folder / "run", "--format", "maki", "--out", out}));
  REQUIRE_THAT(require_ok(run_maki({"inspect", out, "--verify"})).out, ContainsSubstring("can be resumed"));
  require_ok(run_maki({"train", "--resume", out, all.corpus, "--max-steps", "6"}));
}
