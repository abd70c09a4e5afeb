#include "train/app/bench/profile.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "train/app/bench/timing.h"

namespace maki {
namespace {

struct Cost {
  double flop = 0, bytes = 0;
};
struct Costs {
  Cost forward, backward;
};

double bytes_of(const Tensor& x) { return static_cast<double>(x.numel() * size_of(x.dtype())); }

// FLOP of an op's matrix product in forward. In backward, the gradient of each operand costs the same.
double product_flop(std::string_view name, std::span<const Tensor* const> inputs, const Tensor& y) {
  const auto elements = [](const Tensor& x) { return static_cast<double>(x.numel()); };
  if (name == "linear_attention") return 0;  // depends on the number of heads, which its tensors do not show
  if (name.starts_with("linear")) {          // [rows, in] · [out, in]
    const Shape &x = inputs[0]->shape(), &weight = inputs[1]->shape();
    return 2 * static_cast<double>(x.rows()) * static_cast<double>(weight[0]) * static_cast<double>(weight[1]);
  }
  if (name == "gelu_feed_forward") {  // [rows, in] · [hidden, in]ᵀ, then · [out, hidden]ᵀ
    const auto rows = static_cast<double>(inputs[0]->shape().rows());
    return 2 * rows * (elements(*inputs[1]) + elements(*inputs[2]));
  }
  if (name == "matmul") {  // [… M, K] · [… K, N]: (M·K · K·N) / (M·N) = K², also if an operand is transposed
    const Shape &a = inputs[0]->shape(), &b = inputs[1]->shape();
    const double k = std::sqrt(static_cast<double>(a[-1] * a[-2]) * static_cast<double>(b[-1] * b[-2]) /
                               static_cast<double>(y.shape()[-1] * y.shape()[-2]));
    return 2 * elements(y) * k;
  }
  if (name == "attention") {  // scores, and the weighted sum of values, over all S keys as if not causal
    return 4 * elements(y) * static_cast<double>(inputs.back()->shape()[1]);
  }
  if (name == "relative_attention") {  // the scores of content and of distances, and the values
    return 6 * elements(y) * static_cast<double>(inputs[1]->shape()[1]);
  }
  return 0;
}

Costs costs_of(const Tape::Observed& op) {
  Costs costs;
  double inputs = 0, wanted = 0, outputs = 0, products = 0;
  for (const Tensor* const x : op.inputs) {
    inputs += bytes_of(*x);
    if (!x->requires_grad()) continue;
    wanted += bytes_of(*x);
    if (x->shape().rank() >= 2) ++products;
  }
  for (const Tensor* const y : op.outputs) outputs += bytes_of(*y);
  const std::string_view name = op.name;
  costs.forward.flop = product_flop(name, op.inputs, *op.outputs[0]);
  const bool twice = name == "attention" || name == "relative_attention" || name == "gelu_feed_forward";
  costs.backward.flop = costs.forward.flop * (twice ? 2 : products);
  if (name == "embedding") {  // only the rows that are looked up, not the whole table
    costs.forward.bytes = costs.backward.bytes = 2 * outputs;
    return costs;
  }
  costs.forward.bytes = inputs + outputs;
  costs.backward.bytes =
      name == "add" ? 0 : outputs + inputs + wanted;  // add passes its gradient on without reading it
  return costs;
}

class Profiler {
 public:
  explicit Profiler(Trainer& trainer) : trainer_(trainer) {
    trainer_.tape().observe([this](const Tape::Observed& op) { see(op); });
  }
  ~Profiler() { trainer_.tape().observe({}); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void run(std::int64_t steps) {
    for (std::int64_t i = 0; i < steps; ++i) {
      for (Line& line : lines_) {
        line.row.calls = 0;
        line.row.flop = line.row.bytes = line.now = 0;
      }
      last_ = seconds_now();
      trainer_.step([this] {  // called before each micro-batch: the time since the last op belongs to the update
        add("update", "update", {});
        return false;
      });
      add("update", "update", {.flop = 0, .bytes = update_bytes()});
      for (Line& line : lines_) line.seconds.push_back(line.now);
    }
  }

  std::vector<ProfileRow> rows() const {
    std::vector<ProfileRow> rows;
    for (const Line& line : lines_) {
      rows.push_back(line.row);
      rows.back().seconds = Timings(line.seconds).median();
    }
    std::ranges::sort(rows, std::greater(), &ProfileRow::seconds);
    return rows;
  }

 private:
  struct Line {
    ProfileRow row;
    double now;                   // seconds in the current step
    std::vector<double> seconds;  // of each finished step
  };

  void see(const Tape::Observed& op) {
    if (op.backward) return add(op.name, "backward", nodes_[op.node].backward);
    if (nodes_.size() <= op.node) nodes_.resize(op.node + 1);
    nodes_[op.node] = costs_of(op);
    add(op.name, "forward", nodes_[op.node].forward);
  }

  // Adds the time since the last call to this row.
  void add(std::string_view op, std::string_view pass, const Cost& cost) {
    const double now = seconds_now();
    auto line = std::ranges::find_if(lines_, [&](const Line& l) { return l.row.op == op && l.row.pass == pass; });
    if (line == lines_.end()) {
      lines_.push_back({.row = {.op = std::string(op), .pass = std::string(pass)}, .now = 0, .seconds = {}});
      line = lines_.end() - 1;
    }
    ++line->row.calls;
    line->row.flop += cost.flop;
    line->row.bytes += cost.bytes;
    line->now += now - last_;
    last_ = seconds_now();
  }

  // The norm reads the gradients. The update reads them again, and reads and writes the values and each moment.
  double update_bytes() const {
    const auto moments = static_cast<double>(trainer_.optimizer().moments().size());
    const auto n = static_cast<double>(trainer_.store().trainable().size());
    return n * static_cast<double>(size_of(trainer_.store().dtype())) * (2 + 2 + 2 * moments);
  }

  Trainer& trainer_;
  std::vector<Line> lines_;
  std::vector<Costs> nodes_;  // indexed by node number on the tape
  double last_ = 0;
};

}  // namespace

std::vector<ProfileRow> profile_steps(Trainer& trainer, std::int64_t steps) {
  check(steps >= 1, "profile: needs at least one step; got {}", steps);
  Profiler profiler(trainer);
  profiler.run(steps);
  return profiler.rows();
}

}  // namespace maki
