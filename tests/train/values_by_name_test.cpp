// Values of a file for a store with another layout, for example with other frozen parameters.
#include "train/run/values_by_name.h"

#include <algorithm>
#include <utility>

#include "data/io/error.h"
#include "data/io/file.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/tensors.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/parameters_file.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kLong = 150'001;  // the file is read in pieces of 1 MiB

struct Values {
  explicit Values(std::uint64_t seed, const std::string& frozen = "", DType dtype = DType::float64,
                  std::int64_t length = kLong, bool more = false)
      : store(dtype) {
    if (more) store.add("more", {3}, init::constant(7));
    store.add("vector", {length}, init::normal(1));
    store.add("matrix", {700, 300}, init::normal(1));
    store.add("tiny", {1}, init::normal(1));
    if (!frozen.empty()) store.freeze(store.find(frozen));
    store.seal(seed);
  }
  ParameterStore store;
};

}  // namespace

TEST_CASE("values are found by name, wherever the store keeps them, and others keep theirs") {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Values written(1, "", dtype);
    Unsynced fs;
    save_parameters(folder / "file.maki", written.store, fs);
    const ContainerReader file(folder / "file.maki");
    for (const char* const frozen : {"", "matrix", "vector", "tiny"}) {
      Values read(2, frozen, dtype, kLong, /*more=*/true);
      const std::uint64_t version = read.store.version();
      load_values_by_name(file, read.store);
      REQUIRE(read.store.version() > version);
      for (const auto& parameter : written.store.parameters()) {
        INFO(frozen << " " << parameter->name());
        REQUIRE(same_bits(read.store.find(parameter->name()).value(), parameter->value()));
      }
      for (std::int64_t i = 0; i < 3; ++i) REQUIRE(read.store.find("more").value().at(i) == 7);
    }
  }
}

TEST_CASE("values that are not wanted stay, whatever the file has under their names") {
  const TemporaryFolder folder;
  Unsynced fs;
  const Values written(1, "", DType::float64, kLong, /*more=*/true);
  save_parameters(folder / "file.maki", written.store, fs);
  const Values before(2, "", DType::float64, kLong + 1);
  Values read(2, "", DType::float64, kLong + 1);
  load_values_by_name(ContainerReader(folder / "file.maki"), read.store,
                      [](const std::string& name) { return name == "tiny" || name == "matrix"; });
  REQUIRE(same_bits(read.store.find("vector").value(), before.store.find("vector").value()));
  for (const char* const name : {"tiny", "matrix"})
    REQUIRE(same_bits(read.store.find(name).value(), written.store.find(name).value()));
}

TEST_CASE("a file with another tensor, another shape or other bytes is refused") {
  const TemporaryFolder folder;
  Unsynced fs;
  save_parameters(folder / "more.maki", Values(1, "", DType::float64, kLong, true).store, fs);
  save_parameters(folder / "longer.maki", Values(1, "", DType::float64, kLong + 1).store, fs);
  save_parameters(folder / "good.maki", Values(1).store, fs);
  Sections sections = sections_of(folder / "good.maki");
  const std::string section_of_good = section(sections, "values");
  section(sections, "values").resize(8000);
  write_sections(folder / "short.maki", sections);
  section(sections, "values") = section_of_good + std::string(64, '\0');
  write_sections(folder / "long.maki", sections);
  Sections infinite = sections_of(folder / "good.maki");
  section(infinite, "values").replace(6, 2, "\xf0\x7f");
  write_sections(folder / "infinite.maki", infinite);
  std::string bytes = read_file(folder / "good.maki");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder.write("damaged.maki", bytes);
  const auto said = [&](const char* name) {
    return error_message<CorruptFile>([&] {
      Values read(2);
      load_values_by_name(ContainerReader(folder / name), read.store);
    });
  };
  REQUIRE(contains(said("more.maki"), "has a tensor more of shape [3], but the model has none"));
  REQUIRE(contains(said("longer.maki"), "has a tensor vector of shape [150002], but the model has none"));
  REQUIRE(contains(said("short.maki"), "section values must have 2880128 bytes for float64 numbers; got"));
  REQUIRE(contains(said("long.maki"), "section values must have 2880128 bytes for float64 numbers; got"));
  REQUIRE(contains(said("infinite.maki"), "values"));
  REQUIRE(contains(said("damaged.maki"), "checksum mismatch"));
}

TEST_CASE("a file with numbers of another type is refused, whatever its values would be in that of the store") {
  const TemporaryFolder folder;
  Unsynced fs;
  for (const auto& [written, read] : {std::pair{DType::float64, DType::float32}, {DType::float32, DType::float64}}) {
    save_parameters(folder / "file.maki", Values(1, "", written).store, fs);
    // All zero: finite and zero between the tensors, in either type.
    Sections sections = sections_of(folder / "file.maki");
    std::ranges::fill(section(sections, "values"), '\0');
    write_sections(folder / "file.maki", sections);
    Values store(2, "", read);
    const std::string said =
        error_message<CorruptFile>([&] { load_values_by_name(ContainerReader(folder / "file.maki"), store.store); });
    INFO(said);
    REQUIRE(contains(said, "section values must have"));
  }
}
