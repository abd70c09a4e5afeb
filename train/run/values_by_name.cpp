#include "train/run/values_by_name.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/io/error.h"
#include "data/io/hash.h"
#include "train/run/checkpoint.h"
#include "train/run/number_check.h"

namespace maki {
namespace {

// Bytes [begin, end) of the section `values`, and where they belong.
struct Destination {
  std::uint64_t begin, end;
  std::byte* to;
};

constexpr std::uint64_t kLineBytes = 64;  // bytes; as in a ParameterStore, the values of every tensor fill whole lines

std::vector<Destination> destinations(const ContainerReader& file, ParameterStore& store,
                                      const std::function<bool(const std::string&)>& is_wanted) {
  const auto size = static_cast<std::uint64_t>(size_of(store.dtype()));
  std::vector<Destination> list;
  std::uint64_t length = 0;
  for (const TensorEntry& entry : read_tensors(file)) {
    const std::uint64_t begin = static_cast<std::uint64_t>(entry.offset) * size;
    const std::uint64_t end = begin + static_cast<std::uint64_t>(entry.shape.numel()) * size;
    length = std::max(length, (end + kLineBytes - 1) / kLineBytes * kLineBytes);
    if (is_wanted && !is_wanted(entry.name)) continue;
    const Parameter* const found = store.find_or_null(entry.name);
    check<CorruptFile>(found != nullptr && found->shape() == entry.shape,
                       "{}: has a tensor {} of shape {}, but the model has none", file.path(), entry.name, entry.shape);
    auto* const to = dispatch(store.dtype(), [&]<class T>() {
      return reinterpret_cast<std::byte*>(store.values().data<T>() + found->offset());
    });
    list.push_back({begin, end, to});
  }
  // Numbers of another type have another length, or in a file of one line, end in what NumberCheck takes for padding.
  check<CorruptFile>(file.length("values") == length, "{}: section values must have {} bytes for {} numbers; got {}",
                     file.path(), length, to_string(store.dtype()), file.length("values"));
  return list;
}

}  // namespace

void load_values_by_name(const ContainerReader& file, ParameterStore& store,
                         const std::function<bool(const std::string&)>& is_wanted) {
  const std::vector<Destination> list = destinations(file, store, is_wanted);
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

std::string hash_of_values(const ParameterStore& store) {
  return dispatch(store.dtype(),
                  [&]<class T>() { return hash128_hex(bytes_text(std::as_bytes(store.values().values<T>()))); });
}

}  // namespace maki
