#include "train/run/memory_section.h"

#include "train/config/error.h"
#include "train/run/number_check.h"

namespace maki {

void check_memory_length(const ContainerReader& file, const CarriedStates& carried, std::int64_t tokens) {
  if (!carried.any()) return;
  const DType dtype = carried.dtype();
  const auto bytes = static_cast<std::uint64_t>(carried.numel_after(tokens) * size_of(dtype));
  check<CorruptFile>(file.length(kMemorySection) == bytes, "{}: section {} must have {} bytes; got {}", file.path(),
                     kMemorySection, bytes, file.length(kMemorySection));
}

void check_memory_numbers(const ContainerReader& file, const CarriedStates& carried) {
  if (!carried.any()) return;
  NumberCheck numbers(file, carried.dtype(), kMemorySection);
  file.scan(kMemorySection, [&](Bytes piece) { numbers.add(piece); });
}

void load_memory(const ContainerReader& file, CarriedStates& carried, std::int64_t tokens) {
  if (!carried.any()) return;
  check_memory_length(file, carried, tokens);
  Tensor values = empty({carried.numel_after(tokens)}, carried.dtype());
  dispatch(values.dtype(), [&]<class T>() {
    const auto bytes = std::as_writable_bytes(values.values<T>());
    file.read(kMemorySection, bytes);
    NumberCheck(file, values.dtype(), kMemorySection).add(bytes);
  });
  carried.restore(values, tokens);
}

}  // namespace maki
