// Event files, read as the format says: https://www.tensorflow.org/tutorials/load_data/tfrecord and event.proto.
#include "train/app/event_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>

#include "tests/catch.h"
#include "tests/files.h"
#include "train/run/history.h"

using namespace maki;
using namespace maki::tests;

namespace {

// CRC-32C bit by bit, masked.
std::uint32_t masked_crc(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <class T>
T take(std::string& bytes) {
  T value;
  REQUIRE(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.erase(0, sizeof value);
  return value;
}

// The fields of a message in their order: number, and the content of text, or the number as text of its bytes.
std::multimap<int, std::string> fields_of(std::string bytes) {
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = take<unsigned char>(bytes);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  std::multimap<int, std::string> fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = varint();
    std::uint64_t size = 0;
    std::string content;
    switch (tag & 7) {
      case 0:
        content = std::to_string(varint());
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = varint();
        break;
      default:
        size = 4;
    }
    REQUIRE(size <= bytes.size());
    if ((tag & 7) != 0) content = bytes.substr(0, size);
    bytes.erase(0, size);
    fields.emplace(static_cast<int>(tag >> 3), content);
  }
  return fields;
}

std::string field(const std::string& message, int number) {
  const auto fields = fields_of(message);
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

template <class T>
T number(std::string bytes) {
  return take<T>(bytes);
}

std::vector<std::string> events_of(const std::string& path) {
  std::vector<std::string> events;
  for (std::string rest = read_bytes(path); !rest.empty();) {
    const std::string length = rest.substr(0, 8);
    const auto size = take<std::uint64_t>(rest);
    REQUIRE(take<std::uint32_t>(rest) == masked_crc(length));
    events.push_back(rest.substr(0, size));
    rest.erase(0, size);
    REQUIRE(take<std::uint32_t>(rest) == masked_crc(events.back()));
  }
  return events;
}

std::string only_file(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  REQUIRE(std::filesystem::path(files[0]).filename().string().starts_with("events.out.tfevents."));
  return files[0];
}

// The fields of each value of an event's summary.
std::vector<std::multimap<int, std::string>> values_of(const std::string& event) {
  std::vector<std::multimap<int, std::string>> values;
  const auto summary = fields_of(field(event, 5));
  for (auto [value, last] = summary.equal_range(1); value != last; ++value) values.push_back(fields_of(value->second));
  return values;
}

// The scalars of an event by their tags.
std::map<std::string, float> scalars(const std::string& event) {
  std::map<std::string, float> found;
  for (const auto& parts : values_of(event)) {
    if (parts.contains(2)) found[parts.find(1)->second] = number<float>(parts.find(2)->second);
  }
  return found;
}

}  // namespace

TEST_CASE("an event file begins with its version and the step of its session, and has every report as it was") {
  const TemporaryFolder folder;
  ParameterStore store;
  store.add("w", Shape{4}, init::constant(1));
  store.seal(1);
  EventFile file(folder.path(), store);
  const RunHistory none;
  file.on_start(100, none);
  REQUIRE(std::filesystem::is_empty(folder.path()));
  file.on_counting({.step = 0, .order = 6, .val_loss = 1.5, .nats_per_character = 1.5});  // of an earlier session
  file.on_log({.step = 110, .loss = 2.5, .learning_rate = 1e-3, .grad_norm = 0.75, .tokens = 9}, 1234.5, 1);
  file.on_eval({.step = 110, .train_loss = 2.25, .val_loss = 3, .val_accuracy = 0.5, .sampled_val_loss = 2.375}, true);
  file.on_sample(110, "naïve\ntext");
  file.on_sync();
  const std::vector<std::string> events = events_of(only_file(folder.path()));
  REQUIRE(events.size() == 5);
  REQUIRE(field(events[0], 3) == "brain.Event:2");
  REQUIRE(field(events[1], 2) == "101");
  REQUIRE(field(field(events[1], 7), 1) == "1");  // SessionLog.START
  for (const std::string& event : events) REQUIRE(number<double>(field(event, 1)) > 1.7e9);
  for (std::size_t i = 2; i < events.size(); ++i) REQUIRE(field(events[i], 2) == "110");
  REQUIRE(scalars(events[2]) == std::map<std::string, float>{{"loss/training, step by step", 2.5F},
                                                             {"learning_rate", 1e-3F},
                                                             {"grad_norm", 0.75F},
                                                             {"tokens_per_second", 1234.5F}});
  REQUIRE(scalars(events[3]) == std::map<std::string, float>{{"loss/training", 2.25F},
                                                             {"loss/validation", 2.375F},
                                                             {"accuracy/validation", 0.5F}});
  const std::string sample = field(field(events[4], 5), 1);
  REQUIRE(field(sample, 1) == "sample");
  REQUIRE(field(field(sample, 8), 8) == "naïve\ntext");
  REQUIRE(field(field(sample, 8), 1) == "7");                      // DT_STRING
  REQUIRE(field(field(field(field(sample, 8), 2), 2), 1) == "1");  // one of them
  // Which of TensorBoard's pages shows it.
  const auto plugin = [](const std::multimap<int, std::string>& value) {
    return field(field(value.find(9)->second, 1), 1);
  };
  REQUIRE(plugin(fields_of(sample)) == "text");
  for (const auto& value : values_of(events[2])) REQUIRE(plugin(value) == "scalars");
}

TEST_CASE("an event file has the loss of counting alone from the session that counted") {
  const TemporaryFolder folder;
  ParameterStore store;
  store.add("w", Shape{4}, init::constant(1));
  store.seal(1);
  EventFile file(folder.path(), store);
  file.on_start(0, RunHistory());
  file.on_counting({.step = 0, .order = 6, .val_loss = 1.5, .nats_per_character = 1.25});
  file.on_sync();
  const std::string event = events_of(only_file(folder.path())).back();
  REQUIRE(scalars(event) == std::map<std::string, float>{{"loss/counting alone", 1.5F}});
}

TEST_CASE("a histogram of equal values has all of them in its first bucket, and there is none of what is not finite") {
  const TemporaryFolder folder;
  ParameterStore store;
  store.add("equal", Shape{4}, init::constant(1.5));
  store.add("infinite", Shape{2}, init::constant(std::numeric_limits<double>::infinity()));
  store.seal(1);
  EventFile file(folder.path(), store);
  file.on_eval({.step = 0, .train_loss = 1}, false);
  const auto values = values_of(events_of(only_file(folder.path())).back());
  REQUIRE(values.size() == 2);
  REQUIRE(values[1].find(1)->second == "equal");
  const std::string histogram = values[1].find(5)->second;
  std::string limits = field(histogram, 6), counts = field(histogram, 7);
  REQUIRE(limits.size() == 30 * sizeof(double));
  REQUIRE(counts.size() == limits.size());
  for (int i = 0; i < 30; ++i) {
    REQUIRE(take<double>(limits) == 1.5);
    REQUIRE(take<double>(counts) == (i == 0 ? 4 : 0));
  }
}

TEST_CASE("a histogram has all values of a parameter in its buckets, and their sums") {
  const TemporaryFolder folder;
  ParameterStore store;
  store.add("w", Shape{1000}, init::normal(0.5));
  store.seal(1);
  EventFile file(folder.path(), store);
  file.on_eval({.step = 0, .train_loss = 1}, false);
  const std::string event = events_of(only_file(folder.path())).back();
  std::string histogram;
  for (const auto& parts : values_of(event)) {
    if (parts.contains(5)) histogram = parts.find(5)->second;
  }
  const Tensor& w = store.parameters()[0]->value();
  const std::span<const float> all(w.data<float>(), 1000);
  REQUIRE(number<double>(field(histogram, 1)) == *std::ranges::min_element(all));
  REQUIRE(number<double>(field(histogram, 2)) == *std::ranges::max_element(all));
  REQUIRE(number<double>(field(histogram, 3)) == 1000);
  double sum = 0, squares = 0;
  for (const float x : all) sum += x, squares += double{x} * x;
  REQUIRE(number<double>(field(histogram, 4)) == sum);
  REQUIRE(number<double>(field(histogram, 5)) == squares);
  std::string limits = field(histogram, 6), counts = field(histogram, 7);
  REQUIRE(limits.size() == counts.size());
  double before = -1e9;
  while (!limits.empty()) {
    const auto limit = take<double>(limits);
    const double expected = static_cast<double>(
        std::ranges::count_if(all, [&](float x) { return x >= before && (x < limit || limits.empty()); }));
    REQUIRE(std::abs(take<double>(counts) - expected) <= 1);  // a value at a limit may round to either side
    before = limit;
  }
}
