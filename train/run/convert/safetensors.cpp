#include "train/run/convert/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autograd/core/check.h"
#include "data/io/error.h"

namespace maki {
namespace {

constexpr std::uint64_t kLengthBytes = 8;  // at the beginning: the length of the header, as u64

// Throws unless the data of the tensors, in the order of their places, follow each other and fill the `size` bytes of
// data.
void check_places(const std::vector<StoredTensor>& tensors, std::uint64_t size, const std::string& path) {
  std::vector<const StoredTensor*> by_place;
  by_place.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) by_place.push_back(&tensor);
  std::ranges::sort(by_place, {}, [](const StoredTensor* each) { return std::pair(each->offset, each->size); });
  std::uint64_t used = 0;
  for (const StoredTensor* const tensor : by_place) {
    check<CorruptFile>(
        tensor->offset == used,
        "{}: tensor {}: must begin at byte {} of the data, where the one before it ends; it begins at {}", path,
        truncate_for_message(tensor->name), used, tensor->offset);
    used += tensor->size;
  }
  check<CorruptFile>(used == size, "{}: its tensors have {} bytes, but {} bytes follow the header", path, used, size);
}

// The order of the reference implementation.
void sort_for_writing(std::vector<OwnedTensor>& tensors) {
  std::ranges::sort(tensors, [](const OwnedTensor& a, const OwnedTensor& b) {
    if (bits_of(a.type) != bits_of(b.type)) return bits_of(a.type) > bits_of(b.type);
    return a.name < b.name;
  });
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// With its length before it.
std::string header_text(const std::vector<OwnedTensor>& tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::uint64_t at = 0;
  for (const OwnedTensor& tensor : tensors) {
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(tensor.name),
                        to_string(tensor.type), fmt::join(tensor.shape, ","), at, at + tensor.bytes.size());
    at += tensor.bytes.size();
  }
  json += '}';
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  const std::uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + json;
}

}  // namespace

StoredTensors read_safetensors(const std::string& path) {
  StoredTensors stored{.path = path, .tensors = {}};
  const auto file = std::make_shared<const StableFile>(path, throw_as<CheckpointError>);
  check<CorruptFile>(file->size() >= kLengthBytes, "{}: is too short for a safetensors file; got {} bytes", path,
                     file->size());
  std::uint64_t length = 0;
  file->read(0, std::as_writable_bytes(std::span(&length, 1)));
  check<CorruptFile>(
      length <= kMaxSafetensorsHeader && length <= file->size() - kLengthBytes,
      "{}: is not a safetensors file: its header would have {} bytes, but it may have at most {} and the "
      "file has {}",
      path, length, kMaxSafetensorsHeader, file->size());
  const std::uint64_t begin = kLengthBytes + length, size = file->size() - begin;
  std::string json(length, '\0');
  file->read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  stored.tensors = parse_safetensors_header(json, size, path);
  check_places(stored.tensors, size, path);
  for (StoredTensor& tensor : stored.tensors) {
    tensor.offset += begin;
    tensor.file = file;
  }
  std::ranges::sort(stored.tensors, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(stored.tensors, {}, &StoredTensor::name);
  if (twice != stored.tensors.end())
    fail<CorruptFile>("{}: tensor {}: is in the header twice", path, truncate_for_message(twice->name));
  return stored;
}

void write_safetensors(FileSystem& fs, const OutputPath& out, std::vector<OwnedTensor> tensors) {
  sort_for_writing(tensors);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    check(tensors[i - 1].name != tensors[i].name, "{}: two tensors are named {}", out.path, tensors[i].name);
  }
  const std::string header = header_text(tensors);
  check<CheckpointError>(header.size() - kLengthBytes <= kMaxSafetensorsHeader,
                         "{}: the header of a safetensors file has at most {} bytes; got {}", out.path,
                         kMaxSafetensorsHeader, header.size() - kLengthBytes);
  std::vector<Bytes> pieces = {text_bytes(header)};
  for (const OwnedTensor& tensor : tensors) pieces.emplace_back(tensor.bytes);
  write_output(fs, out, pieces);
}

}  // namespace maki
