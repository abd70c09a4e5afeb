// Shared by the tests of nn: a small model with its store, random ids, and bitwise comparisons.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "nn/models/gpt.h"
#include "tests/tensors.h"

namespace maki::tests {

inline constexpr TransformerConfig kSmall{.n_layer = 2, .n_head = 2, .n_embd = 12, .block_size = 9, .vocab_size = 7};

inline void add_extras(TransformerConfig& config) {
  config.qk_norm = true;
  config.conv_width = 4;
}

/// Draws matrices with a standard deviation of 0.5 and changes vectors by one of 0.1. At initial values attention is
/// nearly uniform, and comparisons would show little.
inline void randomize(ParameterStore& store, std::uint64_t seed) {
  for (const auto& parameter : store.parameters()) {
    const RandomStream stream(seed, RandomPurpose::test, parameter->name());
    dispatch(store.dtype(), [&]<class T>() {
      T* const value = store.values().data<T>() + parameter->offset();
      for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
        const double draw = stream.normal(static_cast<std::uint64_t>(i));
        value[i] = static_cast<T>(parameter->shape().rank() >= 2 ? 0.5 * draw : value[i] + 0.1 * draw);
      }
    });
  }
  store.mark_changed();
}

/// kSmall in every form of norm, order, positions and activation that changes what a block computes.
inline std::vector<TransformerConfig> gpt_variants() {
  std::vector<TransformerConfig> variants(1, kSmall);
  const auto add = [&](const auto& change) { change(variants.emplace_back(kSmall)); };
  add([](TransformerConfig& c) { c.tie_weights = false; });
  add([](TransformerConfig& c) { c.norm_order = NormOrder::post; });
  add([](TransformerConfig& c) {
    c.positions = Positions::sinusoidal;
    c.position_base = 100;
  });
  add([](TransformerConfig& c) { c.positions = Positions::none; });
  add([](TransformerConfig& c) {
    c.positions = Positions::rotary;
    c.position_base = 100;
  });
  add([](TransformerConfig& c) { c.norm = NormKind::rms; });
  add([](TransformerConfig& c) { c.activation = Activation::swiglu; });
  add([](TransformerConfig& c) { c.ngram_orders = {2, 3}, c.ngram_rows = 60; });
  add([](TransformerConfig& c) { c.qk_norm = true; });
  add([](TransformerConfig& c) { c.conv_width = 3; });
  add([](TransformerConfig& c) {
    c.ffn_width = 20;
    c.norm_epsilon = 1e-3;
  });
  add([](TransformerConfig& c) {  // all extras, with n-grams and rotary positions
    add_extras(c);
    c.positions = Positions::rotary;
    c.norm = NormKind::rms;
    c.ngram_orders = {2}, c.ngram_rows = 60;
  });
  add([](TransformerConfig& c) {  // the original Transformer's order with LLaMA's parts
    c.norm_order = NormOrder::post;
    c.norm = NormKind::rms;
    c.positions = Positions::rotary;
    c.activation = Activation::swiglu;
  });
  add([](TransformerConfig& c) {  // LLaMA
    c.bias = c.tie_weights = false;
    c.norm = NormKind::rms;
    c.positions = Positions::rotary;
    c.activation = Activation::swiglu;
  });
  add([](TransformerConfig& c) {  // LLaMA whose heads share their keys
    c.n_kv_head = 1;
    c.bias = c.tie_weights = false;
    c.norm = NormKind::rms;
    c.positions = Positions::rotary;
    c.activation = Activation::swiglu;
  });
  add([](TransformerConfig& c) {  // one head of keys, and all extras
    c.n_kv_head = 1;
    add_extras(c);
  });
  return variants;
}

/// For INFO: "pre, layer, learned, gelu, biases, tied".
inline std::string describe(const TransformerConfig& c) {
  return std::string(to_string(c.norm_order)) + ", " + to_string(c.norm) + ", " + to_string(c.positions) + ", " +
         to_string(c.activation) + (c.bias ? ", biases" : "") + (c.tie_weights ? ", tied" : "") +
         (c.ngram_orders.empty() ? "" : ", n-grams") + (c.qk_norm ? ", qk_norm" : "") +
         (c.conv_width > 0 ? ", conv" : "") + (c.ffn_width > 0 ? ", width" : "") + (c.n_kv_head > 0 ? ", grouped" : "");
}

struct SmallGpt {
  explicit SmallGpt(const TransformerConfig& config, DType dtype = DType::float32, std::uint64_t seed = 1)
      : store(dtype), model(Scope(store), config) {
    store.seal(seed);
  }
  void randomize(std::uint64_t seed) { tests::randomize(store, seed); }

  ParameterStore store;
  Gpt model;
};

/// Random ids [batch, tokens] below vocab_size, a function of `seed`.
inline Tensor random_ids(std::int64_t batch, std::int64_t tokens, std::int64_t vocab_size, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test);
  Tensor ids = empty({batch, tokens}, DType::int32);
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    const std::uint64_t id = stream.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(vocab_size));
    ids.data<std::int32_t>()[i] = static_cast<std::int32_t>(id);
  }
  return ids;
}

/// Columns begin … end − 1 of ids [B, T].
inline Tensor columns(const Tensor& ids, std::int64_t begin, std::int64_t end) {
  const std::int64_t batch = ids.shape()[0], width = ids.shape()[1];
  Tensor part = empty({batch, end - begin}, DType::int32);
  for (std::int64_t i = 0; i < part.numel(); ++i) {
    part.data<std::int32_t>()[i] = ids.data<std::int32_t>()[i / (end - begin) * width + begin + i % (end - begin)];
  }
  return part;
}

/// Whether `count` elements of a from `a_begin` on have the same bits as those of b from `b_begin` on.
inline bool same_bits(const Tensor& a, std::int64_t a_begin, const Tensor& b, std::int64_t b_begin,
                      std::int64_t count) {
  return a.dtype() == b.dtype() && a_begin + count <= a.numel() && b_begin + count <= b.numel() &&
         dispatch(a.dtype(), [&]<class T>() {
           return std::memcmp(a.data<T>() + a_begin, b.data<T>() + b_begin,
                              sizeof(T) * static_cast<std::size_t>(count)) == 0;
         });
}

}  // namespace maki::tests
