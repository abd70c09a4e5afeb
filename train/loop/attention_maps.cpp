#include "train/loop/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autograd/ops.h"
#include "data/dataset/masking.h"
#include "data/io/error.h"
#include "nn/attention_weights.h"
#include "nn/models/encoder.h"
#include "nn/models/linear.h"
#include "nn/models/seq2seq.h"
#include "train/loop/translate.h"
#include "train/loop/without_dropout.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

Tensor row_of(const std::vector<std::int32_t>& ids) { return tensor(ids, {1, std::ssize(ids)}); }

void check_count(const char* what, const std::vector<std::int32_t>& ids) {
  check(!ids.empty(), "attend: the {} has no token; give a longer one", what);
  check(std::ssize(ids) <= kMaxAttendedTokens, "attend: the {} may have at most {} tokens; it has {}; shorten it", what,
        kMaxAttendedTokens, ids.size());
}

// The first id after those of the tokenizer is a mask, if the model reads masks.
std::vector<std::string> token_bytes(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) tokens.emplace_back(id < tokenizer.vocab_size() ? tokenizer.bytes(id) : kMask);
  return tokens;
}

// The weights of one call, [H, T, S], after comparing what they give with what the op gave: a picture of other weights
// than those of the model would be a defect.
Tensor checked_weights(const LoadedModel& loaded, const ObservedAttention& call, const WeightOptions& options) {
  // A share of the largest value. The denominators of linear attention may be small, so it may have a larger error.
  constexpr double kMaxSoftmaxError = 1e-3, kMaxLinearError = 1e-2;
  const Tensor weights = attention_weights(call, options);
  const double error = weights_error(weights, call);
  check<CheckpointError>(!std::isnan(error), "{}: the attention of this model is not finite; the model has diverged",
                         loaded.path);
  if (error > (call.linear ? kMaxLinearError : kMaxSoftmaxError))
    throw std::logic_error("attend: the weights do not give the output of the attention of this model");
  return reshape(weights, {weights.shape()[1], weights.shape()[2], weights.shape()[3]});
}

// The lower bound on the denominators of linear attention in a layer; 0 for softmax attention.
double floor_of(const Model& model, std::size_t layer) {
  const auto* const linear = dynamic_cast<const LinearModel*>(&model);
  return linear != nullptr && !linear->maps.empty() ? linear->maps[layer].floor() : 0;
}

// A forward pass over one text. A loss runs any model; a classifier has no target for each token.
void read_text(const Model& model, const Tensor& ids) {
  if (const Encoder* const encoder = model.as_encoder()) {
    encoder->hidden(ids);
    return;
  }
  Batch batch;
  batch.ids = batch.targets = ids;
  model.loss(batch, {});
}

}  // namespace

std::vector<std::string> attention_kinds(const LoadedModel& loaded) {
  const std::string kind = loaded.model->kind();
  if (kind == "seq2seq") return {"cross", "encoder", "decoder"};
  check(kind == "gpt" || kind == "linear" || kind == "encoder",
        "{}: is a model of kind {}, whose attention cannot be drawn; use a run of gpt, linear, encoder or seq2seq",
        loaded.path, kind);
  return {"self"};
}

AttentionMaps attention_maps(const LoadedModel& loaded, const std::vector<std::int32_t>& ids) {
  check_count("prompt", ids);
  const ModelWithoutDropout still(loaded);
  AttentionMaps maps{.kind = "self",
                     .causal = std::string_view(still.model->kind()) != "encoder",
                     .queries = token_bytes(*loaded.tokenizer, ids),
                     .keys = token_bytes(*loaded.tokenizer, ids),
                     .layers = {}};
  const Config& config = loaded.state.config;
  for (const ObservedAttention& call :
       observe_attention([&] { read_text(*still.model, row_of(ids)); }, config.heads_per_kv_head())) {
    const WeightOptions options{
        .n_head = config.n_head, .causal = maps.causal, .floor = floor_of(*still.model, maps.layers.size())};
    maps.layers.push_back(checked_weights(loaded, call, options));
  }
  return maps;
}

AttentionMaps attention_maps(const LoadedModel& loaded, const std::string& kind,
                             const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target) {
  check_count("prompt", source);
  check(std::ssize(target) <= kMaxAttendedTokens,
        "attend: the target may have at most {} tokens; it has {}; shorten it", kMaxAttendedTokens, target.size());
  const PairEnds ends = ends_of(loaded.tokenizers);
  std::vector<std::int32_t> read = source, written = {ends.target};
  read.push_back(ends.source);
  written.insert(written.end(), target.begin(), target.end());
  const ModelWithoutDropout still(loaded);
  const Seq2Seq& model = dynamic_cast<const Seq2SeqModel&>(*still.model).seq2seq;
  const std::vector<ObservedAttention> calls =
      observe_attention([&] { model.decode(row_of(written), model.encode(row_of(read))); });

  AttentionMaps maps{.kind = kind, .causal = kind == "decoder", .queries = {}, .keys = {}, .layers = {}};
  maps.keys = token_bytes(*loaded.tokenizers.source, source);
  maps.keys.emplace_back("<end>");
  maps.queries = maps.keys;
  if (kind != "encoder") maps.queries = token_bytes(*loaded.tokenizers.target, target);
  if (kind == "cross") maps.queries.emplace_back("<end>");
  if (kind == "decoder") maps.queries.insert(maps.queries.begin(), "<start>");
  if (kind == "decoder") maps.keys = maps.queries;

  // First the layers of the encoder; then self-attention and cross-attention of each layer of the decoder.
  const auto layers = static_cast<std::size_t>(model.config.n_layer);
  const std::size_t first = kind == "encoder" ? 0 : kind == "decoder" ? layers : layers + 1;
  const std::size_t step = kind == "encoder" ? 1 : 2;
  for (std::size_t i = 0; i < layers; ++i) {
    const WeightOptions options{.n_head = model.config.n_head, .causal = maps.causal};
    maps.layers.push_back(checked_weights(loaded, calls.at(first + i * step), options));
  }
  return maps;
}

}  // namespace maki
