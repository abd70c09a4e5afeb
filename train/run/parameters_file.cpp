#include "train/run/parameters_file.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <iterator>
#include <set>

#include "data/io/error.h"
#include "train/run/checkpoint.h"
#include "train/run/container.h"
#include "train/run/number_check.h"

namespace maki {
namespace {

// The section `store`; the container's numbers are those of the machine (little-endian).
struct StoreRecord {
  std::int64_t number_size = 0, steps = 0;
};

// A file that cannot be loaded must not take the place of one that can.
void require_loadable(const std::string& path, const ContainerSection& section, DType dtype, bool may_be_negative) {
  check<DivergedError>(numbers_are_valid(section.bytes, dtype, may_be_negative),
                       "{}: section {} would contain {}, and could not be loaded; nothing was written", path,
                       section.name, invalid_number(may_be_negative));
}

void save(const std::string& path, const ParameterStore& store, const Optimizer* optimizer, FileSystem& fs) {
  check(optimizer == nullptr || &optimizer->store() == &store,
        "{}: the optimizer must belong to the store that is saved; it belongs to another one", path);
  const std::string tensors = encode_tensors(store);
  const std::array record = {
      StoreRecord{.number_size = size_of(store.dtype()), .steps = optimizer == nullptr ? 0 : optimizer->steps()}};
  std::vector<ContainerSection> sections = {{"store", std::as_bytes(std::span(record))},
                                            {"tensors", text_bytes(tensors)}};
  std::vector<ContainerSection> numbers = number_sections(store, optimizer);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    require_loadable(path, numbers[i], store.dtype(), i == 0 || optimizer->moments()[i - 1].may_be_negative);
  std::ranges::move(numbers, std::back_inserter(sections));
  std::set<std::string> names;
  for (const ContainerSection& section : sections) {
    check<CheckpointError>(names.insert(section.name).second,
                           "{}: a moment must not have the name of another section; got {}", path, section.name);
  }
  write_container(fs, path, sections);
}

StoreRecord read_record(const ContainerReader& file) {
  std::array<StoreRecord, 1> record;
  file.read("store", std::as_writable_bytes(std::span(record)));
  const auto [number_size, steps] = record[0];
  check<CorruptFile>((number_size == 4 || number_size == 8) && steps >= 0,
                     "{}: a number in section store is out of range", file.path());
  return record[0];
}

// Throws unless the file's parameters are those of the store.
void check_parameters(const ContainerReader& file, ParameterStore& store) {
  if (!store.sealed()) store.assign_offsets();
  if (file.has("store")) {
    const std::int64_t size = read_record(file).number_size;
    check<CorruptFile>(size == size_of(store.dtype()),
                       "{}: holds {} numbers, but the store has {}; create the store as {}", file.path(),
                       size == 4 ? "float32" : "float64", to_string(store.dtype()),
                       size == 4 ? "ParameterStore(DType::float32)" : "ParameterStore(DType::float64)");
  }
  check_tensors(file, store);
}

void check_moment_sections(const ContainerReader& file, const Optimizer& optimizer) {
  std::vector<std::string> expected = {"store", "tensors", "values"}, present;
  for (const MomentLayout& moment : optimizer.moment_layouts()) expected.push_back(moment.name);
  for (const auto& entry : file.entries()) present.push_back(entry.name);
  check<CorruptFile>(present == expected,
                     "{}: must have the sections {} for this optimizer; it has {}; load it with the optimizer that was "
                     "saved, or without one",
                     file.path(), fmt::join(expected, ", "), fmt::join(present, ", "));
  check_moments(file, optimizer);
}

}  // namespace

void save_parameters(const std::string& path, const ParameterStore& store, const Optimizer& optimizer, FileSystem& fs) {
  save(path, store, &optimizer, fs);
}
void save_parameters(const std::string& path, const ParameterStore& store, FileSystem& fs) {
  save(path, store, nullptr, fs);
}

void load_parameters(const std::string& path, ParameterStore& store, Optimizer& optimizer, FileSystem& fs) {
  check(&optimizer.store() == &store,
        "{}: the optimizer must belong to the store that is loaded; it belongs to another one", path);
  const ContainerReader file(path, fs);
  check_parameters(file, store);
  check_moment_sections(file, optimizer);
  check_numbers(file, optimizer);
  const std::int64_t steps = read_record(file).steps;
  if (!store.sealed()) store.seal_uninitialized();
  optimizer.moments();  // takes its memory before anything is changed
  load_values(file, store);
  load_optimizer(file, steps, optimizer);
}

void load_parameters(const std::string& path, ParameterStore& store, FileSystem& fs) {
  const ContainerReader file(path, fs);
  check_parameters(file, store);
  check_values(file, store.dtype());
  if (!store.sealed()) store.seal_uninitialized();
  load_values(file, store);
}

}  // namespace maki
