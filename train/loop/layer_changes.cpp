#include "train/loop/layer_changes.h"

#include <algorithm>
#include <cmath>

namespace maki {
namespace {

constexpr std::int64_t kMostSampled = 4096;  // of a parameter; more than makes a difference in a picture

template <class F>
void for_sampled(const Tensor& value, const F& use) {
  const std::int64_t count = value.shape().numel(), taken = std::min(count, kMostSampled);
  for (std::int64_t i = 0; i < taken; ++i) use(value.at(i * count / taken));
}

double sum_of_squares(const Tensor& value) {
  double sum = 0;
  const auto add = [&](auto values) {
    for (const auto x : values) sum += static_cast<double>(x) * static_cast<double>(x);
  };
  if (value.dtype() == DType::float64) {
    add(value.values<double>());
  } else {
    add(value.values<float>());
  }
  return sum;
}

}  // namespace

std::string layer_of(const std::string& parameter) {
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = parameter.find('.', begin);
    const std::string part = parameter.substr(begin, end - begin);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!part.empty() && std::ranges::all_of(part, is_digit)) return parameter.substr(0, end);
  }
  return parameter.substr(0, parameter.find('.'));
}

void LayerChanges::before_step() {
  before_.clear();
  for (const auto& parameter : store_.parameters()) {
    std::vector<double>& sample = before_.emplace_back();
    if (parameter->trainable()) for_sampled(parameter->value(), [&](double x) { sample.push_back(x); });
  }
}

std::vector<LayerReport> LayerChanges::after_step() const {
  std::vector<LayerReport> layers;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const Parameter& parameter = *store_.parameters()[i];
    if (!parameter.trainable() || before_[i].empty()) continue;
    const std::string name = layer_of(parameter.name());
    auto layer = std::ranges::find(layers, name, &LayerReport::layer);
    if (layer == layers.end()) layer = layers.insert(layers.end(), {name});
    double change = 0;
    auto old = before_[i].begin();
    for_sampled(parameter.value(), [&](double x) {
      change += (x - *old) * (x - *old);
      ++old;
    });
    layer->norm += sum_of_squares(parameter.value());
    layer->update += change * static_cast<double>(parameter.shape().numel()) / static_cast<double>(before_[i].size());
  }
  for (LayerReport& layer : layers) {
    layer.update = layer.norm > 0 ? std::sqrt(layer.update / layer.norm) : 0;
    layer.norm = std::sqrt(layer.norm);
  }
  return layers;
}

}  // namespace maki
