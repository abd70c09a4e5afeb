// Each part of a checkpoint that training continues from: a run that is resumed without one ends with other bytes, so
// the tests that compare the ends of runs notice whichever part is not restored.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "tests/files.h"
#include "tests/train/resumable_run.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr int kCutAt = 7, kEndAt = 20;

// A run of seven steps, which is resumed from what a test makes of its checkpoint.
struct CutRun {
  CutRun(const TemporaryFolder& folder, const Arguments& optimizer)
      : path(folder / optimizer[1]), copy(path + "-resumed"), corpus(folder.write("corpus.txt", small_text())) {
    const auto train = [&](const std::string& run, int steps) {
      require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", std::to_string(steps)} + kSmall +
                          optimizer));
    };
    train(path, kCutAt);
    train(path + "-straight", kEndAt);
    sections = sections_of(checkpoint(path, kCutAt));
    expected = read_text(checkpoint(path + "-straight", kEndAt));
  }

  // The end of the run if these sections are its checkpoint of this step.
  std::string end_from(const Sections& changed, int step = kCutAt) const {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(path, copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove(checkpoint(copy, kCutAt));
    write_sections(checkpoint(copy, step), changed);
    const Finished resumed = require_ok(run_maki({"train", "--resume", copy, "--max-steps", std::to_string(kEndAt)}));
    REQUIRE(contains(resumed.err, fmt::format("resuming after step {}", step)));
    return read_text(checkpoint(copy, kEndAt));
  }

  std::string path, copy, corpus, expected;
  Sections sections;
};

}  // namespace

TEST_CASE("a run that is resumed without its weights, or without a moment of its optimizer, ends with other bytes") {
  const TemporaryFolder folder;
  const std::vector<std::pair<Arguments, std::vector<std::string>>> kinds = {
      {{"--optimizer", "adamw"}, {"exp_avg", "exp_avg_sq"}},
      {{"--optimizer", "sgd", "--momentum", "0.9"}, {"momentum"}},
      {{"--optimizer", "muon"}, {"exp_avg", "exp_avg_sq", "momentum"}},
  };
  for (const auto& [optimizer, moments] : kinds) {
    const CutRun run(folder, optimizer);
    REQUIRE(run.end_from(run.sections) == run.expected);
    std::vector<std::string> lost;
    const auto values = std::ranges::find(run.sections, "values", &Sections::value_type::first);
    for (auto part = values; part != run.sections.end(); ++part) {
      INFO(optimizer[1] << " without " << part->first);
      Sections sections = run.sections;
      std::string& bytes = section(sections, part->first);
      std::ranges::fill(bytes, '\0');
      REQUIRE(bytes != part->second);
      REQUIRE(run.end_from(sections) != run.expected);
      if (part != values) lost.push_back(part->first);
    }
    std::ranges::sort(lost);
    REQUIRE(lost == moments);
  }
}

TEST_CASE("a run that is resumed with another number of steps ends with other bytes") {
  const TemporaryFolder folder;
  const CutRun run(folder, {"--optimizer", "adamw"});
  Sections sections = run.sections;
  char& step = section(sections, "state")[1];  // behind the order of bytes, which comes first
  REQUIRE(step == kCutAt);
  step = kCutAt - 1;
  REQUIRE(run.end_from(sections, kCutAt - 1) != run.expected);
}
