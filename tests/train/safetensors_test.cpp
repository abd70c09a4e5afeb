// safetensors files: what the reader accepts, what it rejects, and the bytes that the writer gives.
#include "train/run/convert/safetensors.h"

#include <cstring>
#include <rapidcheck.h>

#include "data/io/error.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/train/imported.h"
#include "tests/train/small_loaded.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A file with this header and this many bytes of data.
std::string file_of(const std::string& header, std::size_t data = 0) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, 'x');
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, std::uint64_t begin,
                  std::uint64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, dtype, shape, begin, end);
}

// The message with which the reader rejects a file; empty if it accepts it.
std::string refusal_of_bytes(const TemporaryFolder& folder, const std::string& bytes) {
  write_bytes(folder / "m.safetensors", bytes);
  return error_message<CheckpointError>([&] { read_safetensors(folder / "m.safetensors"); });
}

struct Malformed {
  const char* words;  // of the message
  std::string header;
  std::size_t data = 0;
};

std::string nested(std::size_t depth) { return R"({"a":)" + std::string(depth, '['); }

const std::vector<Malformed>& malformed() {
  static const std::string f32 = entry("a", "F32", "2", 0, 8);
  static const std::vector<Malformed> list = {
      {"JSON that begins", ""},
      {"JSON that begins", "[]"},
      {"JSON that begins", " {}"},
      {"JSON that begins", "null"},
      {"JSON that begins", "\xef\xbb\xbf{}"},
      {"JSON that begins", std::string("{}\0", 3)},
      {"JSON that begins", std::string("{\"a\0b\":1}", 9)},
      {"must be JSON in UTF-8", "{"},
      {"must be JSON in UTF-8", "{}}"},
      {"must be JSON in UTF-8", "{} x"},
      {"must be JSON in UTF-8", "{" + f32, 8},
      {"must be JSON in UTF-8", "{" + f32 + ",}", 8},
      {"must be JSON in UTF-8", "{'a':1}"},
      {"must be JSON in UTF-8", "{\"\xff\":1}"},
      {"must be JSON in UTF-8", "{\"\xed\xa0\x80\":1}"},
      {"must be JSON in UTF-8", "{\"a\\ud800\":1}"},
      {"must be JSON in UTF-8", "{\"a\n\":1}"},
      {"must be JSON in UTF-8", R"({"a":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}})", 4},
      {"must be JSON in UTF-8", R"({"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}})", 4},
      {"tensor a: must not contain null here", R"({"a":null})"},
      {"header: must not contain null here", R"({"":null})"},
      {"must not contain a boolean", R"({"a":true})"},
      {"must not contain a number", R"({"a":1})"},
      {"must not contain a string", R"({"a":"F32"})"},
      {"must not contain an array", R"({"a":[1]})"},
      {"must not contain an array", nested(100)},
      {"must not contain an array", nested(1 << 20)},
      {"must not contain an object", R"({"a":{"dtype":{}}})"},
      {"must not contain an object", R"({"__metadata__":{"a":{}}})"},
      {"maps strings to strings", R"({"__metadata__":{"a":1}})"},
      {"maps strings to strings", R"({"__metadata__":{"a":null}})"},
      {"maps strings to strings", R"({"__metadata__":{"a":["b"]}})"},
      {"must not contain a string", R"({"__metadata__":"pt"})"},
      {"one of them is missing", R"({"a":{}})"},
      {"one of them is missing", R"({"a":{"dtype":"F32","shape":[2]}})", 8},
      {"one of them is missing", R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8},
      {"one of them is missing", R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8},
      {"must have dtype, shape and data_offsets; got size", R"({"a":{"size":3}})"},
      {"tensor a: has dtype twice", R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8},
      {"has shape twice", R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8},
      {"has data_offsets twice", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}})", 8},
      {"unknown dtype F31", "{" + entry("a", "F31", "2", 0, 8) + "}", 8},
      {"unknown dtype f32", "{" + entry("a", "f32", "2", 0, 8) + "}", 8},
      {"unknown dtype", "{" + entry("a", "", "2", 0, 8) + "}", 8},
      {"a number as dtype", R"({"a":{"dtype":11,"shape":[2],"data_offsets":[0,8]}})", 8},
      {"a number as shape", R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8},
      {"a string as shape", R"({"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}})", 8},
      {"a string", R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})", 8},
      {"an array", R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8},
      {"a negative number", "{" + entry("a", "F32", "-2", 0, 8) + "}", 8},
      {"a negative number", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8},
      {"not a whole one", "{" + entry("a", "F32", "2.0", 0, 8) + "}", 8},
      {"not a whole one", "{" + entry("a", "F32", "2e0", 0, 8) + "}", 8},
      {"not a whole one", "{" + entry("a", "F32", "18446744073709551616", 0, 8) + "}", 8},
      {"must be JSON in UTF-8", "{" + entry("a", "F32", "1e400", 0, 8) + "}", 8},  // no double is as large
      {"an axis of 18446744073709551615", "{" + entry("a", "F32", "18446744073709551615", 0, 8) + "}", 8},
      {"more elements than a file", "{" + entry("a", "F32", "4294967296,4294967296", 0, 8) + "}", 8},
      {"more elements than a file", "{" + entry("a", "F32", "1152921504606846976", 0, 0) + "}"},
      {"more elements than a file", "{" + entry("a", "F32", "4294967296,4294967296,0", 0, 0) + "}"},
      {"more elements than a file", "{" + entry("a", "F64", "4611686018427387903,2", 0, 8) + "}", 8},
      {"more elements than a file", "{" + entry("a", "F32", "4398046511105,4194304", 0, 8) + "}", 8},
      {"at most 16 numbers", "{" + entry("a", "U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 0, 1) + "}", 1},
      {"must have 2 numbers; got 0", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[]}})", 8},
      {"must have 2 numbers; got 1", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}})", 8},
      {"must have 2 numbers; got more", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8},
      {"must be ascending", "{" + entry("a", "F32", "2", 8, 0) + "}", 8},
      {"end within the 7 bytes", "{" + f32 + "}", 7},
      {"end within the 8 bytes", "{" + entry("a", "F32", "3", 0, 12) + "}", 8},
      {"end within the 8 bytes", "{" + entry("a", "F32", "2", 0, 18446744073709551615U) + "}", 8},
      {"must have 12 bytes", "{" + entry("a", "F32", "3", 0, 8) + "}", 8},
      {"must have 4 bytes", "{" + entry("a", "F32", "", 0, 8) + "}", 8},
      {"must have 0 bytes", "{" + entry("a", "F32", "0,5", 0, 8) + "}", 8},
      {"must have 4 bytes", "{" + entry("a", "BF16", "2", 0, 8) + "}", 8},
      {"do not fill whole bytes", "{" + entry("a", "F4", "3", 0, 2) + "}", 2},
      {"do not fill whole bytes", "{" + entry("a", "F6_E2M3", "2", 0, 2) + "}", 2},
      {"must begin at byte 0", "{" + entry("a", "F32", "1", 4, 8) + "}", 8},
      {"must begin at byte 4", "{" + entry("a", "F32", "1", 0, 4) + "," + entry("b", "F32", "1", 8, 12) + "}", 12},
      {"must begin at byte 8", "{" + f32 + "," + entry("b", "F32", "2", 4, 12) + "}", 12},
      {"must begin at byte 8", "{" + f32 + "," + entry("b", "F32", "2", 0, 8) + "}", 8},
      {"must begin at byte 8", "{" + f32 + "," + entry("b", "F32", "0", 4, 4) + "}", 8},
      {"must begin at byte 0", "{" + entry("a", "F32", "0", 4, 4) + "}", 4},
      {"end within the 8 bytes", "{" + f32 + "," + entry("b", "F32", "0", 12, 12) + "}", 8},
      {"8 bytes, but 9 bytes follow", "{" + f32 + "}", 9},
      {"0 bytes, but 1 bytes follow", "{}", 1},
      {"is in the header twice", "{" + f32 + "," + entry("a", "F32", "1", 8, 12) + "}", 12},
      {"is in the header twice", "{" + f32 + "," + entry("\\u0061", "F32", "1", 8, 12) + "}", 12},
  };
  return list;
}

