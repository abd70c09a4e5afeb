#include "train/convert/stored_tensor.h"

#include <algorithm>
#include <iterator>

#include "data/text/printable.h"
#include "train/config/error.h"

namespace maki {

const StoredTensor* StoredTensors::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors, name, {}, &StoredTensor::name);
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

template <class T>
void StoredTensors::read(const StoredTensor& tensor, std::span<T> values) const {
  constexpr std::size_t kBlockNumbers = 1 << 16;
  const auto file = std::ranges::find_if(
      files, [&](const std::shared_ptr<const MappedFile>& each) { return each->has(tensor.bytes); });
  const std::size_t width = bits_of(tensor.type) / 8;
  std::vector<std::byte> block;
  for (std::size_t at = 0; at < values.size(); at += kBlockNumbers) {
    const std::size_t count = std::min(kBlockNumbers, values.size() - at);
    block.resize(count * width);
    (*file)->read(tensor.bytes.subspan(at * width), block);
    read_numbers(tensor.type, block, values.subspan(at, count));
  }
}
template void StoredTensors::read(const StoredTensor&, std::span<float>) const;
template void StoredTensors::read(const StoredTensor&, std::span<double>) const;

void StoredTensors::merge(StoredTensors other) {
  for (const StoredTensor& tensor : other.tensors) {
    check<CorruptFile>(find(tensor.name) == nullptr,
                       "{}: contains the tensor {}, which another file of the model contains",
                       other.files.front()->path(), truncate_for_message(tensor.name));
  }
  std::ranges::move(other.files, std::back_inserter(files));
  const auto middle = static_cast<std::ptrdiff_t>(tensors.size());
  std::ranges::move(other.tensors, std::back_inserter(tensors));
  std::ranges::inplace_merge(tensors, tensors.begin() + middle, {}, &StoredTensor::name);
}

}  // namespace maki
