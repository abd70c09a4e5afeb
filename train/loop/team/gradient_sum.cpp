#include "train/loop/team/gradient_sum.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "autograd/core/parallel.h"
#include "optim/clip.h"

namespace maki {
namespace {

std::vector<int> subtree_levels(FlatRange range) {
  SumTree<int> tree;
  tree.begin(range.begin);
  for (std::int64_t i = range.begin; i < range.end; ++i) tree.push(0, [](int, int) { return 0; });
  std::vector<int> levels;
  for (const auto& root : tree.roots()) levels.push_back(root.level);
  return levels;
}

// A row gradient as bytes: level, number of rows, rows, values.
void append(std::string& out, int level, const RowGradient& gradient) {
  const std::int64_t head[] = {level, gradient.rows.numel()};
  const auto put = [&](Bytes bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  put(std::as_bytes(std::span(head)));
  put(std::as_bytes(gradient.rows.values<std::int32_t>()));
  dispatch(gradient.values.dtype(), [&]<class T>() { put(std::as_bytes(gradient.values.values<T>())); });
}

void add_all(const std::string& bytes, std::int64_t cols, DType dtype, RowGradients& sum) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto take = [&](std::span<std::byte> into) {
      std::memcpy(into.data(), bytes.data() + at, into.size());
      at += into.size();
    };
    std::int64_t head[2];
    take(std::as_writable_bytes(std::span(head)));
    RowGradient gradient{empty({head[1]}, DType::int32), empty({head[1], cols}, dtype)};
    take(std::as_writable_bytes(gradient.rows.values<std::int32_t>()));
    dispatch(dtype, [&]<class T>() { take(std::as_writable_bytes(gradient.values.values<T>())); });
    sum.add(std::move(gradient), static_cast<int>(head[0]));
  }
}

// Sends each rank its range of the roots of this one, and adds what the others send of the range of this one to its
// roots.
template <class T>
class RangeSum {
 public:
  /// `levels`: of the subtrees of each rank; `ranges`: one of each rank; `roots`: those of this rank, of whose range
  /// the sum takes the place.
  RangeSum(Team& team, const std::vector<std::vector<int>>& levels, const std::vector<FlatRange>& ranges,
           std::vector<T*> roots)
      : team_(team), levels_(levels), ranges_(ranges), roots_(std::move(roots)) {
    for (const std::vector<int>& of_rank : levels) subtrees_ += std::ssize(of_rank);
    for (const FlatRange& range : ranges_) longest_ = std::max(longest_, range.size());
    size_ = received_elements(sizeof(T), subtrees_, longest_);
  }

  // Two chunks are under way: while one is added, the next is sent.
  void run(T* sum) {
    std::unique_ptr<Chunk> before;
    for (std::int64_t begin = 0; begin < longest_; begin += size_) {
      auto chunk = std::make_unique<Chunk>(team_, begin, empty({size_ * subtrees_}, dtype_of<T>()));
      start(*chunk);
      if (before != nullptr) add(*before, sum);
      before = std::move(chunk);
    }
    if (before != nullptr) add(*before, sum);
  }

 private:
  // A part of the range of every rank, which begins there at this element; and of this rank's own, the terms of the
  // sum, by rank and subtree, with the memory of those that are received.
  struct Chunk {
    Chunk(Team& team, std::int64_t first, Tensor memory) : begin(first), received(std::move(memory)), messages(team) {}
    std::int64_t begin;
    Tensor received;
    std::vector<T*> terms;
    Messages messages;
  };

  FlatRange part(int rank, const Chunk& chunk) const {
    const FlatRange range = ranges_[static_cast<std::size_t>(rank)];
    const std::int64_t first = std::min(range.begin + chunk.begin, range.end);
    return {first, std::min(first + size_, range.end)};
  }

  void start(Chunk& chunk) {
    const FlatRange own = part(team_.rank(), chunk);
    T* into = chunk.received.template data<T>();
    for (int rank = 0; rank < team_.size(); ++rank) {
      for (std::size_t i = 0; i < levels_[static_cast<std::size_t>(rank)].size(); ++i) {
        chunk.terms.push_back(rank == team_.rank() ? roots_[i] + own.begin : into);
        if (rank == team_.rank()) continue;
        chunk.messages.receive(rank, std::as_writable_bytes(std::span(into, static_cast<std::size_t>(own.size()))));
        into += own.size();
      }
    }
    for (int step = 1; step < team_.size(); ++step) {
      const int rank = (team_.rank() + step) % team_.size();
      const FlatRange range = part(rank, chunk);
      for (const T* const root : roots_)
        chunk.messages.send(rank, std::as_bytes(std::span(root + range.begin, static_cast<std::size_t>(range.size()))));
    }
  }

  void add(Chunk& chunk, T* sum) {
    chunk.messages.wait();
    const FlatRange own = part(team_.rank(), chunk);
    const auto add_to_left = [length = own.size()](T* left, const T* right) {
      parallel_ranges(length, 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) left[i] += right[i];
      });
      return left;
    };
    SumTree<T*> tree;
    std::size_t term = 0;
    for (const std::vector<int>& levels : levels_) {
      for (const int level : levels) tree.push(chunk.terms[term++], add_to_left, level);
    }
    const T* const total = tree.total(add_to_left);
    if (total != sum + own.begin) std::copy_n(total, own.size(), sum + own.begin);
  }

  Team& team_;
  const std::vector<std::vector<int>>& levels_;
  const std::vector<FlatRange>& ranges_;
  std::vector<T*> roots_;
  std::int64_t subtrees_ = 0, longest_ = 0, size_ = 0;
};

}  // namespace

