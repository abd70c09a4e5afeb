// metrics.jsonl: the exact text of both kinds of lines, only finite numbers, and truncation to the step from which a
// run resumes.
#include "train/run/metrics.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <sys/resource.h>

#include "data/io/error.h"
#include "tests/data/allocations.h"
#include "tests/files.h"
#include "train/app/progress.h"

using namespace maki;
using namespace maki::tests;

namespace {

StepReport step(std::int64_t n) {
  return {.step = n, .loss = 2.5, .learning_rate = 0.1, .grad_norm = 1.0 / 3, .tokens = 768};
}
EvalReport evaluation(std::int64_t n, double loss) { return {.step = n, .train_loss = 2.25, .val_loss = loss}; }

std::string line(std::int64_t n) { return "{\"kind\":\"train\",\"step\":" + std::to_string(n) + "}\n"; }

// What is left of `text` when a run resumes at step `at`.
std::string cut(const TemporaryFolder& folder, const std::string& text, std::int64_t at) {
  write_bytes(folder / "metrics.jsonl", text);
  { const MetricsFile metrics(folder / "metrics.jsonl", at); }
  return read_bytes(folder / "metrics.jsonl");
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the exact text of a line of each kind, in the file as soon as it is written") {
  const TemporaryFolder folder;
  MetricsFile metrics(folder / "metrics.jsonl", 0);
  metrics.on_log(step(10), 12345.5, 0.125);
  const std::string first =
      "{\"kind\":\"train\",\"step\":10,\"loss\":2.5,\"learning_rate\":0.1,\"grad_norm\":0.3333333333333333,"
      "\"tokens\":768,\"tokens_per_second\":12345.5,\"elapsed_seconds\":0.125}\n";
  REQUIRE(read_bytes(folder / "metrics.jsonl") == first);
  metrics.on_eval(evaluation(10, 2.125), false);
  const std::string second =
      "{\"kind\":\"eval\",\"step\":10,\"train_loss\":2.25,\"val_loss\":2.125,\"val_share\":1.0}\n";
  REQUIRE(read_bytes(folder / "metrics.jsonl") == first + second);
  REQUIRE(metrics.has_eval(10));
  REQUIRE_FALSE(metrics.has_eval(20));
  metrics.on_eval({.step = 20, .train_loss = 2, .val_loss = std::nullopt}, false);
  const std::string third = "{\"kind\":\"eval\",\"step\":20,\"train_loss\":2.0}\n";
  metrics.on_eval({.step = 30, .train_loss = 2, .val_loss = 3, .sampled_val_loss = 2.5, .sampled_val_share = 0.25},
                  false);
  REQUIRE(read_bytes(folder / "metrics.jsonl") ==
          first + second + third +
              "{\"kind\":\"eval\",\"step\":30,\"train_loss\":2.0,\"val_loss\":3.0,"
              "\"val_share\":1.0,\"sampled_val_loss\":2.5,\"sampled_val_share\":0.25}\n");
}

TEST_CASE("the line about counting is written once, and known when the file is opened again") {
  const TemporaryFolder folder;
  const CountingReport report{
      .step = 20, .order = 6, .val_loss = 1.5, .nats_per_character = 3.25, .train_share = 0.5, .val_share = 0.75};
  const std::string line =
      "{\"kind\":\"counting\",\"step\":20,\"order\":6,\"val_loss\":1.5,\"nats_per_character\":3.25,"
      "\"train_share\":0.5,\"val_share\":0.75}\n";
  {
    MetricsFile metrics(folder / "metrics.jsonl", 0);
    REQUIRE_FALSE(metrics.history().counting().has_value());
    metrics.on_counting(report);
    metrics.on_counting(report);
    REQUIRE(metrics.history().counting()->val_loss == 1.5);
    REQUIRE(read_bytes(folder / "metrics.jsonl") == line);
  }
  {
    const MetricsFile metrics(folder / "metrics.jsonl", 20);
    const CountingReport kept = metrics.history().counting().value();
    REQUIRE(kept.step == 20);
    REQUIRE(kept.order == 6);
    REQUIRE(kept.val_loss == 1.5);
    REQUIRE(kept.nats_per_character == 3.25);
    REQUIRE(kept.train_share == 0.5);
    REQUIRE(kept.val_share == 0.75);
    REQUIRE(metrics.history().validations().empty());
    REQUIRE_FALSE(metrics.has_eval(20));
  }
  MetricsFile earlier(folder / "metrics.jsonl", 19);
  REQUIRE_FALSE(earlier.history().counting().has_value());
  CountingReport bad = report;
  bad.val_loss = kNaN;
  REQUIRE_FALSE(error_message<Error>([&] { earlier.on_counting(bad); }).empty());
  REQUIRE(read_bytes(folder / "metrics.jsonl").empty());
}

TEST_CASE("a number that is not finite is never written") {
  const TemporaryFolder folder;
  MetricsFile metrics(folder / "metrics.jsonl", 0);
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    StepReport report = step(10);
    report.loss = bad;
    REQUIRE_FALSE(error_message<Error>([&] { metrics.on_log(report, 1, 1); }).empty());
    REQUIRE_FALSE(error_message<Error>([&] { metrics.on_eval(evaluation(10, bad), false); }).empty());
  }
  REQUIRE(read_bytes(folder / "metrics.jsonl").empty());
}

