#include "train/loop/team/range_sum.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/core/sum_tree.h"

namespace maki {

std::span<std::byte> bytes_in(Tensor& flat, FlatRange range) {
  return dispatch(flat.dtype(), [&]<class T>() {
    return std::as_writable_bytes(
        flat.values<T>().subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size())));
  });
}

void add_to_left(DType dtype, std::int64_t elements, std::byte* left, const std::byte* right) {
  dispatch(dtype, [&]<class T>() {
    T* const sum = reinterpret_cast<T*>(left);
    const T* const term = reinterpret_cast<const T*>(right);
    parallel_ranges(elements, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum[i] += term[i];
    });
  });
}

ChunkSize chunk_size(std::int64_t bytes_of_one, std::int64_t subtrees, std::int64_t longest_part) {
  constexpr std::int64_t kCached = 2 << 20;   // of all subtrees: as many bytes as stay in a cache until they are added
  constexpr std::int64_t kMessage = 1 << 17;  // bytes of a message that take longer than its latency
  constexpr std::int64_t kMost = 64 << 20;    // of all subtrees: little beside a model that thousands of ranks train
  constexpr std::int64_t kAtOnce = 16 << 20;  // under way, while the backward pass has no time for them
  const std::int64_t bytes = std::max(kCached / subtrees, std::min(kMessage, kMost / subtrees));
  const std::int64_t elements = std::clamp<std::int64_t>(longest_part, 1, bytes / bytes_of_one);
  return {elements, std::max<std::int64_t>(2, kAtOnce / (elements * bytes_of_one * subtrees))};
}

RangeSum::RangeSum(Team& team, const std::vector<std::vector<int>>& levels, const std::vector<Parts>& buckets,
                   DType dtype)
    : team_(team), levels_(levels), buckets_(buckets), dtype_(dtype) {
  for (const std::vector<int>& of_rank : levels) subtrees_ += std::ssize(of_rank);
  std::int64_t longest_of_all = 0;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket)
    longest_of_all = std::max(longest_of_all, longest(bucket));
  size_ = chunk_size(size_of(dtype), subtrees_, longest_of_all);
}

void RangeSum::begin(std::vector<std::byte*> roots, std::byte* sum) {
  roots_ = std::move(roots);
  sum_ = sum;
  bucket_ = 0;
  offset_ = 0;
  chunks_.clear();
}

void RangeSum::advance(std::size_t complete) {
  while (!chunks_.empty() && chunks_.front().messages.arrived()) add_first();
  while (start_next(complete)) {
  }
}

// While a chunk is added, the next ones are under way.
void RangeSum::finish() {
  for (advance(buckets_.size()); !chunks_.empty(); advance(buckets_.size())) {
    chunks_.front().messages.wait();
    add_first();
  }
}

std::int64_t RangeSum::longest(std::size_t bucket) const {
  std::int64_t length = 0;
  for (const FlatRange& range : buckets_[bucket]) length = std::max(length, range.size());
  return length;
}

FlatRange RangeSum::part(int rank, const Chunk& chunk) const {
  const FlatRange range = buckets_[chunk.bucket][static_cast<std::size_t>(rank)];
  const std::int64_t first = std::min(range.begin + chunk.begin, range.end);
  return {first, std::min(first + size_.elements, range.end)};
}

std::span<std::byte> RangeSum::bytes(std::byte* flat, FlatRange range) const {
  return {flat + range.begin * size_of(dtype_), static_cast<std::size_t>(range.size() * size_of(dtype_))};
}

bool RangeSum::start_next(std::size_t complete) {
  if (bucket_ == complete || std::ssize(chunks_) == size_.at_once) return false;
  Chunk& chunk = chunks_.emplace_back(team_, bucket_, offset_, empty({size_.elements * subtrees_}, dtype_));
  offset_ += size_.elements;
  if (offset_ >= longest(bucket_)) {
    ++bucket_;
    offset_ = 0;
  }
  const FlatRange own = part(team_.rank(), chunk);
  std::byte* into = bytes_in(chunk.received, {0, chunk.received.numel()}).data();
  for (int rank = 0; rank < team_.size(); ++rank) {
    for (std::size_t i = 0; i < levels_[static_cast<std::size_t>(rank)].size(); ++i) {
      chunk.terms.push_back(rank == team_.rank() ? bytes(roots_[i], own).data() : into);
      if (rank == team_.rank()) continue;
      const std::span<std::byte> term = bytes(into, {0, own.size()});
      chunk.messages.receive(rank, term);
      into += term.size();
    }
  }
  for (int step = 1; step < team_.size(); ++step) {
    const int rank = (team_.rank() + step) % team_.size();
    for (std::byte* const root : roots_) chunk.messages.send(rank, bytes(root, part(rank, chunk)));
  }
  return true;
}

void RangeSum::add_first() {
  Chunk& chunk = chunks_.front();
  const FlatRange own = part(team_.rank(), chunk);
  const auto add = [&](std::byte* left, const std::byte* right) {
    add_to_left(dtype_, own.size(), left, right);
    return left;
  };
  SumTree<std::byte*> tree;
  std::size_t term = 0;
  for (const std::vector<int>& levels : levels_) {
    for (const int level : levels) tree.push(chunk.terms[term++], add, level);
  }
  const std::byte* const total = tree.total(add);
  const std::span<std::byte> sum = bytes(sum_, own);
  if (total != sum.data()) std::copy_n(total, sum.size(), sum.data());
  chunks_.pop_front();
}

}  // namespace maki