std::vector<std::byte> random_bytes(std::size_t size) {
  return *rc::gen::container<std::vector<std::byte>>(
      size, rc::gen::map(rc::gen::arbitrary<std::uint8_t>(), [](auto b) { return std::byte{b}; }));
}

}  // namespace

TEST_CASE("every malformed header of a safetensors file is rejected with a sentence that names the file") {
  REQUIRE(malformed().size() >= 60);
  const TemporaryFolder folder;
  for (const Malformed& each : malformed()) {
    INFO(each.header.substr(0, 200));
    const std::string said = refusal_of_bytes(folder, file_of(each.header, each.data));
    REQUIRE_THAT(said, Catch::Matchers::StartsWith(folder / "m.safetensors") && ContainsSubstring(each.words));
    REQUIRE(said.find('\n') == std::string::npos);
  }
}

TEST_CASE("a safetensors file of the wrong length is rejected") {
  const TemporaryFolder folder;
  const std::string good = file_of("{" + entry("a", "F32", "2", 0, 8) + "}", 8);
  REQUIRE(refusal_of_bytes(folder, good).empty());
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO(size);
    REQUIRE_FALSE(refusal_of_bytes(folder, good.substr(0, size)).empty());
  }
  REQUIRE_FALSE(refusal_of_bytes(folder, good + "x").empty());
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{good.size()},
                                     kMaxSafetensorsHeader + 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 8}) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &length, sizeof length);
    INFO(length);
    REQUIRE_FALSE(refusal_of_bytes(folder, bytes).empty());
  }
  REQUIRE_THAT(error_message<CheckpointError>([&] { read_safetensors(folder / "none"); }),
               ContainsSubstring("cannot be opened"));
  REQUIRE_THAT(error_message<CheckpointError>([&] { read_safetensors(folder.path()); }),
               ContainsSubstring("regular file"));
}

