// Schemas of the configuration: a configuration of an older schema is read and keeps its canonical form and its
// meaning; one of a newer schema is rejected, but not as a damaged file.
#include "data/io/error.h"
#include "tests/train/config_messages.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/loaded_model.h"
#include "train/run/run_directory.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

Config of_schema(std::int64_t schema) {
  Config config = smallest_config();
  config.schema = schema;
  return config;
}

// Writes a checkpoint with this text as its configuration and valid checksums.
std::string with_config(const TemporaryFolder& folder, const std::string& text) {
  Sections sections = sections_of(write_smallest(folder / "good.maki"));
  section(sections, "config") = text;
  return write_sections(folder / "other.maki", sections);
}

std::string newer(const std::string& text) {
  const std::string line = "schema = " + std::to_string(kConfigSchema);
  return "schema = " + std::to_string(kConfigSchema + 1) + text.substr(line.size()) + "field_of_tomorrow = 3\n";
}

}  // namespace

TEST_CASE("every field of a later schema has a value for older ones, and none is newer than kConfigSchema") {
  for (const Field& field : fields()) {
    INFO(field.name);
    REQUIRE(field.since >= 1);
    REQUIRE(field.since <= kConfigSchema);  // it may be older: a new choice of a field raises the schema as well
    if (field.since == 1) continue;
    REQUIRE(field.is_training());
    Config config;
    set_field(config, field, field.absent);
  }
}

TEST_CASE("each schema has its own canonical form, with the fields that it contains") {
  for (std::int64_t schema = 1; schema <= kConfigSchema; ++schema) {
    const std::string text = training_toml(of_schema(schema));
    REQUIRE(text.starts_with("schema = ") == (schema > 1));
    for (const Field& field : fields()) {
      INFO(schema << " " << field.name);
      const bool has = field.is_training() && field.since <= schema;
      REQUIRE(contains("\n" + text, "\n" + field.name + " = ") == has);
    }
    const Config again = read_training_toml(text);
    REQUIRE(again.schema == schema);
    REQUIRE(training_toml(again) == text);
    for (const Field& field : fields()) {
      if (field.since <= schema) continue;
      Config absent;
      set_field(absent, field, field.absent);
      REQUIRE(field_text(again, field) == field_text(absent, field));
    }
  }
}

TEST_CASE("a schema number in any other form is rejected, and so is a field that the schema does not contain") {
  const std::string first = training_toml(of_schema(1)), current = training_toml(of_schema(kConfigSchema));
  for (const std::string& text : {"schema = 1\n" + first, "schema = 2\n" + first, "schema = 0\n" + first,
                                  "schema = -1\n" + first, "schema = '2'\n" + first, "schema = 2.0\n" + first,
                                  "model = 'gpt'\n" + first, current.substr(current.find('\n') + 1),
                                  current + "schema = 2\n", current.substr(current.find('\n') + 1) + "schema = 2\n"}) {
    INFO(text);
    REQUIRE_FALSE(error_message<Error>([&] { read_training_toml(text); }).empty());
  }
  REQUIRE(contains(error_message<Error>([&] { read_training_toml("schema = 0\n" + first); }), "at least 1; got 0"));
}

TEST_CASE("a checkpoint of a newer schema is rejected, naming both schemas, and is not reported as damaged") {
  const TemporaryFolder folder;
  const std::string path = with_config(folder, newer(training_toml(smallest_config())));
  for (const auto& read :
       {std::function<void()>([&] { VerifiedCheckpoint{path}; }), std::function<void()>([&] { LoadedModel{path}; })}) {
    const std::string said = error_message<CheckpointError>(read);
    REQUIRE(said.starts_with(path));
    REQUIRE(contains(said, "schema " + std::to_string(kConfigSchema + 1)));
    REQUIRE(contains(said, "up to " + std::to_string(kConfigSchema)));
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

TEST_CASE("a run whose newest checkpoint has a newer schema does not fall back to an older checkpoint") {
  const TemporaryFolder folder;
  const RunDirectory run(folder / "run");
  run.create();
  write_smallest(run.checkpoint_file(1), [](CheckpointState& state) { state.step = 1; });
  std::filesystem::copy(with_config(folder, newer(training_toml(smallest_config()))), run.checkpoint_file(2));
  std::vector<std::string> notes;
  const auto newest = [&] { return newest_intact(run, notes).state().step; };
  REQUIRE(contains(error_message<CheckpointError>(newest), "schema " + std::to_string(kConfigSchema + 1)));
  std::filesystem::remove(run.checkpoint_file(2));
  REQUIRE(newest() == 1);
}
