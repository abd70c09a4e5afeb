#include "nn/low_rank.h"

#include <cmath>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"

namespace maki {
namespace {

constexpr const char *kA = "lora_a", *kB = "lora_b", *kWeight = "weight";

std::string beside(const std::string& name, const char* other) { return name.substr(0, name.rfind('.') + 1) + other; }

// to [out, in] += scale · b [out, r] · a [r, in].
template <class T>
void add_product(std::span<T> to, std::span<const T> b, std::span<const T> a, std::int64_t rank, double scale) {
  const std::int64_t out = static_cast<std::int64_t>(b.size()) / rank, in = static_cast<std::int64_t>(a.size()) / rank;
  parallel_ranges(out, 2 * in * rank, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t col = 0; col < in; ++col) {
        double sum = 0;
        for (std::int64_t k = 0; k < rank; ++k)
          sum += static_cast<double>(b[static_cast<std::size_t>(row * rank + k)]) *
                 static_cast<double>(a[static_cast<std::size_t>(k * in + col)]);
        T& w = to[static_cast<std::size_t>(row * in + col)];
        w = static_cast<T>(static_cast<double>(w) + scale * sum);
      }
    }
  });
}

}  // namespace

LowRankAdapter::LowRankAdapter(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t matrices,
                               const LowRank& options)
    : a(scope.parameter(kA, {options.rank, in}, init::normal(1 / std::sqrt(static_cast<double>(in))), 1)),
      b(scope.parameter(kB, {out, options.rank}, init::constant(0), matrices)),
      scale(options.scale) {
  a.set_multiplied(false);
  b.set_multiplied(false);
}

Tensor LowRankAdapter::operator()(const Tensor& x) const { return linear(maki::scale(linear(x, a), scale), b); }

std::optional<LowRankAdapter> adapter_of(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t matrices) {
  const LowRank* const options = scope.low_rank();
  const bool hidden = matrices > 0;
  if (options == nullptr || !hidden || !options->wanted((scope / kWeight).path())) return std::nullopt;
  check(options->rank >= 1, "adapters: the rank must be at least 1; got {}", options->rank);
  return LowRankAdapter(scope, in, out, matrices, *options);
}

bool is_adapter(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == kA || last == kB;
}

void merge_adapters(const ParameterStore& adapted, double scale, ParameterStore& plain) {
  for (const auto& parameter : adapted.parameters()) {
    if (is_adapter(parameter->name())) continue;
    const Parameter& copy = plain.find(parameter->name());
    const Parameter* const a = adapted.find_or_null(beside(parameter->name(), kA));
    const bool merged = parameter->name().ends_with(kWeight) && a != nullptr;
    dispatch(adapted.dtype(), [&]<class T>() {
      const std::span<const T> from = parameter->value().values<T>();
      const std::span<T> to(plain.values().data<T>() + copy.offset(), from.size());
      std::ranges::copy(from, to.begin());
      if (!merged) return;
      const Parameter& b = adapted.find(beside(parameter->name(), kB));
      add_product<T>(to, b.value().values<T>(), a->value().values<T>(), a->shape()[0], scale);
    });
  }
  plain.mark_changed();
}

}  // namespace maki
