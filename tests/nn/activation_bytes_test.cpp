// The memory that the activations of a training step are said to need, against what the pool holds meanwhile.
#include <cmath>

#include "autograd/core/storage.h"
#include "nn/models/encoder.h"
#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"
#include "tests/nn/small_xl.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kBatch = 8, kTokensPerRow = 64;

// Wide enough that activations are most of what the pool holds, with heads that count.
template <class Config>
Config wider(Config config, std::int64_t layers) {
  config.n_embd = 32;
  config.n_head = 8;
  config.block_size = kTokensPerRow;
  config.n_layer = layers;
  return config;
}

Batch some_text() {
  const Tensor ids = random_ids(kBatch, kTokensPerRow, 7, 1);
  return {.ids = ids, .targets = ids};
}

struct Measured {
  double estimated, saved, peak;  // bytes
};

// One pass; `backward`: and its gradients, else there is no peak.
template <class AnyModel, class Config>
Measured measured(const Config& config, const Batch& batch, bool backward) {
  ParameterStore store(DType::float64);
  const AnyModel model(Scope(store), config);
  store.seal(1);
  const std::unique_ptr<State> carried = model.make_carried(kBatch);
  // What later passes find: a full memory, tables of positions, and space for gradients.
  for (int i = 0; i < 2; ++i) model.loss(batch, {}, carried.get());
  store.gradients();
  Tape tape;
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  storage_pool::reset_peak();
  const Tensor loss = [&] {
    const Recording on(tape);
    return model.loss(batch, {}, carried.get());
  }();
  const std::int64_t saved = storage_pool::statistics().bytes_in_use - before;
  if (backward) tape.backward(loss);
  return {static_cast<double>(model.activation_bytes(kBatch, kTokensPerRow)), static_cast<double>(saved),
          static_cast<double>(storage_pool::statistics().peak_bytes - before)};
}

// That two more blocks are estimated at what they save.
template <class AnyModel, class Config>
void require_blocks(const Config& config, const Batch& batch, double tolerance = 0.01) {
  const Measured one = measured<AnyModel>(wider(config, 1), batch, /*backward=*/false),
                 three = measured<AnyModel>(wider(config, 3), batch, /*backward=*/false);
  const double estimated = three.estimated - one.estimated, saved = three.saved - one.saved;
  INFO(describe(config) << ": " << estimated << " for " << saved);
  REQUIRE(std::abs(estimated - saved) <= tolerance * saved);
}

template <class AnyModel, class Config>
void require_peak(const Config& config, const Batch& batch) {
  const Measured one = measured<AnyModel>(wider(config, 1), batch, /*backward=*/true);
  INFO(describe(config) << ": " << one.estimated << " for " << one.peak);
  REQUIRE(one.estimated > 0.8 * one.peak);
  REQUIRE(one.estimated < 1.3 * one.peak);
}

}  // namespace

TEST_CASE("activations are estimated at what each block of every model saves") {
  const Batch text = some_text();
  for (const TransformerConfig& config : gpt_variants()) require_blocks<GptModel>(config, text);
  for (const char* const form : {"softmax", "elu", "random:20", "nystrom:10"})
    require_blocks<LinearModel>(LinearConfig{kSmall, parse_attention(form)}, text);
  require_blocks<EncoderModel>(EncoderConfig{kSmall}, text);
  for (const TransformerXlConfig& config : xl_variants()) require_blocks<TransformerXlModel>(config, text, 0.03);
  require_blocks<TransformerXlModel>(with_memory(0), text);
  for (const Seq2SeqConfig& config : seq2seq_variants())
    require_blocks<Seq2SeqModel>(config, random_pairs(config, kBatch, kTokensPerRow, kTokensPerRow, 1));
}

TEST_CASE("activations are estimated with the gradients that are alive at the same time") {
  const ThreadsScope one(1);  // each has scratch of its own
  const Batch text = some_text();
  TransformerConfig gated = kSmall, ngrams = kSmall;
  gated.activation = Activation::swiglu;
  ngrams.ngram_orders = {2, 3}, ngrams.ngram_rows = 60;
  for (const TransformerConfig& config : {kSmall, gated, ngrams}) require_peak<GptModel>(config, text);
  require_peak<LinearModel>(LinearConfig{kSmall, parse_attention("elu")}, text);
  require_peak<EncoderModel>(EncoderConfig{kSmall}, text);
  require_peak<TransformerXlModel>(kSmallXl, text);
  require_peak<Seq2SeqModel>(kSmallSeq2Seq, random_pairs(kSmallSeq2Seq, kBatch, kTokensPerRow, kTokensPerRow, 1));
}
