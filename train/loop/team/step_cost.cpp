#include "train/loop/team/step_cost.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/core/sum_tree.h"
#include "optim/clip.h"
#include "train/loop/team/buckets.h"
#include "train/loop/team/range_sum.h"

namespace maki {
namespace {

constexpr std::int64_t divided_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

// A share of the time of a micro-batch: the backward pass computes twice as many products as the forward pass.
constexpr double kBackward = 2.0 / 3;

// What a rank has of a step.
struct Share {
  std::int64_t micro_batches, subtrees = 0, gradients = 1;
  std::vector<std::int64_t> parts;  // of each bucket
};

// Beside the roots so far, a rank has memory for the next gradient and, until its last one, for that which takes its
// place in the store.
void count_subtrees(std::int64_t first, Share& share) {
  SumTree<char> tree;
  tree.begin(first);
  for (std::int64_t i = 1; i <= share.micro_batches; ++i) {
    share.gradients =
        std::max<std::int64_t>(share.gradients, std::ssize(tree.roots()) + (i == share.micro_batches ? 1 : 2));
    tree.push(' ', [](char, char) { return ' '; });
  }
  share.subtrees = std::ssize(tree.roots());
}

std::vector<Share> shares(const StepWork& work, const std::vector<FlatRange>& buckets, int ranks) {
  const Bounds micro = even_bounds(work.micro_batches, ranks);
  std::vector<Share> list;
  for (std::size_t rank = 0; rank + 1 < micro.size(); ++rank) {
    Share& share = list.emplace_back();
    share.micro_batches = micro[rank + 1] - micro[rank];
    count_subtrees(micro[rank], share);
  }
  for (const FlatRange& bucket : buckets) {
    const std::vector<FlatRange> parts = even_ranges(bucket, ranks);
    for (std::size_t rank = 0; rank < list.size(); ++rank) list[rank].parts.push_back(parts[rank].size());
  }
  return list;
}

// The chunks in which the parts of the roots are received.
struct Chunks {
  ChunkSize size{};
  std::int64_t subtrees = 0, longest_part = 0, most = 0;  // chunks of all buckets
  std::vector<std::int64_t> messages;                     // of each bucket, to all ranks, for each subtree

  Chunks(const std::vector<Share>& shares, std::int64_t bytes_of_one) : messages(shares.front().parts.size()) {
    for (const Share& share : shares) {
      subtrees += share.subtrees;
      longest_part = std::max(longest_part, std::ranges::max(share.parts));
    }
    size = chunk_size(bytes_of_one, subtrees, longest_part);
    for (std::size_t bucket = 0; bucket < messages.size(); ++bucket) {
      std::int64_t longest = 0;
      for (const Share& share : shares) {
        messages[bucket] += count(share.parts[bucket]);
        longest = std::max(longest, count(share.parts[bucket]));
      }
      most += longest;
    }
  }
  std::int64_t count(std::int64_t part) const { return divided_up(part, size.elements); }
};

// How much later than the backward pass the exchange of the buckets ends, each of which takes some seconds. The pass
// completes the gradients of layers one after the other, at an even rate, and all others at its end.
double exposed_seconds(const StepWork& work, const std::vector<FlatRange>& buckets,
                       const std::vector<double>& seconds) {
  const double pass = kBackward * work.seconds_per_micro_batch;
  std::int64_t complete = 0;
  double end = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const bool of_layers =
        buckets.size() > 1 && work.layers.begin <= buckets[i].begin && buckets[i].end <= work.layers.end;
    if (of_layers) complete += buckets[i].size();
    const double part = of_layers ? static_cast<double>(complete) / static_cast<double>(work.layers.size()) : 1;
    end = std::max(end, part * pass) + seconds[i];
  }
  return end - pass;
}

}  // namespace

