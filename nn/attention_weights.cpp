#include "nn/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// What the observer keeps of a call: its tensors as they are, because an op that splits them would be recorded.
struct Call {
  bool linear;
  std::vector<Tensor> inputs;
  Tensor output;
};

Tensor as_float64(const Tensor& x) { return convert(x.detach(), DType::float64); }

// Parts [begin, end) of the columns, which are `parts` equal ones.
Tensor columns(const Tensor& x, std::int64_t begin, std::int64_t end, std::int64_t parts) {
  const std::int64_t width = x.shape()[2] / parts;
  return slice(x, 2, begin * width, end * width);
}

// q, k and v of a call: packed q‖k‖v, or q and packed k‖v, or the three of linear_attention(). q is `share` times as
// wide as k and v.
ObservedAttention unpacked(const Call& call, std::int64_t share) {
  std::vector<Tensor> inputs;
  for (const Tensor& input : call.inputs) inputs.push_back(as_float64(input));
  const Tensor& first = inputs.front();
  ObservedAttention result{.linear = call.linear, .q = first, .k = first, .v = first, .y = as_float64(call.output)};
  if (call.linear) {
    result.k = inputs[1];
    result.v = inputs[2];
  } else if (inputs.size() == 2) {
    result.k = columns(inputs[1], 0, 1, 2);
    result.v = columns(inputs[1], 1, 2, 2);
  } else {
    result.q = columns(first, 0, share, share + 2);
    result.k = columns(first, share, share + 1, share + 2);
    result.v = columns(first, share + 1, share + 2, share + 2);
  }
  return result;
}

double dot(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Turns the scores of the keys that one query sees into weights.
void soften(double* scores, std::int64_t keys) {
  const double most = *std::max_element(scores, scores + keys);
  double sum = 0;
  for (std::int64_t s = 0; s < keys; ++s) sum += scores[s] = std::exp(scores[s] - most);
  for (std::int64_t s = 0; s < keys; ++s) scores[s] /= sum;
}
void normalize(double* products, std::int64_t keys, double floor) {
  double sum = 0;
  for (std::int64_t s = 0; s < keys; ++s) sum += products[s];
  for (std::int64_t s = 0; s < keys; ++s) products[s] /= floor > 0 ? std::max(sum, floor) : sum;
}

// Calls one(b, h, t) for every query of every head.
template <class One>
void for_each_query(const Shape& weights, const One& one) {
  for (std::int64_t b = 0; b < weights[0]; ++b) {
    for (std::int64_t h = 0; h < weights[1]; ++h) {
      for (std::int64_t t = 0; t < weights[2]; ++t) one(b, h, t);
    }
  }
}

}  // namespace

std::vector<ObservedAttention> observe_attention(const std::function<void()>& forward, std::int64_t heads_per_kv_head) {
  check(heads_per_kv_head >= 1, "observe_attention: heads_per_kv_head must be at least 1; got {}", heads_per_kv_head);
  std::vector<Call> calls;
  const auto see = [&](const Tape::Observed& op) {
    const std::string_view name = op.name;
    if (name != "attention" && name != "linear_attention") return;
    calls.push_back({name == "linear_attention", {}, op.outputs[0]->detach()});
    for (const Tensor* const input : op.inputs) calls.back().inputs.push_back(input->detach());
  };
  {
    const Observing observing(see);
    forward();
  }
  std::vector<ObservedAttention> observed;
  observed.reserve(calls.size());
  for (const Call& call : calls) observed.push_back(unpacked(call, heads_per_kv_head));
  return observed;
}

Tensor attention_weights(const ObservedAttention& observed, const WeightOptions& options) {
  const std::int64_t heads = options.n_head, width = observed.q.shape()[2], queries = observed.q.shape()[1],
                     keys = observed.k.shape()[1], kv_width = observed.k.shape()[2];
  const std::int64_t share = kv_width == 0 ? 1 : width / kv_width;
  check(heads >= 1 && width % heads == 0 && observed.y.shape()[2] % heads == 0 &&
            heads % std::max<std::int64_t>(share, 1) == 0,
        "attention_weights: n_head must divide the widths {} and {} and be a multiple of {}; got {}", width,
        observed.y.shape()[2], share, heads);
  const std::int64_t size = width / heads;
  Tensor weights = zeros({observed.q.shape()[0], heads, queries, keys}, DType::float64);
  for_each_query(weights.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    double* const row = weights.data<double>() + ((b * heads + h) * queries + t) * keys;
    const double* const q = observed.q.data<double>() + (b * queries + t) * width + h * size;
    const std::int64_t seen = options.causal ? std::clamp<std::int64_t>(t + 1 + keys - queries, 0, keys) : keys;
    if (seen == 0) return;
    for (std::int64_t s = 0; s < seen; ++s) {
      row[s] = dot(q, observed.k.data<double>() + (b * keys + s) * kv_width + h / share * size, size);
      if (!observed.linear) row[s] /= std::sqrt(static_cast<double>(size));
    }
    if (observed.linear) {
      normalize(row, seen, options.floor);
    } else {
      soften(row, seen);
    }
  });
  return weights;
}

Tensor weighted_values(const Tensor& weights, const ObservedAttention& observed) {
  const std::int64_t heads = weights.shape()[1], queries = weights.shape()[2], keys = weights.shape()[3];
  const std::int64_t width = observed.y.shape()[2], size = width / heads, kv_width = observed.v.shape()[2],
                     share = kv_width == 0 ? 1 : width / kv_width;
  Tensor y = zeros({weights.shape()[0], queries, width}, DType::float64);
  for_each_query(weights.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    double* const to = y.data<double>() + (b * queries + t) * width + h * size;
    for (std::int64_t s = 0; s < keys; ++s) {
      const double weight = weights.data<double>()[((b * heads + h) * queries + t) * keys + s];
      const double* const v = observed.v.data<double>() + (b * keys + s) * kv_width + h / share * size;
      for (std::int64_t d = 0; d < size; ++d) to[d] += weight * v[d];
    }
  });
  return y;
}

double weights_error(const Tensor& weights, const ObservedAttention& observed) {
  const Tensor sums = weighted_values(weights, observed);
  double most = 0, error = 0;
  for (const double v : observed.v.values<double>()) most = std::max(most, std::abs(v));
  for (std::int64_t i = 0; i < sums.numel(); ++i) {
    const double difference = std::abs(sums.data<double>()[i] - observed.y.data<double>()[i]);
    if (std::isnan(difference)) return difference;
    error = std::max(error, difference);
  }
  return most > 0 ? error / most : error;
}

}  // namespace maki
