#include "train/loop/attention_maps.h"

#include <cmath>
#include <stdexcept>

#include "autograd/core/table.h"
#include "autograd/ops.h"
#include "data/dataset/masking.h"
#include "data/io/error.h"
#include "nn/features.h"
#include "nn/models/encoder.h"
#include "train/loop/translate.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

Tensor row_of(const std::vector<std::int32_t>& ids) { return tensor(ids, {1, std::ssize(ids)}); }

void check_count(const char* what, const std::vector<std::int32_t>& ids) {
  check(!ids.empty(), "attend: the {} has no token; give a longer one", what);
  check(std::ssize(ids) <= kMaxAttendedTokens, "attend: the {} may have at most {} tokens; it has {}; shorten it", what,
        kMaxAttendedTokens, ids.size());
}

// The attention of a forward pass. A loss runs any model; a classifier has no target for each token.
std::vector<ObservedAttention> observe(const LoadedModel& loaded, const Tensor& ids, const Tensor& source = {}) {
  const auto forward = [&] {
    if (const Encoder* const encoder = loaded.model->as_encoder()) {
      encoder->hidden(ids);
    } else {
      loaded.model->loss({.ids = ids, .targets = ids, .source = source}, {});
    }
  };
  return observe_attention(forward, loaded.state.config.heads_per_kv_head());
}

// Tokens of a model that reads a source: what its encoder reads, what its decoder reads, and what it writes there.
struct Sides {
  std::vector<std::string> source, given, written;
};

// A kind of attention of such a model. In a forward pass, all layers of the encoder come first, and then
// self-attention and cross-attention of each layer of the decoder.
struct SourceAttention {
  const char* name;
  std::vector<std::string> Sides::*queries, Sides::*keys;
  bool causal, in_decoder;
  std::size_t first, step;  // calls before the first one in that half, and from layer to layer
};
constexpr SourceAttention kSourceRows[] = {{"cross", &Sides::written, &Sides::source, false, true, 1, 2},
                                           {"encoder", &Sides::source, &Sides::source, false, false, 0, 1},
                                           {"decoder", &Sides::given, &Sides::given, true, true, 0, 2}};
constexpr Table kSourceAttention("kind", kSourceRows);

}  // namespace

std::vector<std::string> token_bytes(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) tokens.emplace_back(id < tokenizer.vocab_size() ? tokenizer.bytes(id) : kMask);
  return tokens;
}

WeightOptions self_attention_options(const LoadedModel& loaded) {
  const Config& config = loaded.state.config;
  return {.n_head = config.n_head,
          .causal = loaded.model->as_encoder() == nullptr,
          .floor = parse_attention(config.attention).floor()};
}

Tensor checked_attention_weights(const LoadedModel& loaded, const ObservedAttention& call,
                                 const WeightOptions& options) {
  // A share of the largest value, far above rounding and far below any mistake. The denominators of linear attention
  // may be small, so it may have a larger error.
  constexpr double kMaxSoftmaxError = 1e-3, kMaxLinearError = 1e-2;
  const Tensor weights = attention_weights(call, options);
  const double error = weights_error(weights, call);
  check<CheckpointError>(!std::isnan(error), "{}: the attention of this model is not finite; the model has diverged",
                         loaded.path);
  if (error > (call.linear ? kMaxLinearError : kMaxSoftmaxError))
    throw std::logic_error("attend: the weights do not give the output of the attention of this model");
  return reshape(weights, {weights.shape()[1], weights.shape()[2], weights.shape()[3]});
}

std::vector<std::string> attention_kinds(const LoadedModel& loaded) {
  if (task_rule(loaded.state.config).reads_source()) return kSourceAttention.names();
  return {"self"};
}

bool depends_on_target(const std::string& kind) { return kSourceAttention.row(kind).in_decoder; }

AttentionMaps attention_maps(const LoadedModel& loaded, const std::vector<std::int32_t>& ids) {
  check_count("prompt", ids);
  const WeightOptions options = self_attention_options(loaded);
  AttentionMaps maps{.kind = "self",
                     .causal = options.causal,
                     .queries = token_bytes(*loaded.tokenizer, ids),
                     .keys = token_bytes(*loaded.tokenizer, ids),
                     .layers = {}};
  for (const ObservedAttention& call : observe(loaded, row_of(ids)))
    maps.layers.push_back(checked_attention_weights(loaded, call, options));
  check(!maps.layers.empty(),
        "{}: is a model of kind {}, whose attention cannot be drawn; use a run of gpt, linear, encoder or seq2seq",
        loaded.path, loaded.model->kind());
  return maps;
}

AttentionMaps attention_maps(const LoadedModel& loaded, const std::string& kind,
                             const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target) {
  check_count("prompt", source);
  check(std::ssize(target) <= kMaxAttendedTokens,
        "attend: the target may have at most {} tokens; it has {}; shorten it", kMaxAttendedTokens, target.size());
  const SourceAttention& row = kSourceAttention.row(kind);
  const PairEnds ends = ends_of(loaded.tokenizers);
  std::vector<std::int32_t> read = source, given = {ends.target};
  read.push_back(ends.source);
  given.insert(given.end(), target.begin(), target.end());
  const std::vector<ObservedAttention> calls = observe(loaded, row_of(given), row_of(read));

  Sides sides{token_bytes(*loaded.tokenizers.source, source), {"<start>"}, {}};
  sides.source.emplace_back("<end>");
  sides.written = token_bytes(*loaded.tokenizers.target, target);
  sides.given.insert(sides.given.end(), sides.written.begin(), sides.written.end());
  sides.written.emplace_back("<end>");
  AttentionMaps maps{
      .kind = kind, .causal = row.causal, .queries = sides.*row.queries, .keys = sides.*row.keys, .layers = {}};
  const WeightOptions options{.n_head = loaded.state.config.n_head, .causal = row.causal};
  const auto layers = static_cast<std::size_t>(loaded.state.config.n_layer);
  for (std::size_t i = 0; i < layers; ++i) {
    const ObservedAttention& call = calls.at((row.in_decoder ? layers : 0) + row.first + i * row.step);
    maps.layers.push_back(checked_attention_weights(loaded, call, options));
  }
  return maps;
}

}  // namespace maki