StepWork step_work(const TrainableModel& model, std::int64_t micro_batches) {
  return {.trained = std::max<std::int64_t>(1, model.store.trainable().size()),
          .layers = gradients_of_layers(*model.optimizer),
          .bytes_of_one = size_of(model.store.dtype()),
          .micro_batches = micro_batches};
}

// Whatever a rank sends in a step, it sends to each of the others: its roots, in chunks; the sums of squares of its
// parts, for the norm; the values that it has updated; a flag, whether it goes on; and the losses of its micro-batches.
// Rank 0 begins with an order, for which the others wait. Nobody has the gradient before the roots of all have arrived,
// so the slowest counts twice: of those who send roots, and of those who send values.
StepCost step_cost(const StepWork& work, std::int64_t ranks, const NetworkSpeed& speed) {
  constexpr std::int64_t kOrder = 40, kFlag = 1, kLoss = 8, kSquares = 8;  // bytes
  const std::vector<FlatRange> buckets =
      exchange_buckets(work.layers, work.trained, work.bytes_of_one, static_cast<int>(ranks));
  const std::vector<Share> all = shares(work, buckets, static_cast<int>(ranks));
  const Chunks chunks(all, work.bytes_of_one);
  const std::int64_t others = ranks - 1;
  const auto seconds = [&](std::int64_t messages, std::int64_t bytes) {
    return speed.seconds_per_message * static_cast<double>(messages) +
           speed.seconds_per_byte * static_cast<double>(bytes);
  };
  StepCost cost;
  std::int64_t orders = others;  // of rank 0, which is the first
  std::vector<double> roots(buckets.size());
  double rest = 0;
  for (const Share& own : all) {
    std::int64_t messages = others * (1 + (own.micro_batches > 0)),
                 bytes = others * (kFlag + kLoss * own.micro_batches), root_messages = 0, root_bytes = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const std::int64_t part = own.parts[i], count = own.subtrees * (chunks.messages[i] - chunks.count(part)),
                         size = own.subtrees * work.bytes_of_one * (buckets[i].size() - part);
      roots[i] = std::max(roots[i], seconds(count, size));
      root_messages += count;
      root_bytes += size;
      messages += others * 2 * (part > 0);
      bytes += others * (kSquares * divided_up(part, kNormBlock) + work.bytes_of_one * part);
    }
    rest = std::max(rest, seconds(messages, bytes));
    cost.micro_batches = std::max(cost.micro_batches, own.micro_batches);
    cost.gradients = std::max({cost.gradients, own.gradients, own.subtrees});
    cost.messages = std::max(cost.messages, messages + root_messages + orders);
    cost.bytes = std::max(cost.bytes, bytes + root_bytes + kOrder * std::exchange(orders, 0));
  }
  cost.compute_seconds = static_cast<double>(cost.micro_batches) * work.seconds_per_micro_batch +
                         work.seconds_per_update / static_cast<double>(ranks);
  if (ranks == 1) return cost;
  cost.buffer_bytes =
      work.bytes_of_one * std::min(chunks.size.at_once, chunks.most) * chunks.size.elements * chunks.subtrees;
  cost.network_seconds = seconds(others, others * kOrder) + exposed_seconds(work, buckets, roots) + rest;
  return cost;
}

double efficiency(const StepWork& work, std::int64_t ranks, const NetworkSpeed& speed) {
  return step_cost(work, 1, speed).seconds() / (static_cast<double>(ranks) * step_cost(work, ranks, speed).seconds());
}

std::int64_t useful_ranks(const StepWork& work, std::int64_t most, const NetworkSpeed& speed) {
  std::int64_t useful = 1;
  double half = step_cost(work, 1, speed).seconds();
  for (std::int64_t ranks = 2; ranks <= most; ranks *= 2) {
    const double seconds = step_cost(work, ranks, speed).seconds();
    if (seconds <= (1 - kWorthDoubling) * half) useful = ranks;
    half = seconds;
  }
  return useful;
}

}  // namespace maki