TEST_CASE("a header that is longer than the format allows is rejected for its length, also if the file has it all") {
  const TemporaryFolder folder;
  const std::uint64_t length = kMaxSafetensorsHeader + 1, size = sizeof length + length;
  const std::string path =
      folder.write("m.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof length));
  std::filesystem::resize_file(path, size);  // sparse: takes no room on the disk
  REQUIRE_THAT(
      error_message<CheckpointError>([&] { read_safetensors(path); }),
      ContainsSubstring(fmt::format("header would have {} bytes, but it may have at most {} and the file has {}",
                                    length, kMaxSafetensorsHeader, size)));
}

TEST_CASE("what the format allows is read: empty tensors, numbers without axes, spaces, any order, every type") {
  const TemporaryFolder folder;
  const std::string header = R"({"__metadata__":{"format":"pt","a":"b"},)" + entry("late", "F64", "", 5, 13) + "," +
                             entry("empty", "F32", "0,3", 5, 5) + "," + entry("five", "U8", "5", 0, 5) + "," +
                             entry("half", "F4", "2", 13, 14) + "}   ";
  REQUIRE(refusal_of_bytes(folder, file_of(header, 14)).empty());
  const StoredTensors stored = read_safetensors(folder / "m.safetensors");
  REQUIRE(stored.tensors.size() == 4);
  REQUIRE(stored.tensors[0].name == "empty");
  REQUIRE(stored.find("late")->shape.empty());
  REQUIRE(stored.find("late")->size == 8);
  REQUIRE(stored.find("empty")->shape == std::vector<std::int64_t>{0, 3});
  REQUIRE(stored.find("none") == nullptr);
  REQUIRE(stored.find("half")->type == NumberType::f4);
  REQUIRE(
      refusal_of_bytes(folder, file_of(R"({"__metadata__":null,)" + entry("a", "F32", "1", 0, 4) + "}", 4)).empty());
  REQUIRE_FALSE(refusal_of_bytes(folder, file_of(R"({"a":null})", 0)).empty());
}

TEST_CASE("what is written is read again, with the header padded and larger numbers first") {
  REQUIRE(rc::check([] {
    const TemporaryFolder folder;
    std::vector<OwnedTensor> tensors;
    const auto names = *rc::gen::unique<std::vector<std::string>>(rc::gen::nonEmpty(rc::gen::string<std::string>()));
    for (const std::string& name : names) {
      const bool ascii = std::ranges::all_of(name, [](char c) { return c != 0 && (c & 0x80) == 0; });
      if (!ascii) continue;
      const auto type = *rc::gen::element(NumberType::f16, NumberType::bf16, NumberType::f32, NumberType::f64);
      const auto shape = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 4));
      if (shape.size() > kMaxStoredRank) continue;
      std::uint64_t bytes = bits_of(type) / 8;
      for (const std::int64_t n : shape) bytes *= static_cast<std::uint64_t>(n);
      if (bytes > 4096) continue;
      tensors.push_back({name, type, shape, random_bytes(bytes)});
    }
    write_safetensors(posix_file_system(), {folder / "m.safetensors", true}, tensors);
    const StoredTensors stored = read_safetensors(folder / "m.safetensors");
    const std::vector<OwnedTensor> again = owned(stored);
    RC_ASSERT(again.size() == tensors.size());
    for (const OwnedTensor& tensor : tensors) {
      const auto found = std::ranges::find(again, tensor.name, &OwnedTensor::name);
      RC_ASSERT(found != again.end());
      RC_ASSERT(found->shape == tensor.shape);
      RC_ASSERT(found->type == tensor.type);
      RC_ASSERT(found->bytes == tensor.bytes);
      RC_ASSERT(stored.find(tensor.name)->offset % (bits_of(tensor.type) / 8) == 0);
    }
  }));
}

