// The schema of the configuration in a checkpoint: a file of another schema is refused, but not as a damaged one.
#include "data/io/error.h"
#include "tests/train/config_messages.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/loaded_model.h"
#include "train/run/run_directory.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kThis = "schema = " + std::to_string(kConfigSchema) + "\n",
                  kOther = "schema = " + std::to_string(kConfigSchema + 1) + "\n";

std::string without_schema(const Config& config) { return training_toml(config).substr(kThis.size()); }

// Writes a checkpoint of another schema with valid checksums.
std::string of_other_schema(const TemporaryFolder& folder) {
  Sections sections = sections_of(write_smallest(folder / "good.maki"));
  section(sections, "config") = kOther + without_schema(smallest_config()) + "field_of_tomorrow = 3\n";
  return write_sections(folder / "other.maki", sections);
}

}  // namespace

TEST_CASE("the canonical form of a configuration has the schema and every training field") {
  const std::string text = training_toml(smallest_config());
  REQUIRE(text.starts_with(kThis));
  for (const Field& field : fields()) {
    INFO(field.name);
    REQUIRE(contains(text, "\n" + field.name + " = ") == field.is_training());
  }
  REQUIRE(training_toml(read_training_toml(text)) == text);
  const std::string rest = without_schema(smallest_config());
  for (const std::string& bad : {rest, "schema = '1'\n" + rest, "schema = 1.0\n" + rest, "schema = +1\n" + rest,
                                 rest + kThis, kThis + text, text.substr(0, text.rfind('\n', text.size() - 2) + 1)}) {
    INFO(bad);
    REQUIRE_FALSE(error_message<Error>([&] { read_training_toml(bad); }).empty());
  }
}

TEST_CASE("a checkpoint of another schema is refused, naming both schemas, and is not reported as damaged") {
  const TemporaryFolder folder;
  const std::string path = of_other_schema(folder);
  for (const auto& read :
       {std::function<void()>([&] { VerifiedCheckpoint{path}; }), std::function<void()>([&] { LoadedModel{path}; })}) {
    REQUIRE(error_message<CheckpointError>(read) ==
            path +
                ": its configuration has schema 2, but this version of maki reads schema 1; use the version that "
                "wrote it");
    bool lost = false;
    try {
      read();
    } catch (const CorruptFile&) {
      lost = true;
    } catch (const CheckpointError&) {
    }
    REQUIRE_FALSE(lost);
  }
}

TEST_CASE("a run whose newest checkpoint has another schema does not fall back to an older checkpoint") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  write_smallest(run.checkpoint_file(1), [](CheckpointState& state) { state.step = 1; });
  std::filesystem::copy(of_other_schema(folder), run.checkpoint_file(2));
  std::vector<std::string> notes;
  const auto newest = [&] { return newest_intact(run, notes).state().step; };
  REQUIRE(contains(error_message<CheckpointError>(newest), "has schema 2"));
  std::filesystem::remove(run.checkpoint_file(2));
  REQUIRE(newest() == 1);
}
