// Key–value cache: keeps the keys and values of the tokens that a model has read, so that the next token costs a
// forward pass over one row instead of over the whole sequence.
//
// Thread safety: none; a cache is used by one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/ops.h"
#include "nn/model.h"
#include "nn/ngram.h"
#include "nn/short_conv.h"

namespace maki {

/// Throws Error unless there is at least one row and each is in [0, batch), as State::reorder() requires. `state` is
/// how the message names the state.
void check_rows(const char* state, std::span<const std::int32_t> rows, std::int64_t batch);

/// A copy of the rows of x [B, …], any type, with the given indices along its first axis. Requires: each is in [0, B).
Tensor rows_of(const Tensor& x, std::span<const std::int32_t> rows);

/// The part of the cache that belongs to one layer: k‖v of up to `capacity` tokens per sequence.
class KvLayer {
 public:
  /// kv_width: the columns of keys, as many as values have; C unless heads share them.
  KvLayer(std::int64_t batch, std::int64_t capacity, std::int64_t kv_width, DType dtype);

  /// Appends the keys and values of t new tokens, packed q‖k‖v as attention() takes them, and attends from the new
  /// tokens to all tokens held: [B, t, C], bit-identical to the same rows of attention over the whole sequence. A
  /// key_mask in the options is [B, number of tokens then held]. Throws Error in a Recording, if B or the columns are
  /// not those of the cache, if more than `capacity` tokens would be held, or for a key_mask of another shape; the
  /// layer then holds what it held before.
  Tensor attend(const Tensor& qkv, const Attention& options);
  std::int64_t length() const { return length_; }
  /// Sequence i becomes the former sequence rows[i]. Requires: each is in [0, batch).
  void reorder(std::span<const std::int32_t> rows);
  /// The last inputs of the layer's short convolutions, if it has any.
  RecentInputs recent;

 private:
  friend class KvCache;
  std::int64_t capacity_, length_ = 0;
  Tensor kv_;  // [B, capacity, 2 · kv_width]; rows from length_ on are uninitialised or stale
};

/// The cache of all layers of a model, for a batch of sequences of equal length. Created by Gpt::make_cache(), and for
/// the decoder by Seq2SeqState.
class KvCache final : public State {
 public:
  /// Allocates batch · capacity · 2 · kv_width elements per layer. `recent` keeps recent_tokens tokens. Throws Error
  /// unless layers, batch and capacity are at least 1.
  KvCache(std::int64_t n_layer, std::int64_t batch, std::int64_t capacity, std::int64_t kv_width, DType dtype,
          std::int64_t recent_tokens = 0);

  std::int64_t batch() const override { return batch_; }
  /// Tokens held per sequence.
  std::int64_t length() const override { return layers_.back().length(); }
  std::int64_t capacity() const override { return capacity_; }
  std::int64_t layers() const { return std::ssize(layers_); }
  KvLayer& layer(std::size_t i) { return layers_[i]; }
  /// Removes all tokens. Must be called if a forward pass throws halfway, because some layers have then appended its
  /// tokens and others have not.
  void clear() override;
  void reorder(std::span<const std::int32_t> rows) override;
  /// kv.0, kv.1, …: k‖v of each layer, [B, capacity, 2 · kv_width].
  std::vector<std::pair<std::string, Tensor*>> tensors() override;
  /// The last tokens, if the model has n-gram embeddings or a prior.
  RecentTokens recent;

 private:
  std::int64_t batch_, capacity_;
  std::vector<KvLayer> layers_;
};

}  // namespace maki