TEST_CASE("speeds and times that are not finite are written as 0") {
  const TemporaryFolder folder;
  MetricsFile metrics(folder / "metrics.jsonl", 0);
  REQUIRE(per_second(768, 0) == 0);
  REQUIRE(per_second(768, -1) == 0);
  REQUIRE(per_second(0, 0) == 0);
  REQUIRE(per_second(768, 1e-320) == 0);
  REQUIRE(per_second(768, 2) == 384);
  for (const double bad : {kNaN, kInfinity, -kInfinity}) metrics.on_log(step(10), bad, bad);
  const std::string lines = read_bytes(folder / "metrics.jsonl");
  REQUIRE(std::ranges::count(lines, '\n') == 3);
  REQUIRE(contains(lines, "\"tokens_per_second\":0.0,\"elapsed_seconds\":0.0}"));
}

TEST_CASE("lines after the step, torn lines and lines of another form are cut") {
  const TemporaryFolder folder;
  REQUIRE(cut(folder, "", 5).empty());
  REQUIRE(cut(folder, line(1) + line(5) + line(6), 5) == line(1) + line(5));
  REQUIRE(cut(folder, line(1) + line(5) + line(6), 9) == line(1) + line(5) + line(6));
  REQUIRE(cut(folder, line(1) + line(5), 0).empty());
  REQUIRE(cut(folder, line(0) + line(1), 0) == line(0));
  REQUIRE(cut(folder, line(0) + line(1), -1).empty());
  const std::string whole = line(1) + line(2);
  for (std::size_t size = line(1).size(); size < whole.size() - 1; ++size) {
    REQUIRE(cut(folder, whole.substr(0, size), 9) == line(1));
  }
  REQUIRE(cut(folder, whole.substr(0, whole.size() - 1), 9) == whole);
}

TEST_CASE("a file with lines that maki did not write does no harm") {
  const TemporaryFolder folder;
  for (const std::string& odd :
       {std::string("nonsense"), std::string("{}"), std::string("[1,2]"), std::string("{\"step\":\"3\"}"),
        std::string("{\"step\":18446744073709551615}"), std::string("\xff\xfe"), std::string("\0\0\0", 3),
        std::string(100000, '['), std::string("{\"kind\":7,\"step\":1e400}")}) {
    INFO(odd.substr(0, 60));
    REQUIRE(cut(folder, line(1) + odd + "\n" + line(2), 9) == line(1) + line(2));
  }
  for (const char* odd : {"{\"kind\":7,\"step\":1}", "{\"kind\":\"train\",\"step\":1,\"elapsed_seconds\":\"long\"}",
                          "{\"kind\":\"eval\",\"step\":1,\"val_loss\":null}"}) {
    INFO(odd);
    REQUIRE(contains(cut(folder, std::string(odd) + "\n" + line(2), 9), line(2)));
  }
}

TEST_CASE("what the kept lines record is known: evaluated, elapsed, validation losses") {
  const TemporaryFolder folder;
  {
    MetricsFile metrics(folder / "metrics.jsonl", 0);
    REQUIRE(metrics.history().validations().empty());
    REQUIRE(metrics.history().elapsed_seconds() == 0);
    metrics.on_eval(evaluation(0, 4), false);
    metrics.on_log(step(10), 1, 3.5);
    metrics.on_eval(evaluation(10, 2), false);
    metrics.on_log(step(20), 1, 7.5);
    metrics.on_eval(evaluation(20, 3), false);
    metrics.on_remark({Remark::Kind::session, 20, "a machine"});
    metrics.on_eval(evaluation(30, 1), false);
    metrics.on_remark({Remark::Kind::end, 30, "interrupted", 9.5});
  }
  REQUIRE(contains(read_bytes(folder / "metrics.jsonl"),
                   "{\"kind\":\"end\",\"step\":30,\"text\":\"interrupted\",\"elapsed_seconds\":9.5}\n"));
  REQUIRE(MetricsFile(folder / "metrics.jsonl", 30).history().elapsed_seconds() == 9.5);
  {
    const MetricsFile metrics(folder / "metrics.jsonl", 20);
    REQUIRE(metrics.history().validations().size() == 3);
    REQUIRE(metrics.history().validations()[1].step == 10);
    REQUIRE(metrics.history().validations()[1].loss == 2);
    REQUIRE(metrics.history().elapsed_seconds() == 7.5);
    REQUIRE(metrics.has_eval(20));
    REQUIRE_FALSE(metrics.has_eval(30));
  }
  const MetricsFile metrics(folder / "metrics.jsonl", 9);
  REQUIRE(metrics.history().validations().size() == 1);
  REQUIRE(metrics.history().validations()[0].loss == 4);
  REQUIRE_FALSE(metrics.has_eval(10));
}

