// A run resumes only from the file that was written and from no other, and everything about it is checked before memory
// for a model is allocated.
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "data/io/error.h"
#include "optim/adam.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/loaded_model.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The messages with which a resume, and a verb that reads only the weights, reject a file.
std::string resuming_says(const std::string& path) {
  return error_message<CheckpointError>([&] { VerifiedCheckpoint{path}; });
}
std::string reading_says(const std::string& path) {
  return error_message<CheckpointError>([&] { LoadedModel{path}; });
}

// A checkpoint with one section changed and all hashes valid.
std::string forged(const TemporaryFolder& folder, const std::string& name,
                   const std::function<void(std::string&)>& change) {
  Sections sections = sections_of(write_smallest(folder / "good.maki"));
  change(section(sections, name));
  return write_sections(folder / "forged.maki", sections);
}

// A record of the section "tensors": name, extents, offset, rank, group.
constexpr std::size_t kPreambleSize = 1, kRecordSize = 128 + 5 * 8 + 8 + 2, kExtentsAt = 128, kOffsetAt = 168,
                      kGroupAt = 177;
std::size_t record(std::size_t i) { return kPreambleSize + i * kRecordSize; }

template <class Number>
void store_number(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

}  // namespace

TEST_CASE("no run resumes from a checkpoint with any byte changed, or truncated anywhere") {
  const TemporaryFolder folder;
  const std::string path = write_smallest(folder / "a.maki"), good = read_bytes(path);
  REQUIRE(good.size() > 4000);
  REQUIRE(VerifiedCheckpoint(path).state().step == 2);
  const int file = open(path.c_str(), O_RDWR);
  REQUIRE(file >= 0);
  const auto set = [&](std::size_t at, char byte) { return pwrite(file, &byte, 1, static_cast<off_t>(at)) == 1; };
  std::size_t accepted = 0, nameless = 0, failed_writes = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    const int mask = 1 + static_cast<int>(at * 37 % 255);  // so that every bit is changed somewhere
    failed_writes += !set(at, static_cast<char>(good[at] ^ mask));
    const std::string said = resuming_says(path);
    accepted += said.empty();
    nameless += !said.starts_with(path);
    failed_writes += !set(at, good[at]);
  }
  REQUIRE(read_bytes(path) == good);
  for (std::size_t size = good.size(); size-- > 0;) {
    failed_writes += ftruncate(file, static_cast<off_t>(size)) != 0;
    const std::string said = resuming_says(path);
    accepted += said.empty();
    nameless += !said.starts_with(path);
  }
  close(file);
  REQUIRE(failed_writes == 0);
  REQUIRE(accepted == 0);
  REQUIRE(nameless == 0);
}

TEST_CASE("a damaged tokenizer is a damaged checkpoint, and so is a vocabulary of another size") {
  const TemporaryFolder folder;
  for (const char* other : {"", "maki char tokenizer 1\n", "maki char tokenizer 1\ncba",
                            "maki char tokenizer 1\nab\xff", "maki char tokenizer 9\nabc", "maki char tokenizer 1\nab",
                            "maki char tokenizer 1\nabcd", "maki byte tokenizer 1\n"}) {
    const std::string path = forged(folder, "tokenizer", [&](std::string& bytes) { bytes = other; });
    INFO(other);
    REQUIRE(contains(resuming_says(path), path));
    REQUIRE(contains(reading_says(path), path));
  }
  const std::string said = reading_says(forged(folder, "tokenizer", [](std::string& bytes) { bytes.pop_back(); }));
  REQUIRE(contains(said, "2 ids"));
  REQUIRE(contains(said, "3"));
}

