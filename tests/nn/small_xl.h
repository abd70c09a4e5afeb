// Shared by the tests of Transformer-XL: a small model with its store, and what it computes segment by segment.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "nn/models/transformer_xl.h"
#include "tests/nn/small_gpt.h"

namespace maki::tests {

inline constexpr TransformerXlConfig kSmallXl{
    {.n_layer = 2, .n_head = 2, .n_embd = 12, .block_size = 9, .vocab_size = 7}, 11};

struct SmallXl {
  explicit SmallXl(const TransformerXlConfig& config, DType dtype = DType::float32)
      : store(dtype), model(Scope(store), config) {
    store.seal(1);
    randomize(store, 3);
  }
  std::unique_ptr<SegmentMemory> memory(std::int64_t batch) const {
    return std::unique_ptr<SegmentMemory>(dynamic_cast<SegmentMemory*>(model.make_carried(batch).release()));
  }

  ParameterStore store;
  TransformerXlModel model;
};

inline TransformerXlConfig with_memory(std::int64_t memory, std::int64_t block_size = kSmallXl.block_size) {
  TransformerXlConfig config = kSmallXl;
  config.memory = memory;
  config.block_size = block_size;
  return config;
}

/// kSmallXl in every form of norm, order and activation, and with n-gram embeddings.
inline std::vector<TransformerXlConfig> xl_variants() {
  std::vector<TransformerXlConfig> list(5, kSmallXl);
  list[1].norm_order = NormOrder::post;
  list[1].tie_weights = false;
  list[2].norm = NormKind::rms;
  list[2].activation = Activation::swiglu;
  list[2].bias = false;
  list[3].norm_order = NormOrder::post;
  list[3].norm = NormKind::rms;
  list[3].activation = Activation::relu;
  list[3].memory = 5;
  list[3].ffn_width = 20;
  list[3].norm_epsilon = 1e-3;
  list[4].ngram_orders = {2, 4}, list[4].ngram_rows = 49;
  return list;
}

/// The logits of all tokens, in segments of block_size with a memory: what training computes.
inline Tensor in_segments(const SmallXl& xl, const Tensor& ids) {
  const std::unique_ptr<SegmentMemory> memory = xl.memory(ids.shape()[0]);
  std::vector<Tensor> parts;
  const std::int64_t tokens = ids.shape()[1], size = xl.model.net.config.block_size;
  for (std::int64_t begin = 0; begin < tokens; begin += size) {
    parts.push_back(xl.model.logits(columns(ids, begin, std::min(tokens, begin + size)), memory.get()));
  }
  return concat(parts, 1);
}

}  // namespace maki::tests