TEST_CASE("a file that becomes shorter after its header was read is an error, and does not end the process") {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.safetensors", file_of("{" + entry("a", "F32", "2", 0, 8) + "}", 8));
  const StoredTensors stored = read_safetensors(path);
  std::vector<float> values(2);
  stored.tensors.at(0).read(std::span(values));
  float expected = 0;
  std::memcpy(&expected, "xxxx", sizeof expected);
  REQUIRE(values == std::vector<float>{expected, expected});
  std::filesystem::resize_file(path, 8);
  const std::string said = error_message<CheckpointError>([&] { stored.tensors[0].read(std::span(values)); });
  REQUIRE(contains(said, path + ": must stay as it is while it is used"));
}

TEST_CASE("of a tensor with many numbers all are read, or those from any of them on, and compared with another's") {
  const TemporaryFolder folder;
  constexpr std::size_t kBlock = 65536, kCount = 2 * kBlock + 5;  // kBlock of them are converted at a time
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 2003);  // exact in float16
  const auto stored = [&](NumberType type, const std::vector<float>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * bits_of(type) / 8);
    write_numbers<float>(type, numbers, bytes);
    const OwnedTensor before{
        .name = "a", .type = type, .shape = {1}, .bytes = std::vector<std::byte>(bits_of(type) / 8)};
    const OwnedTensor tensor{.name = "b", .type = type, .shape = {std::ssize(numbers)}, .bytes = bytes};
    write_safetensors(posix_file_system(), {folder / to_string(type), true}, {before, tensor});
    return read_safetensors(folder / to_string(type)).tensors.at(1);
  };
  const StoredTensor narrow = stored(NumberType::f16, values), wide = stored(NumberType::f32, values);
  std::vector<double> all(kCount);
  narrow.read(std::span(all));
  REQUIRE(std::ranges::equal(all, values));
  for (const std::size_t first : {std::size_t{1}, kBlock - 1, kBlock + 1}) {
    std::vector<float> some(kCount - first);
    wide.read(std::span(some), first);
    REQUIRE(std::ranges::equal(some, std::span(values).subspan(first)));
  }
  REQUIRE(are_equal(narrow, wide));
  for (const std::size_t at : {std::size_t{0}, kBlock - 1, kBlock, kCount - 1}) {
    std::vector<float> changed = values;
    changed[at] += 1;
    INFO(at);
    REQUIRE_FALSE(are_equal(narrow, stored(NumberType::f64, changed)));
  }
}

