#include "train/run/values_by_name.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "train/config/error.h"
#include "train/run/checkpoint.h"
#include "train/run/number_check.h"

namespace maki {
namespace {

// Bytes [begin, end) of the section `values`, and where they belong.
struct Destination {
  std::uint64_t begin, end;
  std::byte* to;
};

std::vector<Destination> destinations(const ContainerReader& file, ParameterStore& store) {
  const auto size = static_cast<std::uint64_t>(size_of(store.dtype()));
  std::vector<Destination> list;
  for (const TensorEntry& entry : read_tensors(file)) {
    const auto& all = store.parameters();
    const auto found = std::ranges::find_if(all, [&](const auto& p) { return p->name() == entry.name; });
    check<CorruptFile>(found != all.end() && (*found)->shape() == entry.shape,
                       "{}: has a tensor {} of shape {}, but the model has none", file.path(), entry.name, entry.shape);
    const std::uint64_t begin = static_cast<std::uint64_t>(entry.offset) * size;
    const std::uint64_t end = begin + static_cast<std::uint64_t>(entry.shape.numel()) * size;
    check<CorruptFile>(end <= file.length("values"), "{}: tensor {} ends beyond the section values", file.path(),
                       entry.name);
    auto* const to = dispatch(store.dtype(), [&]<class T>() {
      return reinterpret_cast<std::byte*>(store.values().data<T>() + (*found)->offset());
    });
    list.push_back({begin, end, to});
  }
  return list;
}

}  // namespace

void load_values_by_name(const ContainerReader& file, ParameterStore& store) {
  const std::vector<Destination> list = destinations(file, store);
  NumberCheck numbers(file, store.dtype());
  std::uint64_t at = 0;
  file.scan("values", [&](Bytes piece) {
    numbers.add(piece);
    const std::uint64_t end = at + piece.size();
    for (const Destination& d : list) {
      const std::uint64_t first = std::max(d.begin, at), last = std::min(d.end, end);
      if (first < last) std::memcpy(d.to + (first - d.begin), piece.data() + (first - at), last - first);
    }
    at = end;
  });
  store.mark_changed();
}

}  // namespace maki
