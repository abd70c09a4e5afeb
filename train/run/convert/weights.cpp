#include "train/run/convert/weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/text/glob.h"

namespace maki {
namespace {

Parameter* find_parameter(const ParameterStore& store, const std::string& name) {
  const auto found =
      std::ranges::find(store.parameters(), name, [](const auto& each) -> const std::string& { return each->name(); });
  return found == store.parameters().end() ? nullptr : found->get();
}

// Rows and columns of one part of a parameter; a vector is one column.
struct Extent {
  std::int64_t rows, cols;
};

Extent part_of(const Shape& shape, const NamePair& name) {
  const std::int64_t rows = shape[0] / name.parts * name.count;
  return {rows, rows == 0 ? 0 : shape.numel() / shape[0]};
}

// The elements of a parameter before a part of it.
std::int64_t begin_of(const Extent& part, const NamePair& name) {
  return part.rows / name.count * name.part * part.cols;
}

std::vector<std::int64_t> stored_shape(const Shape& shape, const NamePair& name) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[0] = extents[0] / name.parts * name.count;
  if (name.form == Form::transposed) std::swap(extents[0], extents[1]);
  return extents;
}

const StoredTensor& require_stored(const StoredTensors& stored, const NamePair& name, const Shape& shape,
                                   const ReadingRules& rules) {
  const StoredTensor* const tensor = find_stored(stored, name.stored, rules);
  const std::string& path = stored.path;
  check<CheckpointError>(tensor != nullptr,
                         "{}: must contain the tensor {}, because the configuration of the model has it", path,
                         name.stored);
  std::vector<std::int64_t> wanted = stored_shape(shape, name), found = tensor->shape;
  if (name.by_token && found.size() == wanted.size()) found[0] = std::min(found[0], wanted[0]);
  check<CheckpointError>(found == wanted, "{}: tensor {}: must have the shape {}; got {}", path, tensor->name,
                         shape_text(wanted), shape_text(tensor->shape));
  check<CheckpointError>(is_readable(tensor->type), "{}: tensor {}: must be of type F16, BF16, F32 or F64; got {}",
                         path, tensor->name, to_string(tensor->type));
  return *tensor;
}

template <class T>
void transpose(std::span<const T> from, std::int64_t rows, std::int64_t cols, T* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) to[j * rows + i] = from[static_cast<std::size_t>(i * cols + j)];
  }
}

// Loads one tensor into its part of the parameter at `to`.
template <class T>
void load_part(const StoredTensor& tensor, const NamePair& name, const Extent& part, T* to) {
  const auto count = static_cast<std::size_t>(part.rows * part.cols);  // without rows that pad the vocabulary
  T* const place = to + begin_of(part, name);
  if (name.form == Form::transposed) {
    std::vector<T> values(count);
    tensor.read(std::span<T>(values));
    transpose<T>(values, part.cols, part.rows, place);
  } else {
    tensor.read(std::span<T>(place, count));
  }
  const bool finite = std::all_of(place, place + count, [](T x) { return std::isfinite(x); });
  check<CheckpointError>(finite, "{}: tensor {}: contains a value that is not finite", tensor.file->path(),
                         tensor.name);
}

void require_all_known(const StoredTensors& stored, const std::set<std::string>& used, const ReadingRules& rules) {
  for (const StoredTensor& tensor : stored.tensors) {
    const bool ignored = std::ranges::any_of(
        rules.ignored, [&](const std::string& pattern) { return matches_glob(pattern, tensor.name); });
    check<CheckpointError>(ignored || used.contains(tensor.name),
                           "{}: contains the tensor {}, which a model of this configuration does not have", stored.path,
                           truncate_for_message(tensor.name));
  }
}

// Moves the rows 0, D/2, 1, D/2 + 1, … of each head of D rows together.
template <class T>
void pair_rows(const T* from, const Extent& part, std::int64_t head, T* to) {
  const std::int64_t half = head / 2;
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const std::int64_t in_head = row % head, source = row - in_head + (in_head % 2) * half + in_head / 2;
    std::copy_n(from + source * part.cols, part.cols, to + row * part.cols);
  }
}

template <class T>
std::vector<T> part_values(const Parameter& parameter, const NamePair& name, const WritingRules& rules) {
  const Extent part = part_of(parameter.shape(), name);
  const auto count = static_cast<std::size_t>(part.rows * part.cols);
  const T* const from = parameter.value().data<T>() + begin_of(part, name);
  std::vector<T> values(from, from + count);
  if (name.form == Form::transposed) transpose<T>({from, count}, part.rows, part.cols, values.data());
  if (name.form == Form::rotary_pairs) pair_rows(from, part, rules.head_size, values.data());
  return values;
}

