#include "train/loop/team/gradient_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "optim/clip.h"
#include "train/loop/team/buckets.h"

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

std::byte* memory_of(Tensor& flat) { return bytes_in(flat, {0, flat.numel()}).data(); }

Tensor add_in_place(Tensor left, Tensor right) {
  add_to_left(left.dtype(), left.numel(), memory_of(left), memory_of(right));
  return left;
}

FlatRange range_of(const RangeSum::Parts& bucket) { return {bucket.front().begin, bucket.back().end}; }

}  // namespace

GradientSum::GradientSum(Team& team, TrainableModel& model, std::int64_t micro_batches)
    : team_(team), store_(model.store) {
  const Bounds bounds = even_bounds(micro_batches, team.size());
  for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank)
    levels_.push_back(subtree_levels({bounds[rank], bounds[rank + 1]}));
  const auto rank = static_cast<std::size_t>(team.rank());
  own_ = {bounds[rank], bounds[rank + 1]};
  if (team.size() == 1) return;
  divide(*model.optimizer);
  model.optimizer->keep_shard({parts_of(team.rank()), [this] { share_values(); }});
  sum_.emplace(team, levels_, buckets_, store_.dtype());
}

void GradientSum::divide(const Optimizer& optimizer) {
  const std::int64_t trained = store_.trainable().size();
  for (const FlatRange& bucket :
       exchange_buckets(gradients_of_layers(optimizer), trained, size_of(store_.dtype()), team_.size()))
    buckets_.push_back(optimizer.divide(bucket, team_.size()));
  std::vector<RangeSum::Parts> in_order = buckets_;
  std::ranges::sort(in_order, {}, [](const RangeSum::Parts& bucket) { return bucket.front().begin; });
  for (const RangeSum::Parts& bucket : in_order) {
    for (int rank = 0; rank < team_.size(); ++rank) {
      const FlatRange range = bucket[static_cast<std::size_t>(rank)];
      const bool last = &bucket == &in_order.back() && rank + 1 == team_.size();
      const std::int64_t end = last ? range.end : range.end / kNormBlock * kNormBlock;
      pieces_.push_back({range, {range.begin / kNormBlock * kNormBlock, end}, rank});
    }
  }
}

std::vector<FlatRange> GradientSum::parts_of(int rank) const {
  std::vector<FlatRange> ranges;
  for (const Piece& piece : pieces_) {
    if (piece.rank == rank) ranges.push_back(piece.range);
  }
  return ranges;
}

void GradientSum::begin() {
  store_.clear_gradients(own_.begin);
  tree_.begin(own_.begin);
}

void GradientSum::add() { tree_.push(store_.take_gradients(), add_in_place); }

void GradientSum::finish(Tape& tape, const Tensor& last_loss, double scale) {
  if (team_.size() > 1) {
    exchange(tape, last_loss, scale);
    finish_rows();
    return;
  }
  tape.backward(last_loss, scale);
  if (own_.size() == 1) return;
  tree_.push(store_.gradients(), add_in_place);
  store_.set_gradients(tree_.total(add_in_place));
  tree_.begin();
}

// The sum is made where the first root of this rank is, which becomes the gradient of the store.
void GradientSum::exchange(Tape& tape, const Tensor& last_loss, double scale) {
  Tensor sum = tree_.roots().empty() ? store_.gradients(FlatRange()) : tree_.roots().front().sum;
  if (own_.size() == 0) {
    sum_->begin(/*roots=*/{}, memory_of(store_.gradients()));
  } else {
    sum_->begin(add_last(FlatRange()), memory_of(sum));  // no gradient is complete yet
    const std::vector<std::size_t> nodes = last_nodes(tape);
    std::size_t complete = 0;
    tape.backward(last_loss, scale, [&](std::size_t node) {
      for (; complete < nodes.size() && nodes[complete] >= node; ++complete) add_last(range_of(buckets_[complete]));
      sum_->advance(complete);
    });
  }
  sum_->finish();
  if (own_.size() > 1) store_.set_gradients(sum);
  tree_.begin();
}

