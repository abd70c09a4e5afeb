#include "nn/generate/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/core/check.h"

namespace maki {

TokenLogProbabilities log_probabilities(const Tensor& logits, std::int32_t id, std::int64_t count) {
  check(id >= 0 && id < logits.numel() && count >= 0,
        "log-probabilities: the id must be in [0, {}), and the count must not be negative; got {} and {}",
        logits.numel(), id, count);
  std::vector<double> values(static_cast<std::size_t>(logits.numel()));
  dispatch(logits.dtype(), [&]<class T>() { std::ranges::copy(logits.values<T>(), values.begin()); });
  const double largest = *std::ranges::max_element(values);
  double sum = 0;
  for (double& value : values) {
    value = value == largest ? 0 : value - largest;  // Inf − Inf would be NaN
    sum += std::exp(value);
  }
  const auto entry = [&](std::int32_t i) {
    return LogProbability{i, values[static_cast<std::size_t>(i)] - std::log(sum)};
  };
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, static_cast<std::int64_t>(order.size())));
  std::ranges::partial_sort(order, order.begin() + kept, [&](std::int32_t a, std::int32_t b) {
    const double x = values[static_cast<std::size_t>(a)], y = values[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  TokenLogProbabilities result{.drawn = entry(id), .top = {}};
  for (std::ptrdiff_t i = 0; i < kept; ++i) result.top.push_back(entry(order[static_cast<std::size_t>(i)]));
  return result;
}

}  // namespace maki
