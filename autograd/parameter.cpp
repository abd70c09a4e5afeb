#include "autograd/parameter.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/int8.h"

namespace maki {
namespace {

// Sets elements [begin, end) of a flat tensor to zero.
void clear(Tensor& flat, std::int64_t begin, std::int64_t end) {
  dispatch(flat.dtype(), [&]<class T>() { std::fill(flat.data<T>() + begin, flat.data<T>() + end, T{0}); });
}

// A parameter's part of a flat tensor. Sets the padding behind it to zero, because blocks from the pool are
// uninitialised.
Tensor part_of(Tensor& flat, std::int64_t offset, const Shape& shape) {
  const std::int64_t end = offset + shape.numel();
  clear(flat, end, offset + padded_numel(shape.numel(), flat.dtype()));
  return flat.slice_flat(offset, shape);
}

// A gradient by rows with all its rows.
Tensor all_rows(const RowGradient& gradient, const Shape& shape) {
  Tensor all = zeros(shape, gradient.values.dtype());
  const std::int64_t cols = shape[1];
  dispatch(all.dtype(), [&]<class T>() {
    const T* row = gradient.values.data<T>();
    for (const std::int32_t r : gradient.rows.values<std::int32_t>()) {
      std::copy_n(row, cols, all.data<T>() + r * cols);
      row += cols;
    }
  });
  return all;
}

}  // namespace

std::int64_t padded_numel(std::int64_t elements, DType dtype) {
  const std::int64_t line = 64 / size_of(dtype);
  return ceil_div(elements, line) * line;
}

Initializer init::constant(double value) {
  return [value](const RandomStream&, std::uint64_t) { return value; };
}
Initializer init::normal(double std) {
  return [std](const RandomStream& stream, std::uint64_t index) { return std * stream.normal(index); };
}
Initializer init::uniform(double bound) {
  return [bound](const RandomStream& stream, std::uint64_t index) { return bound * (2 * stream.uniform(index) - 1); };
}
Initializer init::values(const Tensor& source) {
  return [source](const RandomStream&, std::uint64_t index) { return source.at(static_cast<std::int64_t>(index)); };
}

Parameter::Parameter(ParameterStore& store, std::string name, const Shape& shape, ParamGroup group,
                     std::int64_t matrices, Initializer init)
    : store_(store),
      name_(std::move(name)),
      shape_(shape),
      group_(group),
      matrices_(matrices),
      init_(std::move(init)) {}

const Tensor& Parameter::value() const {
  check(static_cast<bool>(value_), "parameter {}: has no value before its store is sealed; call seal()", name_);
  return value_;
}

Tensor Parameter::gradient() const {
  check(trainable(), "parameter {}: is frozen and has no gradient", name_);
  if (!written_) return zeros(shape_, store_.dtype());
  return group_ == ParamGroup::rows ? all_rows(row_gradient(), shape_) : gradient_;
}

Int8Matrix Parameter::int8_sizes() const {
  const bool is_matrix = shape_.rank() == 2 && multiplied_ && group_ != ParamGroup::rows;
  return is_matrix ? Int8Matrix{.out = shape_[0], .in = shape_[1]} : Int8Matrix{};
}

std::uint64_t Parameter::version() const { return store_.version(); }

static_assert(kParamGroups.front() == ParamGroup::decay);  // so an offset in the flat block is one in the rounded copy
const BFloat16* Parameter::rounded() const {
  const BFloat16* const copy = store_.rounded_values();
  return copy != nullptr && group_ == ParamGroup::decay ? copy + offset_ : nullptr;
}

const Int8Matrix* Parameter::int8() const {
  return store_.has_int8_values() && int8_.blocks != nullptr ? &int8_ : nullptr;
}

void Parameter::clear_store_gradients() const noexcept { store_.clear_gradients(); }

ParameterStore::ParameterStore(DType dtype) : dtype_(dtype) {
  check(dtype != DType::int32, "parameters: must be float32 or float64; got int32");
}

void ParameterStore::require_sealed() const { check(sealed(), "parameters: the store is not sealed yet; call seal()"); }

Parameter& ParameterStore::add(const std::string& name, const Shape& shape, Initializer init,
                               std::optional<ParamGroup> group, std::int64_t matrices) {
  check(!sealed(), "parameters: no parameter can be added to a sealed store; got {}", name);
  check(!name.empty(), "parameters: a name must not be empty");
  check(!by_name_.contains(name), "parameters: names must be unique; got {} twice", name);
  check(static_cast<bool>(init), "parameters: parameter {} needs an initializer; got an empty function", name);
  check(matrices == 0 || (matrices > 0 && shape.rank() == 2 && shape[0] % matrices == 0),
        "parameters: stacked matrices must divide the rows of a shape with two axes; got {} of {} in parameter {}",
        matrices, shape, name);
  check(group != ParamGroup::rows || shape.rank() == 2,
        "parameters: a table whose rows are updated alone must be [R, C]; got {} of shape {}", name, shape);
  const ParamGroup by_rank = shape.rank() >= 2 ? ParamGroup::decay : ParamGroup::no_decay;
  parameters_.push_back(std::unique_ptr<Parameter>(
      new Parameter(*this, name, shape, group.value_or(by_rank), matrices, std::move(init))));
  by_name_.emplace(name, parameters_.back().get());
  return *parameters_.back();
}

void ParameterStore::freeze(Parameter& parameter) {
  check(&parameter.store_ == this, "parameters: parameter {} belongs to another store, which must freeze it",
        parameter.name_);
  check(!sealed(), "parameters: parameter {} cannot be frozen after seal(); freeze it before", parameter.name_);
  parameter.group_ = ParamGroup::frozen;
}

void ParameterStore::assign_offsets() {
  std::int64_t size = 0;
  for (const ParamGroup group : kParamGroups) {
    FlatRange& range = ranges_[static_cast<std::size_t>(group)];
    range.begin = size;
    for (const auto& parameter : parameters_) {
      if (parameter->group_ != group) continue;
      parameter->offset_ = size;
      size += padded_numel(parameter->shape_.numel(), dtype_);
      check(size < Shape::kMaxElements,
            "parameters: a store must hold fewer than 2^58 elements; this is exceeded by parameter {} of shape {}",
            parameter->name_, parameter->shape_);
    }
    range.end = size;
  }
}

void ParameterStore::seal(std::uint64_t seed) {
  seal_with({}, [&](Parameter& parameter) { draw(parameter, seed); });
}

void ParameterStore::seal_uninitialized() {
  seal_with({}, [](Parameter&) {});
}

void ParameterStore::seal_with_values(const Tensor& values) {
  assign_offsets();
  const Shape shape{range(ParamGroup::frozen).end};
  check(values && values.dtype() == dtype_ && values.shape() == shape,
        "parameters: values must be {} of shape {}; got {} of shape {}", to_string(dtype_), shape,
        to_string(values.dtype()), values.shape());
  seal_with(values, [](Parameter&) {});
}

// All or nothing: if anything throws, the store stays unsealed.
void ParameterStore::seal_with(const Tensor& values, const std::function<void(Parameter&)>& draw) {
  check(!sealed(), "parameters: the store is sealed already");
  try {
    take_memory(values);
    for (const auto& parameter : parameters_) draw(*parameter);
  } catch (...) {
    for (const auto& parameter : parameters_) parameter->value_ = parameter->gradient_ = {};
    values_ = gradients_ = {};
    throw;
  }
  for (const auto& parameter : parameters_) parameter->init_ = nullptr;
}

// An exception must not leave a parallel region, so the first one is caught and rethrown after it.
void ParameterStore::draw(Parameter& parameter, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::initialize, parameter.name_);
  std::exception_ptr failure;
  std::mutex mutex;
  dispatch(dtype_, [&]<class T>() {
    T* const data = parameter.value_.data<T>();
    parallel_ranges(parameter.value_.numel(), 64, [&](std::int64_t begin, std::int64_t end) {
      try {
        for (std::int64_t i = begin; i < end; ++i) {
          data[i] = static_cast<T>(parameter.init_(stream, static_cast<std::uint64_t>(i)));
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
      }
    });
  });
  if (failure != nullptr) std::rethrow_exception(failure);
}

// Allocates values and gradients, uninitialised except for the padding, and binds the parameters to their parts.
// Uses the given block for the values, or a new one if it is empty.
void ParameterStore::take_memory(const Tensor& values) {
  assign_offsets();
  values_ = values ? values : empty(Shape{range(ParamGroup::frozen).end}, dtype_);
  for (const auto& parameter : parameters_) {
    Tensor value = part_of(values_, parameter->offset_, parameter->shape_);
    value.set_link({.value_of = parameter.get(), .frozen = !parameter->trainable()});
    parameter->value_ = value;
  }
  bind_gradients(empty(Shape{trainable().size()}, dtype_));
}

Parameter* ParameterStore::find_or_null(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found != by_name_.end() ? found->second : nullptr;
}

Parameter& ParameterStore::find(std::string_view name) const {
  if (Parameter* const found = find_or_null(name)) return *found;
  std::vector<std::string> names;
  for (const auto& parameter : parameters_) names.push_back(parameter->name_);
  fail("parameters: there is no parameter {}{}", truncate_for_message(name), nearest_hint(name, names));
}

std::int64_t ParameterStore::numel() const {
  std::int64_t total = 0;
  for (const auto& parameter : parameters_) total += parameter->shape_.numel();
  return total;
}

std::int64_t ParameterStore::multiplied_numel() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters_) sum += parameter->multiplied_ ? parameter->shape_.numel() : 0;
  return sum;
}

