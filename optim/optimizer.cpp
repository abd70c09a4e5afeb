#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/kernels/optimizer.h"
#include "optim/row_rule.h"

namespace maki {
namespace {

// The layout of this moment in the list, which is extended if it is new.
MomentLayout& layout_of(const MomentSpec& spec, std::vector<MomentLayout>& layouts) {
  const auto found = std::ranges::find(layouts, spec.name, &MomentLayout::name);
  if (found != layouts.end()) return *found;
  layouts.push_back({.name = spec.name, .may_be_negative = spec.may_be_negative, .parts = {}, .length = 0});
  return layouts.back();
}

void append(const Parameter& parameter, const MomentSpec& spec, DType dtype, std::vector<MomentLayout>& layouts) {
  MomentLayout& layout = layout_of(spec, layouts);
  check(layout.may_be_negative == spec.may_be_negative,
        "optimizer: all parameters must agree whether moment {} may be negative; parameter {} does not", spec.name,
        parameter.name());
  check(layout.parts.empty() || layout.parts.back().parameter != &parameter,
        "optimizer: a parameter must declare each moment once; parameter {} declares {} twice", parameter.name(),
        spec.name);
  layout.parts.push_back({&parameter, spec.shape, layout.length});
  layout.length += padded_numel(spec.shape.numel(), dtype);
}

// Brings the rounded copy of the values up to date, if there is one and the update has not done so block by block.
void round_values(ParameterStore& store) {
  BFloat16* const rounded = store.rounded_memory();
  if (rounded == nullptr || store.rounded_values() != nullptr) return;
  kernels::round_values(store.range(ParamGroup::decay).size(), store.values().data<float>(), rounded);
  store.mark_rounded();
}

}  // namespace

std::vector<FlatRange> even_ranges(FlatRange range, int parts) {
  const std::int64_t size = range.size(), block = kernels::kUpdateBlock;
  std::vector<FlatRange> ranges;
  std::int64_t begin = range.begin;
  for (std::int64_t part = 1; part <= parts; ++part) {
    const std::int64_t even = range.begin + size / parts * part + size % parts * part / parts;
    const std::int64_t end = part == parts ? range.end : even / block * block;
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

std::vector<MomentLayout> Optimizer::moment_layouts() const {
  std::vector<MomentLayout> layouts;
  for (const ParamGroup group : {ParamGroup::decay, ParamGroup::no_decay, ParamGroup::rows}) {
    for (const auto& parameter : store_.parameters()) {
      if (parameter->group() != group) continue;
      const bool by_rows = group == ParamGroup::rows;
      for (const MomentSpec& spec : by_rows ? row_moments_of(*parameter) : moments_of(*parameter))
        append(*parameter, spec, store_.dtype(), layouts);
    }
  }
  return layouts;
}

// The moments of tables are the last ones, because the parameters of that group come last.
void Optimizer::update_rows(double learning_rate, double grad_scale) {
  for (Moment& moment : moments()) {
    for (const MomentLayout::Part& part : moment.parts) {
      if (part.parameter->group() != ParamGroup::rows) continue;
      const RowGradient gradient = part.parameter->row_gradient();
      if (!gradient) continue;
      Tensor table = store_.values().slice_flat(part.parameter->offset(), part.parameter->shape());
      Tensor squares = moment.values.slice_flat(part.offset, part.shape);
      update_rows_of(gradient, {.learning_rate = row_rate_ * learning_rate, .grad_scale = grad_scale}, table, squares);
    }
  }
}

bool Optimizer::is_elementwise() const {
  return std::ranges::all_of(store_.parameters(), [this](const auto& parameter) {
    return !parameter->has_flat_gradient() || updates_elements_of(*parameter);
  });
}

std::vector<FlatRange> Optimizer::divide(FlatRange range, int parts) const {
  std::vector<FlatRange> ranges = even_ranges(range, parts);
  for (std::size_t part = 0; part + 1 < ranges.size(); ++part) {
    std::int64_t& end = ranges[part].end;
    for (const auto& parameter : store_.parameters()) {
      const std::int64_t first = parameter->offset();
      const std::int64_t last = first + padded_numel(parameter->shape().numel(), store_.dtype());
      if (!parameter->has_flat_gradient() || end <= first || end >= last || updates_elements_of(*parameter)) continue;
      end = end - first < last - end ? first : last;
      break;
    }
    // A block of which two parts begin would have to be put together from three.
    const std::int64_t begin = ranges[part].begin;
    end = end / kernels::kUpdateBlock == begin / kernels::kUpdateBlock ? begin : std::max(begin, end);
    ranges[part + 1].begin = end;
  }
  return ranges;
}

FlatRange Optimizer::part_of(const MomentLayout& moment, FlatRange range) {
  FlatRange part{moment.length, 0};
  for (const MomentLayout::Part& own : moment.parts) {
    if (!own.parameter->has_flat_gradient()) continue;
    const std::int64_t first = own.parameter->offset(), size = own.parameter->shape().numel();
    const std::int64_t begin = std::clamp<std::int64_t>(range.begin - first, 0, size);
    const std::int64_t end = std::clamp<std::int64_t>(range.end - first, 0, size);
    if (begin == end) continue;
    // A moment of another shape than its parameter belongs to a parameter that is never divided.
    part.begin = std::min(part.begin, own.offset + begin);
    part.end = own.offset + (end == size ? own.shape.numel() : end);
  }
  return part.begin < part.end ? part : FlatRange{};
}

void Optimizer::keep_shard(OptimizerShard shard) {
  check(!moments_, "optimizer: a shard must be chosen before the first step");
  shard_ = std::move(shard);
}

void Optimizer::drop_other_shards() {
  if (!shard_ || !moments_) return;
  const std::int64_t each = size_of(store_.dtype());
  for (std::size_t i = 0; i < moments_->size(); ++i) {
    const Moment& moment = (*moments_)[i];
    const FlatRange all = part_of(moment, store_.trainable());
    std::int64_t end = all.begin;  // of the last range that is kept
    for (const FlatRange& range : shard_->ranges) {
      const FlatRange own = part_of(moment, range);
      if (own.size() == 0) continue;
      pages_[i].drop_pages(each * end, each * own.begin);
      end = own.end;
    }
    pages_[i].drop_pages(each * end, each * all.end);
  }
}

void Optimizer::set_row_rate(double factor) {
  check(std::isfinite(factor) && factor >= 0,
        "optimizer: the relative learning rate of rows must be finite and not negative; got {}", factor);
  row_rate_ = factor;
}

const std::vector<Moment>& Optimizer::moments() const {
  if (moments_) return *moments_;
  check(store_.sealed(), "optimizer: the store must be sealed before it is trained; call seal()");
  std::vector<Moment> moments;
  std::vector<Storage> pages;
  for (MomentLayout& layout : moment_layouts()) {
    const Shape shape{layout.length};
    Tensor values;
    if (shard_) {
      pages.push_back(Storage::of_zero_pages(layout.length * size_of(store_.dtype())));
      values = Tensor(pages.back(), 0, shape, store_.dtype());
    } else {
      values = zeros(shape, store_.dtype());
    }
    moments.push_back({std::move(layout), std::move(values)});
  }
  pages_ = std::move(pages);
  return moments_.emplace(std::move(moments));
}

std::vector<Moment>& Optimizer::moments() {
  std::as_const(*this).moments();
  return *moments_;
}

void Optimizer::set_steps(std::int64_t steps) {
  check(steps >= 0, "optimizer: the number of steps must not be negative; got {}", steps);
  steps_ = steps;
}

void Optimizer::step(double learning_rate, double grad_scale) {
  check(std::isfinite(learning_rate) && learning_rate >= 0,
        "optimizer: the learning rate must be finite and not negative; got {}", learning_rate);
  check(std::isfinite(grad_scale) && grad_scale >= 0,
        "optimizer: the gradient scale must be finite and not negative; got {}", grad_scale);
  moments();
  store_.gradients();
  store_.mark_changed();  // before the update, which may run out of memory when it has changed some values
  const OptimizerStep step{.learning_rate = learning_rate, .grad_scale = grad_scale, .number = steps_ + 1};
  if (shard_) {
    for (const FlatRange& range : shard_->ranges) update(step, range);
    shard_->share();
    store_.mark_changed();
  } else {
    update(step, store_.trainable());
  }
  round_values(store_);
  update_rows(learning_rate, grad_scale);
  ++steps_;
  store_.clear_gradients();
}

}  // namespace maki