TEST_CASE("a configuration in any form other than the canonical one is rejected") {
  const TemporaryFolder folder;
  const std::string canonical = training_toml(smallest_config());
  const std::string last = canonical.substr(canonical.rfind('\n', canonical.size() - 2) + 1);
  for (const std::string& other :
       {canonical + "\n", "# a comment\n" + canonical, canonical + "out = \"elsewhere\"\n",
        canonical.substr(0, canonical.size() - last.size()), last + canonical.substr(0, canonical.size() - last.size()),
        canonical.substr(0, canonical.size() - 1), std::string()}) {
    const std::string path = forged(folder, "config", [&](std::string& bytes) { bytes = other; });
    INFO(other);
    REQUIRE(contains(resuming_says(path), path));
    REQUIRE(contains(reading_says(path), "configuration"));
  }
}

TEST_CASE("a configuration that would overflow the parser's stack is rejected because of its size") {
  const TemporaryFolder folder;
  std::string deep = "a";
  while (deep.size() < 200'000) deep += ".\".\".\"=\"";
  const std::string path = forged(folder, "config", [&](std::string& bytes) { bytes = deep + " = 1\n"; });
  REQUIRE(contains(resuming_says(path), "at most 65536"));
  REQUIRE(contains(reading_says(path), path));
}

TEST_CASE("a configuration of another model is rejected because of its tensors, before memory is allocated") {
  const TemporaryFolder folder;
  const auto said = [&](auto change) {
    const std::string path = write_smallest(folder / "other.maki", [&](CheckpointState& s) { change(s.config); });
    const std::string resumed = resuming_says(path);
    REQUIRE(reading_says(path) == resumed);
    return resumed;
  };
  REQUIRE(said([](Config&) {}).empty());
  REQUIRE(contains(said([](Config& c) { c.n_embd = 4; }), "wte.weight [3, 4]"));
  REQUIRE(contains(said([](Config& c) { c.n_embd = 1'000'000; }), "[3, 1000000]"));  // 48 TB of weights
  REQUIRE(contains(said([](Config& c) { c.block_size = 1'000'000; }), "wpe.weight"));
  REQUIRE(contains(said([](Config& c) { c.n_layer = 1000; }), "tensors where the model has"));
  REQUIRE(contains(said([](Config& c) { c.bias = false; }), "tensors where the model has"));
  REQUIRE(contains(said([](Config& c) { c.tie_weights = false; }), "tensors where the model has"));
  REQUIRE_FALSE(said([](Config& c) { c.dtype = DType::float64; }).empty());
}

TEST_CASE("the moments must be those of the configured optimizer") {
  const TemporaryFolder folder;
  const auto said = [&](auto change) {
    return resuming_says(write_smallest(folder / "other.maki", [&](CheckpointState& s) { change(s.config); }));
  };
  REQUIRE(said([](Config& c) { c.optimizer = "adam"; }).empty());  // the same two
  REQUIRE(contains(said([](Config& c) { c.optimizer = "sgd", c.momentum = 0.5; }), "momentum"));
  for (const char* moment : {"exp_avg", "exp_avg_sq", "values"}) {
    INFO(moment);
    const std::string less = forged(folder, moment, [](std::string& bytes) { bytes.resize(bytes.size() - 64); });
    REQUIRE(contains(resuming_says(less), moment));
    const std::string more = forged(folder, moment, [](std::string& bytes) { bytes.resize(bytes.size() + 64); });
    REQUIRE(contains(resuming_says(more), moment));
  }
}

TEST_CASE("forged lists of tensors are rejected: offsets, names, groups, sizes, counts") {
  const TemporaryFolder folder;
  const auto said = [&](const std::function<void(std::string&)>& change) {
    const std::string path = forged(folder, "tensors", change);
    const std::string resumed = resuming_says(path);
    REQUIRE(contains(resumed, path));
    REQUIRE(reading_says(path) == resumed);
    return resumed;
  };
  // Two tensors of the same shape change places: only the offsets differ, and the message says so.
  const std::string places = said([](std::string& bytes) {
    // h.0.ln_1.weight and h.0.ln_1.bias, the third and the fourth.
    REQUIRE(bytes.substr(record(2), 15) == "h.0.ln_1.weight");
    REQUIRE(bytes.substr(record(3), 13) == "h.0.ln_1.bias");
    std::swap_ranges(&bytes[record(2) + kOffsetAt], &bytes[record(2) + kOffsetAt + 8], &bytes[record(3) + kOffsetAt]);
  });
  REQUIRE(contains(places, "h.0.ln_1.weight"));
  REQUIRE(places.find("offset") != places.rfind("offset"));
  const std::string group = said([](std::string& bytes) { bytes[record(0) + kGroupAt] = 1; });
  REQUIRE(contains(group, "no_decay"));
  REQUIRE(contains(said([](std::string& bytes) { bytes[record(0)] = 'v'; }), "vte.weight"));
  REQUIRE(contains(said([](std::string& bytes) { bytes.resize(record(3)); }), "3 tensors"));
  for (const std::int64_t extent :
       {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 40, std::int64_t{1} << 62,
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    INFO(extent);
    said([&](std::string& bytes) { store_number(bytes, record(0) + kExtentsAt, extent); });
    said([&](std::string& bytes) { store_number(bytes, record(0) + kOffsetAt, extent == 0 ? 16 : extent); });
  }
  // Unused bytes are zero: after a name, after the last extent.
  said([](std::string& bytes) { bytes[record(0) + 127] = 'x'; });
  said([](std::string& bytes) { bytes[record(0) + 11] = 'x'; });
  said([](std::string& bytes) { bytes[record(0) + kExtentsAt + 39] = 1; });
  // Names that would be printed are printable.
  for (const char byte : {'\n', ' ', '\x1b', '\x7f', '\xe5', '\0'}) {
    REQUIRE(contains(said([&](std::string& bytes) { bytes[record(0)] = byte; }), "list of tensors is damaged"));
  }
}

TEST_CASE("the same facts in another encoding are rejected: there is one canonical form") {
  const TemporaryFolder folder;
  // cereal's mark of big-endian numbers, and every number byte-swapped: cereal reads the same state from it.
  const std::string path = forged(folder, "state", [](std::string& bytes) {
    bytes[0] = 0;
    for (std::size_t at = kPreambleSize; at + 8 <= kPreambleSize + 48; at += 8)
      std::reverse(&bytes[at], &bytes[at + 8]);
  });
  REQUIRE(contains(resuming_says(path), "state is not in canonical form"));
}

TEST_CASE("the hash of a corpus is 32 hexadecimal digits, lower case") {
  const TemporaryFolder folder;
  const std::string hash = "0123456789abcdef0123456789abcdef";
  for (const std::string& other : {std::string("0123456789ABCDEF0123456789abcdef"), std::string(32, 'g'),
                                   std::string(32, '\0'), std::string(32, ' '), hash.substr(1) + "\n"}) {
    const std::string path = forged(folder, "state", [&](std::string& bytes) {
      const std::size_t at = bytes.find(hash);
      REQUIRE(at != std::string::npos);
      bytes.replace(at, 32, other);
    });
    REQUIRE(contains(resuming_says(path), "hash"));
    REQUIRE_FALSE(error_message<CheckpointError>([&] {
                    write_smallest(folder / "b.maki", [&](auto& s) { s.corpus_hash = other; });
                  }).empty());
  }
  REQUIRE_FALSE(error_message<CheckpointError>([&] {
                  write_smallest(folder / "b.maki", [&](auto& s) { s.corpus_hash += "0"; });
                }).empty());
}

TEST_CASE("the padding between tensors is zero, in values and in moments") {
  const TemporaryFolder folder;
  // wte.weight has 3 · 2 elements; 16 fill 64 bytes.
  for (const char* name : {"values", "exp_avg", "exp_avg_sq"}) {
    for (const std::size_t at : {std::size_t{24}, std::size_t{63}}) {
      const std::string path = forged(folder, name, [&](std::string& bytes) { bytes[at] = '\x01'; });
      INFO(name << " byte " << at);
      const std::string said = error_message<CheckpointError>([&] {
        LoadedModel model(path);
        AdamW optimizer(model.store);
        load_optimizer(ContainerReader(path), 2, optimizer);
      });
      REQUIRE(contains(said, std::string(name) + ": the padding after wte.weight"));
    }
  }
}