Tensor& ParameterStore::values() {
  require_sealed();
  return values_;
}

const Tensor& ParameterStore::values() const {
  require_sealed();
  return values_;
}

// Makes `flat` the gradients of the store, none of which counts as written.
void ParameterStore::bind_gradients(Tensor flat) {
  gradients_ = std::move(flat);
  for (const auto& parameter : parameters_) {
    if (!parameter->has_flat_gradient()) continue;
    parameter->gradient_ = part_of(gradients_, parameter->offset_, parameter->shape_);
    parameter->written_ = false;
  }
}

Tensor& ParameterStore::gradients(FlatRange range) {
  require_sealed();
  for (const auto& parameter : parameters_) {
    const std::int64_t begin = parameter->offset_, end = begin + parameter->shape_.numel();
    if (!parameter->has_flat_gradient() || parameter->written_ || begin >= range.end || end <= range.begin) continue;
    clear(gradients_, begin, end);
    parameter->written_ = true;
  }
  return gradients_;
}

void ParameterStore::clear_gradients(std::int64_t index) noexcept {
  for (const auto& parameter : parameters_) {
    parameter->written_ = false;
    parameter->row_gradients_.begin(index);
  }
}

Tensor ParameterStore::take_gradients() {
  Tensor taken = gradients();
  bind_gradients(empty_like(taken));
  return taken;
}