// Numbers beyond the range of the type would be written as infinite.
template <class T>
void require_range(const std::vector<T>& values, const NamePair& name, NumberType type) {
  if (std::is_same_v<T, float> || type != NumberType::f32) return;
  const auto large = std::ranges::find_if(values, [](T x) { return !std::isfinite(static_cast<float>(x)); });
  check(large == values.end(),
        "export: the format has float32, which cannot hold the weight {} of {}; choose `format` safetensors",
        large == values.end() ? 0 : *large, name.parameter);
}

template <class T>
void append(std::vector<OwnedTensor>& list, const NamePair& name, std::vector<std::int64_t> shape,
            std::vector<T> values, const WritingRules& rules) {
  if (name.by_token && rules.token_rows > 0) {
    shape[0] = rules.token_rows;
    values.resize(static_cast<std::size_t>(shape[0] * shape[1]));
  }
  require_range(values, name, rules.type);
  std::vector<std::byte> bytes(values.size() * bits_of(rules.type) / 8);
  write_numbers<T>(rules.type, values, bytes);
  list.push_back({name.stored, rules.type, std::move(shape), std::move(bytes)});
}

// The bias of a layer without one: as many zeros as its weight has rows.
template <class T>
void append_zero_bias(std::vector<OwnedTensor>& list, const ParameterStore& store, const NamePair& name,
                      const WritingRules& rules) {
  constexpr std::string_view kBias = "bias";
  if (!rules.zero_biases || !name.parameter.ends_with(kBias)) return;
  std::string weight = name.parameter;
  weight.replace(weight.size() - kBias.size(), kBias.size(), "weight");
  const std::int64_t rows = store.find(weight).shape()[0] / name.parts * name.count;
  append(list, name, {rows}, std::vector<T>(static_cast<std::size_t>(rows)), rules);
}

}  // namespace

const StoredTensor* find_stored(const StoredTensors& stored, const std::string& name, const ReadingRules& rules) {
  if (const StoredTensor* const tensor = stored.find(name)) return tensor;
  const std::string& prefix = rules.optional_prefix;
  return !prefix.empty() && name.starts_with(prefix) ? stored.find(name.substr(prefix.size())) : nullptr;
}

std::int64_t check_weights(const StoredTensors& stored, const std::vector<NamePair>& names, const ReadingRules& rules,
                           const ParameterStore& store) {
  std::set<std::string> used, found;
  std::int64_t padding = 0;
  for (const NamePair& name : names) {
    const Parameter* const parameter = find_parameter(store, name.parameter);
    if (parameter == nullptr) continue;
    const StoredTensor& tensor = require_stored(stored, name, parameter->shape(), rules);
    if (name.by_token) padding = std::max(padding, tensor.shape[0] - parameter->shape()[0]);
    used.insert(tensor.name);
    found.insert(name.parameter);
  }
  for (const auto& parameter : store.parameters()) {
    check(found.contains(parameter->name()), "import: this format has no tensor for the parameter {}",
          parameter->name());
  }
  require_all_known(stored, used, rules);
  return padding;
}

void load_weights(const StoredTensors& stored, const std::vector<NamePair>& names, const ReadingRules& rules,
                  ParameterStore& store) {
  for (const NamePair& name : names) {
    const Parameter* const parameter = find_parameter(store, name.parameter);
    if (parameter == nullptr) continue;
    const Shape& shape = parameter->shape();
    const StoredTensor& tensor = require_stored(stored, name, shape, rules);
    dispatch(store.dtype(), [&]<class T>() {
      load_part(tensor, name, part_of(shape, name), store.values().data<T>() + parameter->offset());
    });
  }
  store.mark_changed();
}

std::vector<OwnedTensor> collect_weights(const ParameterStore& store, const std::vector<NamePair>& names,
                                         const WritingRules& rules) {
  std::vector<OwnedTensor> list;
  std::set<std::string> written;
  for (const NamePair& name : names) {
    const Parameter* const parameter = find_parameter(store, name.parameter);
    dispatch(store.dtype(), [&]<class T>() {
      if (parameter == nullptr) return append_zero_bias<T>(list, store, name, rules);
      append(list, name, stored_shape(parameter->shape(), name), part_values<T>(*parameter, name, rules), rules);
    });
    written.insert(name.parameter);
  }
  for (const auto& parameter : store.parameters()) {
    check(written.contains(parameter->name()), "export: the format has no tensor for the parameter {}",
          parameter->name());
  }
  return list;
}

std::vector<NamePair> own_names(const ParameterStore& store) {
  std::vector<NamePair> names;
  for (const auto& parameter : store.parameters()) names.push_back({parameter->name(), parameter->name()});
  return names;
}

}  // namespace maki