TEST_CASE("a file of the reference implementation is written again byte for byte") {
  const TemporaryFolder folder;
  for (const char* const name : {"hf-gpt2/model", "hf-gpt2-old/model", "hf-llama/model"}) {
    INFO(name);
    const std::string path = std::string(MAKI_SOURCE_DIR) + "/tests/fixtures/" + name + ".safetensors";
    write_safetensors(posix_file_system(), {folder / "again.safetensors", true}, owned(read_safetensors(path)));
    REQUIRE(read_bytes(folder / "again.safetensors") == read_bytes(path));
  }
}

TEST_CASE("a file with any one byte changed is read or rejected") {
  const TemporaryFolder folder;
  const std::string good = file_of(
      R"({"__metadata__":{"a":"b"},)" + entry("a", "F32", "2", 0, 8) + "," + entry("b", "U8", "1", 8, 9) + "}", 9);
  int accepted = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int change : {1, 2, 4, 16, 32, 128}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      write_bytes(folder / "m.safetensors", bytes);
      std::size_t size = 0;
      const std::string said = error_message<CheckpointError>([&] {
        for (const StoredTensor& tensor : read_safetensors(folder / "m.safetensors").tensors) size += tensor.size;
      });
      accepted += said.empty();
      REQUIRE((said.empty() ? size == 9 : size == 0));
    }
  }
  REQUIRE(accepted > 54);  // those of the data at least, and of names
}

TEST_CASE("an export of the weights says which parts of the model it lacks") {
  const TemporaryFolder folder;
  const auto notes = [&](const std::string& name) {
    return export_model(LoadedModel(golden_checkpoint(name)), "safetensors", {.out = folder / name}).notes;
  };
  REQUIRE(notes("gpt").empty());
  for (const auto& [name, part] :
       std::vector<std::pair<std::string, std::string>>{{"ngrams", "the n-gram counts of its prior"},
                                                        {"seq2seq", "the vocabulary of its sources"},
                                                        {"classify", "the labels of its classes"}}) {
    REQUIRE(notes(name) == std::vector{folder / name + ": has the weights of the model, but not " + part +
                                       "; `format` maki keeps all of it"});
  }
}

TEST_CASE("two tensors of one name are not written") {
  const TemporaryFolder folder;
  const OwnedTensor a{.name = "a", .type = NumberType::f32, .shape = {0}, .bytes = {}};
  REQUIRE_THAT(error_message<Error>([&] {
                 write_safetensors(posix_file_system(), folder / "m", {a, a});
               }),
               ContainsSubstring("two tensors are named a"));
}

TEST_CASE("reading the header of a safetensors file needs little memory, whatever it contains") {
  const TemporaryFolder folder;
  const auto repeated = [](const std::string& unit, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += unit;
    return all;
  };
  std::string entries = "{";
  for (int i = 0; i < 20'000; ++i) entries += (i > 0 ? "," : "") + entry(std::to_string(i), "F32", "0,0,0", 0, 0);
  const std::vector<std::string> headers = {entries + "}", R"({"__metadata__":{)" + repeated(R"("":"",)", 200'000),
                                            nested(1 << 20), R"({"a":{"shape":[)" + repeated("0,", 1 << 19),
                                            "{\"" + std::string(1 << 20, 'a') + "\":1}"};
  for (const std::string& header : headers) {
    const std::string bytes = file_of(header);
    write_bytes(folder / "m.safetensors", bytes);
    start_peak();
    error_message<CheckpointError>([&] { read_safetensors(folder / "m.safetensors"); });
    INFO(header.substr(0, 40) << ": " << peak_bytes() << " bytes for " << bytes.size());
    REQUIRE(peak_bytes() < 8 * static_cast<std::int64_t>(bytes.size()) + (16 << 20));
  }
}