TEST_CASE("a line for which there is no space is an error with the path, and its torn half is cut by a resume") {
  const TemporaryFolder folder;
  MetricsFile metrics(folder / "metrics.jsonl", 0);
  metrics.on_eval(evaluation(0, 4), false);
  const std::string before = read_bytes(folder / "metrics.jsonl");
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{before.size() + 20, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const std::string said = error_message<CheckpointError>([&] { metrics.on_eval(evaluation(10, 3), false); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  REQUIRE(contains(said, folder / "metrics.jsonl"));
  REQUIRE(read_bytes(folder / "metrics.jsonl").size() > before.size());
  const MetricsFile again(folder / "metrics.jsonl", 10);
  REQUIRE(read_bytes(folder / "metrics.jsonl") == before);
  REQUIRE(contains(error_message<CheckpointError>([&] { MetricsFile(folder / "none/metrics.jsonl", 0); }), "none"));
}

TEST_CASE("lines are made durable on request, the name of a new file at once, and a failure is an error") {
  struct Watched : FileSystem {
    int fsync(int descriptor) override {
      ++syncs;
      if (fails) errno = EIO;
      return fails ? -1 : FileSystem::fsync(descriptor);
    }
    int syncs = 0;
    bool fails = false;
  } fs;
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsFile metrics(path, 0, fs);
  REQUIRE(fs.syncs == 1);
  metrics.on_sync();
  REQUIRE(fs.syncs == 2);
  REQUIRE(MetricsFile(path, 0, fs).history().validations().empty());
  REQUIRE(fs.syncs == 2);
  fs.fails = true;
  REQUIRE(contains(error_message<CheckpointError>([&] { metrics.on_sync(); }), path));
  std::filesystem::remove(path);
  REQUIRE_FALSE(error_message<CheckpointError>([&] { MetricsFile(path, 0, fs); }).empty());
}

TEST_CASE("a line takes time and memory in proportion to its length, whatever it contains") {
  const TemporaryFolder folder;
  std::string keys = "{\"kind\":\"train\",\"step\":5";
  for (int i = 0; i < 1'000'000; ++i) keys += ",\"key " + std::to_string(i) + "\":1";
  keys += "}\n";
  const std::string deep = "{\"step\":5,\"deep\":" + std::string(5'000'000, '[') + std::string(5'000'000, ']') + "}\n";
  for (const std::string& text : {keys, deep, deep.substr(0, 4'000'000) + "\n"}) {
    write_bytes(folder / "metrics.jsonl", text);
    start_peak();
    { const MetricsFile metrics(folder / "metrics.jsonl", 5); }
    REQUIRE(peak_bytes() < 8 * static_cast<std::int64_t>(text.size()));
    REQUIRE(read_bytes(folder / "metrics.jsonl") == (text.ends_with("}\n") ? text : ""));
  }
}

TEST_CASE("a link, or a file with a second name, is replaced: what it stands for is not appended to") {
  const TemporaryFolder folder;
  for (const std::string& text : {std::string(), line(1)}) {
    const std::string precious = folder.write("precious", text), path = folder / "metrics.jsonl";
    for (const bool hard : {false, true}) {
      if (hard) std::filesystem::create_hard_link(precious, path);
      if (!hard) std::filesystem::create_symlink(precious, path);
      {
        MetricsFile metrics(path, 1);
        metrics.on_log(step(2), 1, 1);
      }
      REQUIRE(read_bytes(precious) == text);
      REQUIRE(read_bytes(path).starts_with(text + "{\"kind\""));
      std::filesystem::remove(path);
    }
  }
}

TEST_CASE("a metrics file that is too large is refused with what to do, before it is read") {
  const TemporaryFolder folder;
  const std::string path = folder.write("metrics.jsonl", line(1));
  std::filesystem::resize_file(path, kMaxMetricsBytes + 1);  // without blocks on the disk
  const auto advises =
      Catch::Matchers::EndsWith("only its lines of kind eval to go on: keep a copy, and remove others");
  REQUIRE_THROWS_WITH(read_history(path), advises);
  REQUIRE_THROWS_WITH(MetricsFile(path, 1), advises);
}
