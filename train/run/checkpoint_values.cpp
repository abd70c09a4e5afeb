// Loads the numbers of a checkpoint (train/run/checkpoint.h).
#include "train/run/checkpoint.h"
#include "train/run/number_check.h"

namespace maki {
namespace {

std::span<std::byte> writable_bytes(Tensor& x) {
  return dispatch(x.dtype(), [&]<class T>() { return std::span<std::byte>(std::as_writable_bytes(x.values<T>())); });
}

}  // namespace

void load_values(const ContainerReader& file, ParameterStore& store) {
  check_tensors(file, store);
  Tensor& values = store.values();
  NumberCheck numbers(file, values.dtype());
  file.read("values", writable_bytes(values), [&](Bytes piece) { numbers.add(piece); });
  store.mark_changed();
}

void seal_with_stored_values(const ContainerReader& file, ParameterStore& store) {
  check_tensors(file, store);
  NumberCheck numbers(file, store.dtype());
  const auto mapping = file.map("values", [&](Bytes piece) { numbers.add(piece); });
  if (mapping == nullptr) {
    store.seal_uninitialized();
    load_values(file, store);
    return;
  }
  const Shape shape{store.range(ParamGroup::frozen).end};
  store.seal_with_values(Tensor(Storage(mapping->bytes().data(), mapping), 0, shape, store.dtype()));
}

void load_optimizer(const ContainerReader& file, std::int64_t steps, Optimizer& optimizer) {
  for (Moment& moment : optimizer.moments()) {
    NumberCheck numbers(file, moment.values.dtype(), moment);
    file.read(moment.name, writable_bytes(moment.values), [&](Bytes piece) { numbers.add(piece); });
  }
  optimizer.set_steps(steps);
}

}  // namespace maki
