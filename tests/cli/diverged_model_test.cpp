// Generation from a model whose weights are finite but whose logits are not.
#include <cmath>
#include <cstring>

#include "tests/catch.h"
#include "tests/cli/process.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("generate: a model whose logits contain NaN is a file that cannot be used, exit code 4") {
  const TemporaryFolder folder;
  Sections sections = sections_of(write_smallest(folder / "small.maki"));
  std::string& values = section(sections, "values");
  for (std::size_t at = 0; at + sizeof(float) <= values.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, values.data() + at, sizeof value);
    if (value != 0) value = std::copysign(3e38F, value);  // padding stays 0
    std::memcpy(values.data() + at, &value, sizeof value);
  }
  const std::string path = write_sections(folder / "diverged.maki", sections);
  const Finished finished = run_maki({"generate", path, "--prompt", "abc", "--max-tokens", "5"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 4);
  REQUIRE_THAT(finished.err, ContainsSubstring("the logits contain NaN; the model has diverged"));
  REQUIRE(run_maki({"generate", folder / "small.maki", "--prompt", "abc", "--max-tokens", "5"}).exit_code == 0);
}
