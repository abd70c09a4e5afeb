#include "train/run/memory_section.h"

#include "data/io/error.h"
#include "train/run/number_check.h"

namespace maki {

void check_memory_length(const ContainerReader& file, const CarriedLayout& carried, std::int64_t tokens) {
  if (!carried.any()) return;
  const std::int64_t elements = carried.numel(carried.length_after(tokens));
  const auto bytes = static_cast<std::uint64_t>(elements * size_of(carried.dtype()));
  check<CorruptFile>(file.length(kMemorySection) == bytes, "{}: section {} must have {} bytes; got {}", file.path(),
                     kMemorySection, bytes, file.length(kMemorySection));
}

void load_memory(const ContainerReader& file, CarriedStates& carried, std::int64_t tokens) {
  if (!carried.any()) return;
  const CarriedLayout& layout = carried.layout();
  check_memory_length(file, layout, tokens);
  const std::int64_t length = layout.length_after(tokens);
  Tensor values = empty({layout.numel(length)}, layout.dtype());
  dispatch(values.dtype(), [&]<class T>() {
    const auto bytes = std::as_writable_bytes(values.values<T>());
    file.read(kMemorySection, bytes);
    NumberCheck(file, values.dtype(), kMemorySection).add(bytes);
  });
  carried.restore(values, length);
}

}  // namespace maki