std::int64_t received_elements(std::int64_t bytes_of_one, std::int64_t subtrees, std::int64_t longest_part) {
  constexpr std::int64_t kCached = 2 << 20;   // of all subtrees: as many bytes as stay in a cache until they are added
  constexpr std::int64_t kMessage = 1 << 17;  // bytes of a message that take longer than its latency
  constexpr std::int64_t kMost = 64 << 20;    // of all subtrees: little beside a model that thousands of ranks train
  const std::int64_t bytes = std::max(kCached / subtrees, std::min(kMessage, kMost / subtrees));
  return std::clamp<std::int64_t>(longest_part, 1, bytes / bytes_of_one);
}

GradientSum::GradientSum(Team& team, TrainableModel& model, std::int64_t micro_batches)
    : team_(team), store_(model.store) {
  const Bounds bounds = even_bounds(micro_batches, team.size());
  for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank)
    levels_.push_back(subtree_levels({bounds[rank], bounds[rank + 1]}));
  const auto rank = static_cast<std::size_t>(team.rank());
  own_ = {bounds[rank], bounds[rank + 1]};
  parts_ = model.optimizer->divide(team.size());
  if (team.size() > 1) model.optimizer->keep_shard({parts_[rank], [this] { share_values(); }});
}

void GradientSum::begin() {
  store_.clear_gradients(own_.begin);
  tree_.begin(own_.begin);
}

// The only gradient of this rank stays where it is.
void GradientSum::add() {
  if (own_.size() > 1) tree_.add(store_.take_gradients());
}

void GradientSum::finish() {
  if (team_.size() > 1) {
    finish_flat();
    finish_rows();
  } else if (own_.size() > 1) {
    store_.set_gradients(tree_.take());
  }
}

// The sum is made where the first root of this rank is, which becomes the gradient of the store.
void GradientSum::finish_flat() {
  std::vector<Tensor> roots;
  for (const auto& root : tree_.roots()) roots.push_back(root.sum);
  tree_.begin();
  if (!roots.empty()) store_.set_gradients(roots.front());
  if (own_.size() == 1) roots.push_back(store_.gradients());
  dispatch(store_.dtype(), [&]<class T>() {
    std::vector<T*> memory;
    for (Tensor& root : roots) memory.push_back(root.data<T>());
    RangeSum<T>(team_, levels_, parts_, std::move(memory)).run(store_.gradients().data<T>());
  });
}

void GradientSum::finish_rows() {
  for (const auto& parameter : store_.parameters()) {
    if (parameter->group() != ParamGroup::rows) continue;
    RowGradients& gradients = parameter->row_gradients();
    std::string own;
    for (const auto& root : gradients.tree().roots()) append(own, root.level, root.sum);
    gradients.begin();
    for (const std::string& bytes : gather_all(team_, own))
      add_all(bytes, parameter->shape()[1], store_.dtype(), gradients);
  }
}

// The blocks whose squares a rank sums: those that end in its part.
FlatRange GradientSum::blocks(int rank) const {
  const FlatRange range = part(rank);
  const bool last = rank + 1 == team_.size();
  return {range.begin / kNormBlock * kNormBlock, last ? range.end : range.end / kNormBlock * kNormBlock};
}

// Where a part begins within a block, its rank gets the beginning of the block from the rank before it.
void GradientSum::complete_blocks() {
  Messages messages(team_);
  int before = 0;  // the last rank whose part has elements
  for (int rank = 0; rank < team_.size(); ++rank) {
    const FlatRange head{blocks(rank).begin, part(rank).begin};
    if (blocks(rank).size() > 0 && head.size() > 0 && (rank == team_.rank() || before == team_.rank())) {
      dispatch(store_.dtype(), [&]<class T>() {
        const std::span<T> values = store_.gradients().values<T>().subspan(static_cast<std::size_t>(head.begin),
                                                                           static_cast<std::size_t>(head.size()));
        if (rank == team_.rank()) messages.receive(before, std::as_writable_bytes(values));
        if (before == team_.rank()) messages.send(rank, std::as_bytes(values));
      });
    }
    if (part(rank).size() > 0) before = rank;
  }
  messages.wait();
}

double GradientSum::norm() {
  if (team_.size() == 1) return grad_norm(store_);
  complete_blocks();
  std::vector<double> squares(static_cast<std::size_t>((store_.trainable().size() + kNormBlock - 1) / kNormBlock));
  Bounds bounds;
  for (int rank = 0; rank < team_.size(); ++rank)
    bounds.push_back(blocks(rank).begin / kNormBlock * std::int64_t{sizeof(double)});
  bounds.push_back(std::ssize(squares) * std::int64_t{sizeof(double)});
  const FlatRange own = blocks(team_.rank());
  if (own.size() > 0) {
    const std::vector<double> sums = squares_of_blocks(store_.gradients().slice_flat(own.begin, Shape{own.size()}));
    std::ranges::copy(sums, squares.begin() + own.begin / kNormBlock);
  }
  gather_all(team_, raw_bytes(squares), bounds);
  return norm_of_blocks(squares);
}

// Gives each rank the values of the parameters that the others have updated.
void GradientSum::share_values() {
  Tensor& values = store_.values();
  Bounds bounds = {0};
  for (const FlatRange& part : parts_) bounds.push_back(part.end * size_of(store_.dtype()));
  dispatch(values.dtype(), [&]<class T>() { gather_all(team_, std::as_writable_bytes(values.values<T>()), bounds); });
}

}  // namespace maki