void ParameterStore::set_gradients(const Tensor& gradients) {
  require_sealed();
  check(gradients.dtype() == dtype_ && gradients.shape() == gradients_.shape(),
        "parameters: a flat gradient must be {} of shape {}; got {} of shape {}", to_string(dtype_), gradients_.shape(),
        to_string(gradients.dtype()), gradients.shape());
  bind_gradients(gradients);
  for (const auto& parameter : parameters_) {
    if (parameter->has_flat_gradient()) parameter->written_ = true;
  }
}

void ParameterStore::keep_rounded_values() {
  require_sealed();
  check(dtype_ == DType::float32, "parameters: only float32 values can have a rounded copy; these are {}",
        to_string(dtype_));
  rounded_ = Storage(rounded_values_bytes());
  rounded_version_ = 0;  // of no values: the memory is uninitialised
}

bool ParameterStore::rounded_values_pay() { return kernels::bf16_unit() != kernels::Bf16Unit::floats; }

std::int64_t ParameterStore::rounded_values_bytes() const {
  return range(ParamGroup::decay).size() * std::int64_t{sizeof(BFloat16)};
}

BFloat16* ParameterStore::rounded_memory() const {
  return rounded_ ? reinterpret_cast<BFloat16*>(rounded_.data()) : nullptr;
}

void ParameterStore::keep_int8_values() {
  require_sealed();
  check(dtype_ == DType::float32, "parameters: only float32 values can be rounded to 8 bits; these are {}",
        to_string(dtype_));
  int8_version_ = 0;
  int8_ = {};
  Storage copy(int8_values_bytes());
  auto* blocks = reinterpret_cast<Int8Block*>(copy.data());
  for (const auto& parameter : parameters_) {
    Int8Matrix& matrix = parameter->int8_ = parameter->int8_sizes();
    if (matrix.bytes() == 0) continue;
    check(kernels::round_to_int8(parameter->value().data<float>(), matrix, blocks),
          "parameters: only finite numbers can be rounded to 8 bits; parameter {} has others", parameter->name());
    matrix.blocks = blocks;
    blocks += matrix.panels() * matrix.groups();
  }
  int8_ = std::move(copy);
  int8_version_ = version_;
}

std::int64_t ParameterStore::int8_values_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& parameter : parameters_) bytes += parameter->int8_sizes().bytes();
  return bytes;
}

}  // namespace maki
