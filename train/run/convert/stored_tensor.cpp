#include "train/run/convert/stored_tensor.h"

#include <algorithm>
#include <iterator>

#include "autograd/core/check.h"
#include "data/io/error.h"

namespace maki {
namespace {

constexpr std::size_t kBlockNumbers = 1 << 16;  // converted at once: 256 KiB, which stay in the level-2 cache

}  // namespace

const StoredTensor* StoredTensors::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors, name, {}, &StoredTensor::name);
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

template <class T>
void StoredTensor::read(std::span<T> values, std::size_t first) const {
  const std::size_t width = bits_of(type) / 8;
  std::vector<std::byte> block;
  for (std::size_t at = 0; at < values.size(); at += kBlockNumbers) {
    const std::size_t count = std::min(kBlockNumbers, values.size() - at);
    block.resize(count * width);
    file->read(offset + (first + at) * width, block);
    read_numbers(type, block, values.subspan(at, count));
  }
}
template void StoredTensor::read(std::span<float>, std::size_t) const;
template void StoredTensor::read(std::span<double>, std::size_t) const;

bool are_equal(const StoredTensor& a, const StoredTensor& b) {
  if (a.shape != b.shape || !is_readable(a.type) || !is_readable(b.type)) return false;
  const std::size_t count = a.size * 8 / bits_of(a.type);
  std::vector<double> of_a(std::min(count, kBlockNumbers)), of_b(of_a.size());
  for (std::size_t at = 0; at < count; at += of_a.size()) {
    const std::size_t part = std::min(of_a.size(), count - at);
    a.read(std::span(of_a).first(part), at);
    b.read(std::span(of_b).first(part), at);
    if (!std::equal(of_a.begin(), of_a.begin() + static_cast<std::ptrdiff_t>(part), of_b.begin())) return false;
  }
  return true;
}

void StoredTensors::merge(StoredTensors other) {
  for (const StoredTensor& tensor : other.tensors) {
    check<CorruptFile>(find(tensor.name) == nullptr,
                       "{}: contains the tensor {}, which another file of the model contains", other.path,
                       truncate_for_message(tensor.name));
  }
  const auto middle = static_cast<std::ptrdiff_t>(tensors.size());
  std::ranges::move(other.tensors, std::back_inserter(tensors));
  std::ranges::inplace_merge(tensors, tensors.begin() + middle, {}, &StoredTensor::name);
}

}  // namespace maki
