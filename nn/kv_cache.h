// The keys and values of the tokens a model has read: what makes the next token cost one row in place of a whole
// window.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/ops.h"

namespace maki {

struct GptConfig;

class KvCache {
 public:
  /// Room for block_size tokens of `batch` sequences.
  KvCache(const GptConfig& config, std::int64_t batch, DType dtype);

  std::int64_t length() const { return length_; }
  void clear() { length_ = 0; }

  /// One layer's attention for t new tokens, packed q‖k‖v [B, t, 3C]: stores their keys and values behind those of
  /// earlier tokens and attends from the new ones to all → [B, t, C]. Not recorded.
  Tensor attend(std::int64_t layer, const Tensor& qkv, const Attention& options);
  /// After all layers: the new tokens count.
  void advance(std::int64_t tokens) { length_ += tokens; }

 private:
  std::int64_t capacity_, batch_, n_embd_, length_ = 0;
  std::vector<Tensor> layers_;  // [B, capacity, 2C] each, k‖v; rows from length_ on are stale
};

}  // namespace maki
