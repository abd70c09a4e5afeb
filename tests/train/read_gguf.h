// Reads a GGUF file as the format says, independently of the writer.
#pragma once

#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include "tests/files.h"

namespace maki::tests {

struct Place {
  std::vector<std::uint64_t> shape;  // as in the file, the fastest axis first
  std::uint32_t type;
  std::uint64_t offset;
};

struct ReadGguf {
  explicit ReadGguf(const std::string& path) : bytes(read_bytes(path)) {
    REQUIRE(take(4) == "GGUF");
    REQUIRE(number<std::uint32_t>() == 3);
    const auto tensor_count = number<std::uint64_t>(), keys = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::string key = text();
      REQUIRE(values.emplace(key, value(number<std::uint32_t>())).second);
    }
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      const std::string name = text();
      Place place{};
      place.shape.resize(number<std::uint32_t>());
      for (std::uint64_t& n : place.shape) n = number<std::uint64_t>();
      place.type = number<std::uint32_t>();
      place.offset = number<std::uint64_t>();
      REQUIRE(place.offset % 32 == 0);
      REQUIRE(name.size() <= 64);
      REQUIRE(tensors.emplace(name, place).second);
    }
    at += (32 - at % 32) % 32;
    data = at;
    REQUIRE(bytes.size() % 32 == 0);
  }

  template <class Number>
  Number number() {
    Number n;
    std::memcpy(&n, bytes.data() + at, sizeof n);
    at += sizeof n;
    return n;
  }
  std::string take(std::size_t size) {
    at += size;
    return bytes.substr(at - size, size);
  }
  std::string text() { return take(number<std::uint64_t>()); }
  // As text; the elements of an array with a newline after each.
  std::string value(std::uint32_t type) {
    if (type == 4) return std::to_string(number<std::uint32_t>());
    if (type == 5) return std::to_string(number<std::int32_t>());
    if (type == 6) return fmt::format("{}", number<float>());
    if (type == 7) return number<std::uint8_t>() != 0 ? "true" : "false";
    if (type == 8) return text();
    REQUIRE(type == 9);
    const auto element = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    std::string all;
    for (std::uint64_t i = 0; i < count; ++i) all += value(element) + "\n";
    return all;
  }
  // Element i of a float32 tensor.
  double f32(const std::string& name, std::size_t i) const {
    REQUIRE(tensors.at(name).type == 0);
    float x = 0;
    std::memcpy(&x, bytes.data() + data + tensors.at(name).offset + 4 * i, sizeof x);
    return static_cast<double>(x);
  }

  std::string bytes;
  std::size_t at = 0, data = 0;
  std::map<std::string, std::string> values;
  std::map<std::string, Place> tensors;
};

}  // namespace maki::tests
