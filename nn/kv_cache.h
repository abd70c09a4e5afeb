// The keys and values of the tokens a model has read: what makes the next token cost one row in place of a whole
// window.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/ops.h"

namespace maki {

/// One layer's part: k‖v of up to `capacity` tokens.
class KvLayer {
 public:
  KvLayer(std::int64_t batch, std::int64_t capacity, std::int64_t n_embd, DType dtype);

  /// Stores the keys and values of t new tokens, packed q‖k‖v [B, t, 3C], behind those of earlier ones, and attends
  /// from the new tokens to all: [B, t, C], the same bits as attention over the whole sequence gives for these rows.
  /// Throws in a Recording, when the sizes are others, or when more than `capacity` tokens would be held.
  Tensor attend(const Tensor& qkv, const Attention& options);
  std::int64_t length() const { return length_; }

 private:
  friend class KvCache;
  std::int64_t capacity_, length_ = 0;
  Tensor kv_;  // [B, capacity, 2C]; rows from length_ on are stale
};

/// All layers of a model, for a batch of sequences of equal length. Made by Gpt::make_cache().
class KvCache {
 public:
  KvCache(std::int64_t n_layer, std::int64_t batch, std::int64_t capacity, std::int64_t n_embd, DType dtype);

  std::int64_t batch() const { return batch_; }
  /// Tokens read so far.
  std::int64_t length() const { return layers_.back().length(); }
  std::int64_t capacity() const { return capacity_; }
  KvLayer& layer(std::size_t i) { return layers_[i]; }
  /// Forgets all tokens; also what to do after an error in the middle of a forward pass.
  void clear();

 private:
  std::int64_t batch_, capacity_;
  std::vector<KvLayer> layers_;
};

}  // namespace maki