// Adds the gradient of the last micro-batch, which is complete in this range, to the roots of the others. Returns where
// the roots are.
std::vector<std::byte*> GradientSum::add_last(FlatRange range) {
  const auto add = [&](std::byte* left, std::byte* right) {
    const std::int64_t begin = range.begin * size_of(store_.dtype());
    add_to_left(store_.dtype(), range.size(), left + begin, right + begin);
    return left;
  };
  SumTree<std::byte*> tree;
  tree.begin(own_.begin);
  for (auto& root : tree_.roots()) tree.push(memory_of(root.sum), add, root.level);
  tree.push(memory_of(store_.gradients(range)), add);
  std::vector<std::byte*> roots;
  for (const auto& root : tree.roots()) roots.push_back(root.sum);
  return roots;
}

// For each bucket, the node after which the backward pass changes none of its gradients.
std::vector<std::size_t> GradientSum::last_nodes(const Tape& tape) const {
  std::vector<std::size_t> nodes(buckets_.size(), tape.size());
  for (const auto& [parameter, node] : tape.first_uses()) {
    const std::int64_t begin = parameter->offset(), end = begin + parameter->shape().numel();
    for (std::size_t i = 0; i < nodes.size() && parameter->has_flat_gradient(); ++i) {
      const FlatRange bucket = range_of(buckets_[i]);
      if (begin < bucket.end && bucket.begin < end) nodes[i] = std::min(nodes[i], node);
    }
  }
  return nodes;
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

// Where a part begins within a block, its rank gets the beginning of the block from the rank before it.
void GradientSum::complete_blocks() {
  Messages messages(team_);
  const Piece* before = nullptr;  // the last one that has elements
  for (const Piece& piece : pieces_) {
    const FlatRange head{piece.blocks.begin, piece.range.begin};
    if (piece.blocks.size() > 0 && head.size() > 0 && before->rank != piece.rank) {
      const std::span<std::byte> bytes = bytes_in(store_.gradients(), head);
      if (piece.rank == team_.rank()) messages.receive(before->rank, bytes);
      if (before->rank == team_.rank()) messages.send(piece.rank, bytes);
    }
    if (piece.range.size() > 0) before = &piece;
  }
  messages.wait();
}

double GradientSum::norm() {
  if (team_.size() == 1) return grad_norm(store_);
  complete_blocks();
  std::vector<double> squares(static_cast<std::size_t>((store_.trainable().size() + kNormBlock - 1) / kNormBlock));
  for (const Piece& piece : pieces_) {
    if (piece.rank != team_.rank() || piece.blocks.size() == 0) continue;
    const Tensor own = store_.gradients().slice_flat(piece.blocks.begin, Shape{piece.blocks.size()});
    std::ranges::copy(squares_of_blocks(own), squares.begin() + piece.blocks.begin / kNormBlock);
  }
  gather(raw_bytes(squares), [](const Piece& piece) {
    constexpr auto kEach = std::int64_t{sizeof(double)};
    return FlatRange{kEach * (piece.blocks.begin / kNormBlock),
                     kEach * ((piece.blocks.end + kNormBlock - 1) / kNormBlock)};
  });
  return norm_of_blocks(squares);
}

// Gives each rank the values of the parameters that the others have updated.
void GradientSum::share_values() {
  const std::int64_t each = size_of(store_.dtype());
  Tensor& values = store_.values();
  gather(bytes_in(values, {0, values.numel()}), [each](const Piece& piece) {
    return FlatRange{each * piece.range.begin, each * piece.range.end};
  });
}

// Every rank has the bytes of its pieces, and gets the others. Rank r begins with its successor, so that no rank is
// sent everything at once.
template <class BytesOf>
void GradientSum::gather(std::span<std::byte> all, const BytesOf& bytes_of) {
  Messages messages(team_);
  const auto bytes = [&](const Piece& piece) {
    const FlatRange range = bytes_of(piece);
    return all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
  };
  const auto each_of = [&](int rank, const auto& use) {
    for (auto i = static_cast<std::size_t>(rank); i < pieces_.size(); i += static_cast<std::size_t>(team_.size()))
      use(bytes(pieces_[i]));
  };
  for (int step = 1; step < team_.size(); ++step) {
    const int from = (team_.rank() + team_.size() - step) % team_.size();
    each_of(from, [&](std::span<std::byte> piece) { messages.receive(from, piece); });
  }
  for (int step = 1; step < team_.size(); ++step) {
    const int to = (team_.rank() + step) % team_.size();
    each_of(team_.rank(), [&](std::span<std::byte> piece) { messages.send(to, piece); });
  }
  messages.wait();
}

}  // namespace maki
