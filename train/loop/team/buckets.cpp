#include "train/loop/team/buckets.h"

#include <algorithm>

#include "optim/clip.h"

namespace maki {

FlatRange gradients_of_layers(const Optimizer& optimizer) {
  if (!optimizer.is_elementwise()) return {};
  const ParameterStore& store = optimizer.store();
  std::int64_t begin = store.range(ParamGroup::decay).end;
  const std::int64_t end = begin / kNormBlock * kNormBlock;
  for (const auto& parameter : store.parameters()) {
    if (parameter->group() == ParamGroup::decay && parameter->matrices() > 0)
      begin = std::min(begin, parameter->offset());
  }
  begin = (begin + kNormBlock - 1) / kNormBlock * kNormBlock;
  return begin < end ? FlatRange{begin, end} : FlatRange{};
}

std::vector<FlatRange> exchange_buckets(FlatRange layers, std::int64_t trained, std::int64_t bytes_of_one, int ranks) {
  constexpr std::int64_t kMessage = 1 << 19;  // bytes to each rank, which take much longer than the latency
  constexpr std::int64_t kMost = 8;           // of the layers; the exchange of the last one is what nothing hides
  const std::int64_t count = std::min(kMost, layers.size() * bytes_of_one / (kMessage * ranks));
  if (count < 2) return {{0, trained}};
  std::vector<FlatRange> buckets = even_ranges(layers, static_cast<int>(count));
  std::ranges::reverse(buckets);
  if (layers.begin > 0) buckets.push_back({0, layers.begin});
  if (layers.end < trained) buckets.push_back({layers.end, trained});
  return buckets;
}

}  // namespace maki
