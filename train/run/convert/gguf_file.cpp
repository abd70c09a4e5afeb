#include "train/run/convert/gguf_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "autograd/core/check.h"
#include "autograd/core/table.h"
#include "train/run/convert/number_type.h"

namespace maki {
namespace {

constexpr std::uint64_t kAlignment = 32;  // the default, which needs no key
// The types of metadata.
constexpr std::uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9;

struct NamedGgufType {
  const char* name;
  GgufType type;
};
constexpr NamedGgufType kGgufTypeRows[] = {{"f32", GgufType::f32}, {"f16", GgufType::f16}, {"q8_0", GgufType::q8_0}};
constexpr Table kGgufTypes("gguf_type", kGgufTypeRows);

template <class Number>
void append(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void append_text(std::string& to, std::string_view text) {
  append(to, static_cast<std::uint64_t>(text.size()));
  to += text;
}

std::uint64_t padding_after(std::uint64_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

void append_block(std::span<const float> values, std::vector<std::byte>& bytes) {
  float largest = 0;
  for (const float x : values) largest = std::max(largest, std::fabs(x));
  const float scale = largest / 127;
  const std::uint16_t half = float_to_half(scale);
  const float inverse = half_to_float(half) > 0 ? 1 / scale : 0;
  check(std::isfinite(half_to_float(half)), "gguf_type: q8_0 cannot hold a weight of {}; use f32", largest);
  bytes.push_back(static_cast<std::byte>(half & 255));
  bytes.push_back(static_cast<std::byte>(half >> 8));
  for (const float x : values) bytes.push_back(static_cast<std::byte>(static_cast<int>(std::round(x * inverse)) & 255));
}

}  // namespace

GgufType gguf_type_named(const std::string& name) { return kGgufTypes.row(name).type; }

std::vector<std::byte> gguf_numbers(GgufType type, std::span<const float> values) {
  std::vector<std::byte> bytes;
  if (type == GgufType::q8_0) {
    check(values.size() % kQ8Block == 0, "gguf: q8_0 needs a multiple of {} values; got {}", kQ8Block, values.size());
    for (std::size_t i = 0; i < values.size(); i += kQ8Block) append_block(values.subspan(i, kQ8Block), bytes);
    return bytes;
  }
  constexpr float kLargestHalf = 65504;  // the largest finite number of float16
  const NumberType number = type == GgufType::f16 ? NumberType::f16 : NumberType::f32;
  const auto large = std::ranges::find_if(values, [&](float x) { return std::fabs(x) > kLargestHalf; });
  check(type == GgufType::f32 || large == values.end(), "gguf_type: f16 cannot hold a weight of {}; use f32",
        large == values.end() ? 0 : *large);
  bytes.resize(values.size() * bits_of(number) / 8);
  write_numbers(number, values, bytes);
  return bytes;
}

void GgufFile::begin(const std::string& key, std::uint32_t type) {
  append_text(metadata_, key);
  append(metadata_, type);
  ++keys_;
}

void GgufFile::add(const std::string& key, std::uint32_t value) {
  begin(key, kUint32);
  append(metadata_, value);
}

void GgufFile::add(const std::string& key, float value) {
  begin(key, kFloat32);
  append(metadata_, value);
}

void GgufFile::add(const std::string& key, bool value) {
  begin(key, kBool);
  append(metadata_, static_cast<std::uint8_t>(value ? 1 : 0));
}

void GgufFile::add(const std::string& key, const std::string& value) {
  begin(key, kString);
  append_text(metadata_, value);
}

void GgufFile::add(const std::string& key, const std::vector<std::string>& values) {
  begin(key, kArray);
  append(metadata_, kString);
  append(metadata_, static_cast<std::uint64_t>(values.size()));
  for (const std::string& value : values) append_text(metadata_, value);
}

void GgufFile::add(const std::string& key, const std::vector<std::int32_t>& values) {
  begin(key, kArray);
  append(metadata_, kInt32);
  append(metadata_, static_cast<std::uint64_t>(values.size()));
  for (const std::int32_t value : values) append(metadata_, value);
}

void GgufFile::add_tensor(const std::string& name, const std::vector<std::int64_t>& shape, GgufType type,
                          std::vector<std::byte> bytes) {
  append_text(infos_, name);
  append(infos_, static_cast<std::uint32_t>(shape.size()));
  for (auto n = shape.rbegin(); n != shape.rend(); ++n) append(infos_, static_cast<std::uint64_t>(*n));
  append(infos_, static_cast<std::uint32_t>(type));
  append(infos_, offset_);
  offset_ += bytes.size() + padding_after(bytes.size());
  ++tensors_;
  data_.push_back(std::move(bytes));
}

void GgufFile::write(FileSystem& fs, const OutputPath& out) const {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  constexpr std::uint32_t kVersion = 3;  // of GGUF, since 2023
  std::string head = "GGUF";
  append(head, kVersion);
  append(head, tensors_);
  append(head, keys_);
  head += metadata_ + infos_;
  head.append(padding_after(head.size()), '\0');
  std::vector<Bytes> pieces = {text_bytes(head)};
  for (const std::vector<std::byte>& bytes : data_) {
    pieces.emplace_back(bytes);
    pieces.push_back(Bytes(kZeros).first(padding_after(bytes.size())));
  }
  write_output(fs, out, pieces);
}

}  // namespace maki
