#include "train/loop/team/step_cost.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/core/sum_tree.h"
#include "optim/clip.h"
#include "train/loop/team/gradient_sum.h"

namespace maki {
namespace {

constexpr std::int64_t divided_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

// What a rank has of a step.
struct Share {
  std::int64_t micro_batches, subtrees, gradients;
  std::int64_t part;  // of the flat gradient
};

std::vector<Share> shares(const StepWork& work, int ranks) {
  const Bounds micro = even_bounds(work.micro_batches, ranks), parts = even_bounds(work.trained, ranks);
  std::vector<Share> list;
  std::int64_t begin = 0;
  for (std::size_t rank = 0; rank + 1 < micro.size(); ++rank) {
    // A part ends with a block of the update, which is one of the norm as well.
    const std::int64_t bound = parts[rank + 1], end = bound == work.trained ? bound : bound / kNormBlock * kNormBlock;
    Share share{.micro_batches = micro[rank + 1] - micro[rank], .subtrees = 0, .gradients = 1, .part = end - begin};
    begin = end;
    SumTree<char> tree;
    tree.begin(micro[rank]);
    for (std::int64_t i = 0; i < share.micro_batches; ++i) {
      // The roots so far, the next gradient, and the one that takes its place in the store; but the only gradient of a
      // rank stays where it is.
      if (share.micro_batches > 1) share.gradients = std::max(share.gradients, std::ssize(tree.roots()) + 2);
      tree.push(' ', [](char, char) { return ' '; });
    }
    share.subtrees = std::ssize(tree.roots());
    list.push_back(share);
  }
  return list;
}

// The chunks in which the parts of the roots are received.
struct Chunks {
  std::int64_t elements, subtrees = 0, longest_part = 0, messages = 0;  // to all ranks, for each subtree

  Chunks(const std::vector<Share>& shares, std::int64_t bytes_of_one) {
    for (const Share& share : shares) {
      subtrees += share.subtrees;
      longest_part = std::max(longest_part, share.part);
    }
    elements = received_elements(bytes_of_one, subtrees, longest_part);
    for (const Share& share : shares) messages += count(share.part);
  }
  std::int64_t count(std::int64_t part) const { return divided_up(part, elements); }
};

}  // namespace

// Whatever a rank sends in a step, it sends to each of the others: its roots, in chunks; the sums of squares of its
// part, for the norm; the values that it has updated; a flag, whether it goes on; and the losses of its micro-batches.
// Rank 0 begins with an order, for which the others wait. Nobody has the gradient before the roots of all have arrived,
// so the slowest counts twice: of those who send roots, and of those who send values.
StepCost step_cost(const StepWork& work, std::int64_t ranks, const NetworkSpeed& speed) {
  constexpr std::int64_t kOrder = 40, kFlag = 1, kLoss = 8, kSquares = 8;  // bytes
  const std::vector<Share> all = shares(work, static_cast<int>(ranks));
  const Chunks chunks(all, work.bytes_of_one);
  const std::int64_t others = ranks - 1;
  const auto seconds = [&](std::int64_t messages, std::int64_t bytes) {
    return speed.seconds_per_message * static_cast<double>(messages) +
           speed.seconds_per_byte * static_cast<double>(bytes);
  };
  StepCost cost;
  std::int64_t orders = others;  // of rank 0, which is the first
  double roots = 0, rest = 0;
  for (const Share& own : all) {
    const std::int64_t messages = own.subtrees * (chunks.messages - chunks.count(own.part)),
                       bytes = own.subtrees * work.bytes_of_one * (work.trained - own.part);
    const std::int64_t small = others * (1 + (own.micro_batches > 0) + 2 * (own.part > 0));
    const std::int64_t values = others * (kFlag + kLoss * own.micro_batches +
                                          kSquares * divided_up(own.part, kNormBlock) + work.bytes_of_one * own.part);
    roots = std::max(roots, seconds(messages, bytes));
    rest = std::max(rest, seconds(small, values));
    cost.micro_batches = std::max(cost.micro_batches, own.micro_batches);
    cost.gradients = std::max({cost.gradients, own.gradients, own.subtrees});
    cost.messages = std::max(cost.messages, messages + small + orders);
    cost.bytes = std::max(cost.bytes, bytes + values + kOrder * std::exchange(orders, 0));
  }
  cost.compute_seconds = static_cast<double>(cost.micro_batches) * work.seconds_per_micro_batch +
                         work.seconds_per_update / static_cast<double>(ranks);
  if (ranks == 1) return cost;
  const std::int64_t under_way = std::min<std::int64_t>(2, chunks.count(chunks.longest_part));
  cost.buffer_bytes = work.bytes_of_one * under_way * chunks.elements * chunks.subtrees;
  cost.network_seconds = seconds(others, others * kOrder) + roots + rest;
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
