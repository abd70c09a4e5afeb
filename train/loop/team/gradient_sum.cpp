#include "train/loop/team/gradient_sum.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "autograd/core/parallel.h"
#include "optim/clip.h"

namespace maki {
namespace {

// Bytes of the parts of others' subtrees that are received at once: enough to fill a network, and little beside a
// model.
constexpr std::int64_t kMostReceived = 8 << 20;

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

// Sends each rank its range of the roots of this one, and adds up what the others send of the range of this one.
template <class T>
class RangeSum {
 public:
  /// `levels`: of the subtrees of each rank; `ranges`: what each rank is to receive; `roots`: those of this rank.
  RangeSum(Team& team, const std::vector<std::vector<int>>& levels, std::vector<FlatRange> ranges,
           std::vector<const T*> roots)
      : team_(team), levels_(levels), ranges_(std::move(ranges)), roots_(std::move(roots)) {
    for (const std::vector<int>& of_rank : levels) subtrees_ += std::ssize(of_rank);
    size_ = std::max<std::int64_t>(kNormBlock, kMostReceived / std::int64_t{sizeof(T)} / subtrees_);
  }

  // Two chunks are under way: while one is added, the next is sent.
  void run(T* sum) {
    std::int64_t longest = 0;
    for (const FlatRange& range : ranges_) longest = std::max(longest, range.size());
    std::unique_ptr<Chunk> before;
    for (std::int64_t begin = 0; begin < longest; begin += size_) {
      auto chunk = std::make_unique<Chunk>(team_, begin, empty({size_ * subtrees_}, dtype_of<T>()));
      start(*chunk);
      if (before != nullptr) add(*before, sum);
      before = std::move(chunk);
    }
    if (before != nullptr) add(*before, sum);
  }

 private:
  // A part of the range of every rank, which begins there at this element, and what this rank receives of its own: by
  // rank and subtree.
  struct Chunk {
    Chunk(Team& team, std::int64_t first, Tensor memory) : begin(first), received(std::move(memory)), messages(team) {}
    std::int64_t begin;
    Tensor received;
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
      for (std::size_t i = 0; i < levels_[static_cast<std::size_t>(rank)].size(); ++i, into += own.size()) {
        if (rank == team_.rank()) {
          std::copy_n(roots_[i] + own.begin, own.size(), into);
        } else {
          chunk.messages.receive(rank, std::as_writable_bytes(std::span(into, static_cast<std::size_t>(own.size()))));
        }
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
    const std::int64_t length = part(team_.rank(), chunk).size();
    const auto add_to_left = [length](T* left, const T* right) {
      parallel_ranges(length, 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) left[i] += right[i];
      });
      return left;
    };
    SumTree<T*> tree;
    T* term = chunk.received.template data<T>();
    for (const std::vector<int>& levels : levels_) {
      for (const int level : levels) {
        tree.push(term, add_to_left, level);
        term += length;
      }
    }
    std::copy_n(tree.total(add_to_left), length, sum + chunk.begin);
  }

  Team& team_;
  const std::vector<std::vector<int>>& levels_;
  std::vector<FlatRange> ranges_;
  std::vector<const T*> roots_;
  std::int64_t subtrees_ = 0, size_ = 0;
};

}  // namespace

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

// The blocks whose squares a rank sums: those that begin in its part, or in the part of an earlier one where it is
// shorter than a block.
FlatRange GradientSum::normed(int rank) const {
  const FlatRange part = parts_[static_cast<std::size_t>(rank)];
  const bool last = rank + 1 == team_.size();
  return {part.begin / kNormBlock * kNormBlock, last ? part.end : part.end / kNormBlock * kNormBlock};
}

FlatRange GradientSum::needed(int rank) const {
  return {normed(rank).begin, std::max(normed(rank).end, parts_[static_cast<std::size_t>(rank)].end)};
}

void GradientSum::finish_flat() {
  const FlatRange range = needed(team_.rank());
  Tensor sum = empty({range.size()}, store_.dtype());
  std::vector<FlatRange> ranges;
  for (int rank = 0; rank < team_.size(); ++rank) ranges.push_back(needed(rank));
  dispatch(store_.dtype(), [&]<class T>() {
    std::vector<const T*> roots;
    for (const auto& root : tree_.roots()) roots.push_back(std::as_const(root.sum).template data<T>());
    if (own_.size() == 1) roots.push_back(std::as_const(store_.gradients()).template data<T>());
    RangeSum<T>(team_, levels_, std::move(ranges), std::move(roots)).run(sum.data<T>());
  });
  if (!tree_.roots().empty()) store_.set_gradients(tree_.roots().front().sum);
  tree_.begin();
  dispatch(store_.dtype(), [&]<class T>() {
    std::ranges::copy(std::as_const(sum).values<T>(), store_.gradients().data<T>() + range.begin);
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

double GradientSum::norm() {
  if (team_.size() == 1) return grad_norm(store_);
  std::vector<double> squares(static_cast<std::size_t>((store_.trainable().size() + kNormBlock - 1) / kNormBlock));
  Bounds bounds;
  for (int rank = 0; rank < team_.size(); ++rank) bounds.push_back(normed(rank).begin / kNormBlock * 8);
  bounds.push_back(std::ssize(squares) * 8);
  const FlatRange own = normed(team_.rank());
  if (own.size() > 0) {
    const std::vector<double> sums = squares_of_blocks(store_.gradients().slice_flat(own.begin, Shape{own.size()}));
    std::ranges::copy(sums, squares.begin() + own.begin / kNormBlock);
  }
  gather_all(team_, bytes_of(squares), bounds);
  return norm_of_blocks(squares);
}

void GradientSum::share_values() {
  Tensor& values = store_.values();
  Bounds bounds = {0};
  for (const FlatRange& part : parts_) bounds.push_back(part.end * size_of(store_.dtype()));
  dispatch(values.dtype(), [&]<class T>() { gather_all(team_, std::as_writable_bytes(values.values<T>()), bounds); });
}

}  // namespace maki
