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
