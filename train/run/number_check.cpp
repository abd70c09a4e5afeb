#include "train/run/number_check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "data/io/error.h"
#include "train/run/checkpoint.h"
#include "train/run/memory_section.h"

namespace maki {
namespace {

constexpr std::size_t kTensorAlignment = 64;  // bytes, as in a ParameterStore and in the moments of an Optimizer

// Works on the bits and without branches, so that compilers vectorize it: 0.06 ms for 3 MB, where comparisons take
// 0.5 ms. Adding 1 to the exponent of an infinity or NaN carries into the sign bit. A negative number keeps its sign
// bit when 1 is subtracted from its bits; −0 does not.
template <class T>
bool bits_are_valid(Bytes piece, bool may_be_negative) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1), kExponentUnit = kSign - kInfinity;
  const Bits refused_sign = may_be_negative ? 0 : kSign;
  Bits bad = 0;
  for (std::size_t i = 0; i < piece.size() / sizeof(T); ++i) {
    Bits bits;
    std::memcpy(&bits, piece.data() + i * sizeof(T), sizeof(T));
    bad |= ((bits & ~kSign) + kExponentUnit) | (bits & (bits - 1) & refused_sign);
  }
  return (bad & kSign) == 0;
}

}  // namespace

bool numbers_are_valid(Bytes numbers, DType dtype, bool may_be_negative) {
  return dispatch(dtype, [&]<class T>() { return bits_are_valid<T>(numbers, may_be_negative); });
}
const char* invalid_number(bool may_be_negative) {
  return may_be_negative ? "a number that is not finite" : "a number that is negative or not finite";
}

NumberCheck::NumberCheck(const ContainerReader& file, DType dtype)
    : file_(file), section_("values"), dtype_(dtype), may_be_negative_(true) {
  for (const TensorEntry& entry : read_tensors(file)) add_gap(entry.name, entry.offset + entry.shape.numel());
}

NumberCheck::NumberCheck(const ContainerReader& file, DType dtype, const MomentLayout& moment)
    : file_(file), section_(moment.name), dtype_(dtype), may_be_negative_(moment.may_be_negative) {
  for (const auto& part : moment.parts) add_gap(part.parameter->name(), part.offset + part.shape.numel());
}

NumberCheck::NumberCheck(const ContainerReader& file, DType dtype, std::string section)
    : file_(file), section_(std::move(section)), dtype_(dtype), may_be_negative_(true) {}

// `end`: the first element behind the tensor.
void NumberCheck::add_gap(const std::string& tensor, std::int64_t end) {
  const std::size_t begin = static_cast<std::size_t>(end) * static_cast<std::size_t>(size_of(dtype_));
  gaps_.push_back({tensor, begin, (begin + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment});
}

void NumberCheck::add(Bytes piece) {
  check<CorruptFile>(numbers_are_valid(piece, dtype_, may_be_negative_), "{}: section {} contains {}", file_.path(),
                     section_, invalid_number(may_be_negative_));
  for (const Gap& gap : gaps_) {
    const std::size_t begin = std::max(gap.begin, at_), end = std::min(gap.end, at_ + piece.size());
    if (begin >= end) continue;
    const Bytes bytes = piece.subspan(begin - at_, end - begin);
    const bool zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    check<CorruptFile>(zero, "{}: section {}: the padding after {} must be zero", file_.path(), section_, gap.tensor);
  }
  at_ += piece.size();
}

void check_values(const ContainerReader& file, DType dtype) {
  NumberCheck numbers(file, dtype);
  file.scan("values", [&](Bytes piece) { numbers.add(piece); });
}

void check_numbers(const ContainerReader& file, const Optimizer& optimizer, const CarriedLayout& carried) {
  const DType dtype = optimizer.store().dtype();
  std::map<std::string, NumberCheck> checks = {{"values", NumberCheck(file, dtype)}};
  for (const MomentLayout& moment : optimizer.moment_layouts())
    checks.emplace(moment.name, NumberCheck(file, dtype, moment));
  if (carried.any()) checks.emplace(kMemorySection, NumberCheck(file, carried.dtype(), kMemorySection));
  file.verify([&](const std::string& section, Bytes piece) {
    if (const auto found = checks.find(section); found != checks.end()) found->second.add(piece);
  });
}

}  // namespace maki
