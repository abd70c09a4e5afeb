#include "data/dataset/continued_order.h"

#include "autograd/core/philox.h"

namespace maki {
namespace {

std::int64_t first_token(std::int64_t tokens, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::shuffle, "continued");
  return static_cast<std::int64_t>(stream.below(0, static_cast<std::uint64_t>(tokens)));
}

}  // namespace

ContinuedOrder::ContinuedOrder(std::int64_t tokens, std::int64_t block_size, std::int64_t rows, std::uint64_t seed)
    : tokens_(tokens), block_size_(block_size), rows_(rows), first_(first_token(tokens, seed)) {}

// ⌊row · n / R⌋ is computed without the product, which can exceed 64 bits; so is s · T mod n.
std::int64_t ContinuedOrder::start(std::int64_t step, std::int64_t row) const {
  const std::int64_t whole = tokens_ / rows_, rest = tokens_ % rows_;
  const std::int64_t begin = row * whole + row * rest / rows_;
  const std::int64_t read = step % tokens_ * (block_size_ % tokens_) % tokens_;
  return (first_ + begin + read) % tokens_;
}

double ContinuedOrder::epochs(std::int64_t steps) const {
  return static_cast<double>(steps) * static_cast<double>(rows_ * block_size_) / static_cast<double>(tokens_);
}

}  // namespace maki
