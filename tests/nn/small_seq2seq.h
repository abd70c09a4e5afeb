// A small encoder–decoder with its store, and a batch of pairs with padding on both sides.
#pragma once

#include "nn/models/seq2seq.h"
#include "tests/nn/small_gpt.h"

namespace maki::tests {

inline constexpr Seq2SeqConfig kSmallSeq2Seq{{.n_layer = 2,
                                              .n_head = 2,
                                              .n_embd = 12,
                                              .block_size = 9,
                                              .vocab_size = 7,
                                              .activation = Activation::relu,
                                              .norm_order = NormOrder::post,
                                              .positions = Positions::sinusoidal},
                                             11};

/// The forms that a test runs over: post-norm as published, pre-norm with learned positions, a shared table with a head
/// of its own, n-gram embeddings, the numbers of LLaMA's blocks, and what plans choose.
inline std::vector<Seq2SeqConfig> seq2seq_variants() {
  std::vector<Seq2SeqConfig> list(6, kSmallSeq2Seq);
  list[1].norm_order = NormOrder::pre;
  list[1].positions = Positions::learned;
  list[1].activation = Activation::gelu;
  list[2].shared_embeddings = true;
  list[2].tie_weights = false;
  list[2].source_vocab_size = 7;
  list[2].bias = false;
  list[3].ngram_orders = {2, 3}, list[3].ngram_rows = 49;
  list[4].ffn_width = 20;
  list[4].norm_epsilon = 1e-3;
  list[5].norm_order = NormOrder::pre;
  list[5].norm = NormKind::rms;
  list[5].positions = Positions::rotary;
  list[5].activation = Activation::relu_squared;
  list[5].bias = false;
  list[5].qk_norm = true;
  return list;
}

struct SmallSeq2Seq {
  explicit SmallSeq2Seq(const Seq2SeqConfig& config, DType dtype = DType::float32, std::uint64_t seed = 1)
      : store(dtype), wrapped(Scope(store), config), model(wrapped.seq2seq) {
    store.seal(seed);
  }
  void randomize(std::uint64_t seed) { tests::randomize(store, seed); }

  ParameterStore store;
  Seq2SeqModel wrapped;
  const Seq2Seq& model;
};

/// `batch` pairs of S source and T target tokens. From the second pair on, each source and target is one token shorter
/// than the one before, but at least one token long: the rest is masked in the source and ignored in the targets. The
/// targets are drawn independently of the ids that the decoder reads.
inline Batch random_pairs(const Seq2SeqConfig& config, std::int64_t batch, std::int64_t source, std::int64_t target,
                          std::uint64_t seed) {
  Batch pairs{.ids = random_ids(batch, target, config.vocab_size, seed),
              .targets = random_ids(batch, target, config.vocab_size, seed + 1),
              .source = random_ids(batch, source, config.source_vocab_size, seed + 2),
              .source_mask = full({batch, source}, DType::int32, 1)};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t s = std::max<std::int64_t>(1, source - b); s < source; ++s) {
      pairs.source_mask.data<std::int32_t>()[b * source + s] = 0;
    }
    for (std::int64_t t = std::max<std::int64_t>(1, target - b); t < target; ++t) {
      pairs.targets.data<std::int32_t>()[b * target + t] = CrossEntropy{}.ignored;
    }
  }
  return pairs;
}

}  // namespace maki::tests
