// Checkpoints with valid hashes and invalid contents: sections, counts and numbers that no run writes.
#include <cmath>
#include <cstring>
#include <limits>

#include "data/io/error.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/loaded_model.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::string resume_says(const std::string& path) {
  return error_message<CorruptFile>([&] { VerifiedCheckpoint{path}; });
}
std::string reader_says(const std::string& path) {
  return error_message<CorruptFile>([&] { LoadedModel{path}; });
}

void put_float(std::string& bytes, std::size_t element, float value) {
  std::memcpy(bytes.data() + element * sizeof value, &value, sizeof value);
}

}  // namespace

TEST_CASE("sections out of order and unknown sections are rejected although every hash is valid") {
  const TemporaryFolder folder;
  const Sections good = sections_of(write_smallest(folder / "good.maki"));
  REQUIRE(good.size() == 7);
  REQUIRE(resume_says(write_sections(folder / "same.maki", good)).empty());
  for (std::size_t i = 0; i + 1 < good.size(); ++i) {
    Sections swapped = good;
    std::swap(swapped[i], swapped[i + 1]);
    const std::string path = write_sections(folder / "swapped.maki", swapped);
    INFO(good[i].first);
    REQUIRE(contains(resume_says(path),
                     "section " + good[i + 1].first + " where section " + good[i].first + " is expected"));
    REQUIRE(contains(reader_says(path), path));
  }
  for (std::size_t at = 0; at <= good.size(); ++at) {
    Sections more = good;
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(at), {"extra", "what nobody asked for"});
    const std::string path = write_sections(folder / "more.maki", more);
    INFO("at " << at);
    REQUIRE(contains(resume_says(path), "section extra"));
    REQUIRE(contains(reader_says(path), "section extra"));
  }
}

TEST_CASE("values and moments that no run has are rejected: those that are not finite, and negative second moments") {
  const TemporaryFolder folder;
  const Sections good = sections_of(write_smallest(folder / "good.maki"));
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"values", "exp_avg", "exp_avg_sq"}) {
    Sections forged = good;
    const std::string before = section(forged, name);
    for (const float value : {nan, -nan, infinity, -infinity, -1e-30f, -0.0f, 1e38f}) {
      // The first element and the last of the first tensor. Neither is padding, which is rejected for other reasons.
      for (const std::size_t element : {std::size_t{0}, std::size_t{5}}) {
        put_float(section(forged, name), element, value);
        const std::string path = write_sections(folder / "forged.maki", forged), said = resume_says(path);
        section(forged, name) = before;
        INFO(name << " with " << value << " at " << element << ": " << said);
        const bool second = std::string(name) == "exp_avg_sq";
        const bool good_number = std::isfinite(value) && (!second || value >= 0);
        REQUIRE(said.empty() == good_number);
        if (!good_number) REQUIRE(contains(said, std::string("section ") + name));
        // A reader of the weights alone rejects only invalid values.
        REQUIRE(reader_says(path).empty() == (std::isfinite(value) || std::string(name) != "values"));
      }
    }
  }
}

TEST_CASE("numbers are checked in every piece in which a section is read") {
  const TemporaryFolder folder;
  Config config = smallest_config();
  config.dtype = DType::float64;
  config.block_size = 20;
  config.n_embd = 256;
  const Sections good = sections_of(write_smallest(folder / "good.maki", {}, config));
  Sections forged = good;
  const std::size_t size = section(forged, "values").size();
  REQUIRE(size > (std::size_t{3} << 20));
  for (const std::size_t at : {std::size_t{0}, (std::size_t{1} << 20) - 8, std::size_t{1} << 20, size - 8}) {
    forged = good;
    const double nan = std::nan("");
    std::memcpy(section(forged, "values").data() + at, &nan, sizeof nan);
    INFO("byte " << at << " of " << size);
    REQUIRE(contains(resume_says(write_sections(folder / "forged.maki", forged)), "section values"));
  }
}

TEST_CASE("counts that are impossible for one text are rejected") {
  const TemporaryFolder folder;
  const auto said = [&](auto change) { return resume_says(write_smallest(folder / "forged.maki", change)); };
  REQUIRE(said([](CheckpointState&) {}).empty());
  REQUIRE(contains(said([](CheckpointState& s) { s.train_tokens += 1; }), "61 tokens"));
  REQUIRE(contains(said([](CheckpointState& s) { s.val_tokens = 1000; }), "60 characters"));
  REQUIRE(contains(said([](CheckpointState& s) { s.characters = 0; }), "0 characters"));
  for (const std::int64_t many : {std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
    REQUIRE_FALSE(said([&](CheckpointState& s) { s.characters = s.train_tokens = many; }).empty());
    REQUIRE_FALSE(said([&](CheckpointState& s) { s.train_tokens = s.val_tokens = many; }).empty());
  }
  REQUIRE_FALSE(said([](CheckpointState& s) { s.best_possible_loss = -1; }).empty());
  REQUIRE_FALSE(said([](CheckpointState& s) { s.step = -1; }).empty());
}

TEST_CASE("a section whose own hash is wrong is detected although that of the file is valid") {
  const TemporaryFolder folder;
  const std::string path = write_smallest(folder / "a.maki");
  std::uint64_t at = 0;
  {
    const ContainerReader file(path);
    for (const auto& entry : file.entries()) {
      if (entry.name == "exp_avg") at = entry.offset;
    }
    file.scan("exp_avg", [](Bytes) {});
  }
  std::string bytes = read_bytes(path);
  bytes[at] ^= 1;
  write_bytes(path, bytes);
  REQUIRE(contains(error_message<CorruptFile>([&] { ContainerReader(path).scan("exp_avg", [](Bytes) {}); }),
                   "exp_avg is damaged"));
}
