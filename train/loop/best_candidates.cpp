#include "train/loop/best_candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace maki {

std::vector<Candidate> best_candidates(const Tensor& logits, std::int64_t row, std::int64_t ids, std::int64_t count) {
  std::vector<double> weights(static_cast<std::size_t>(ids));
  dispatch(logits.dtype(), [&]<class T>() {
    const T* const from = logits.data<T>() + row * logits.shape()[1];
    std::copy_n(from, ids, weights.begin());
  });
  const double most = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  std::vector<std::int32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::int32_t id) { return weights[static_cast<std::size_t>(id)]; });
  order.resize(static_cast<std::size_t>(std::min(count, ids)));
  std::vector<Candidate> candidates;
  for (const std::int32_t id : order) candidates.push_back({id, weights[static_cast<std::size_t>(id)] / sum});
  return candidates;
}

}  // namespace maki
