#include "train/loop/look_inside.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "nn/generate/sampler.h"
#include "train/loop/attention_maps.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

void check_inside_options(const LoadedModel& loaded, const InsideOptions& o) {
  const Config& config = loaded.state.config;
  check(o.layer >= 0 && o.layer < config.n_layer, "layer: must be from 0 to {}, because {} has {} layers; got {}",
        config.n_layer - 1, loaded.path, config.n_layer, o.layer);
  check(o.head >= 0 && o.head < config.n_head, "head: must be from 0 to {}, because {} has {} heads; got {}",
        config.n_head - 1, loaded.path, config.n_head, o.head);
  check(o.top >= 1, "top: must be at least 1; got {}; give the number of tokens for each prediction", o.top);
  check(std::isfinite(o.temperature) && o.temperature > 0,
        "temperature: must be above 0; got {}; 1 gives the probabilities of the model itself", o.temperature);
}

void check_inside_ids(const LoadedModel& loaded, const std::vector<std::int32_t>& ids) {
  const std::int64_t most = std::min(kMaxInsideTokens, loaded.state.config.block_size);
  check(!ids.empty(), "text: must have at least one token; got none; give a longer one");
  check(std::ssize(ids) <= most, "text: may have at most {} tokens; got {}; shorten it", most, ids.size());
}

// The columns of part `i` of x [1, T, parts · width], as [T, width].
Tensor part_of_columns(const Tensor& x, std::int64_t i, std::int64_t parts) {
  const std::int64_t width = x.shape()[2] / parts;
  return reshape(slice(x, 2, i * width, (i + 1) * width), {x.shape()[1], width});
}

InsideAttention one_head(const LoadedModel& loaded, const ObservedAttention& call, const InsideOptions& o) {
  const Config& config = loaded.state.config;
  const WeightOptions options = self_attention_options(loaded);
  const std::int64_t group = o.head / config.heads_per_kv_head();
  InsideAttention a{.layer = o.layer,
                    .head = o.head,
                    .layers = config.n_layer,
                    .heads = config.n_head,
                    .causal = options.causal,
                    .linear = call.linear,
                    .query = part_of_columns(call.q, o.head, config.n_head),
                    .key = part_of_columns(call.k, group, config.kv_heads()),
                    .value = part_of_columns(call.v, group, config.kv_heads()),
                    .scale = 1,
                    .scores = {},
                    .weights = {},
                    .output = part_of_columns(call.y, o.head, config.n_head)};
  const std::int64_t tokens = a.query.shape()[0];
  if (!a.linear) a.scale = 1 / std::sqrt(static_cast<double>(a.query.shape()[1]));
  a.scores = scale(linear(a.query, a.key), a.scale);
  const auto row = [](const Tensor& x) { return reshape(x, {1, x.shape()[0], x.shape()[1]}); };
  const ObservedAttention alone{
      .linear = a.linear, .q = row(a.query), .k = row(a.key), .v = row(a.value), .y = row(a.output)};
  a.weights = reshape(checked_attention_weights(loaded, alone, {1, options.causal, options.floor}), {tokens, tokens});
  return a;
}

// The most probable tokens at each of T tokens, from logits [T, V].
std::vector<std::vector<LogProbability>> most_probable(const LoadedModel& loaded, const Tensor& logits,
                                                       const InsideOptions& o) {
  const std::int64_t vocabulary = logits.shape().cols();
  const Tensor divided = o.temperature == 1 ? logits : scale(logits, 1 / o.temperature);
  std::vector<std::vector<LogProbability>> all;
  for (std::int64_t t = 0; t < logits.shape()[0]; ++t) {
    TokenLogProbabilities token = log_probabilities(divided.slice_flat(t * vocabulary, {vocabulary}), 0, o.top);
    check<BadLogitsError>(!std::isnan(token.drawn.value),
                          "{}: the logits of the model are not finite; it has diverged, use an earlier checkpoint",
                          loaded.path);
    all.push_back(std::move(token.top));
  }
  return all;
}

}  // namespace

bool can_look_inside(const Config& config) { return !task_rule(config).reads_source(); }

InsideModel look_inside(const LoadedModel& loaded, const std::vector<std::int32_t>& ids, const InsideOptions& options) {
  check(can_look_inside(loaded.state.config),
        "{}: is a model of kind {}, which reads a source; use a run of a model that reads one text, such as gpt",
        loaded.path, loaded.model->kind());
  check_inside_options(loaded, options);
  check_inside_ids(loaded, ids);
  const Config& config = loaded.state.config;
  const std::int64_t tokens = std::ssize(ids);
  std::optional<ForwardParts> parts;
  const std::vector<ObservedAttention> calls = observe_attention(
      [&] {
        parts = loaded.model->forward_parts(tensor(ids, {1, tokens}));
      },
      config.heads_per_kv_head());
  const std::int64_t layers = config.n_layer, seen = std::ssize(calls);
  if (!parts || std::ssize(parts->streams) != layers + 1 || (seen != 0 && seen != layers))
    throw std::logic_error("look inside: this kind of model does not show its layers");
  InsideModel inside{.ids = ids,
                     .tokens = token_bytes(*loaded.tokenizer, ids),
                     .embedding = reshape(parts->embedding, {tokens, -1}).detach(),
                     .positions = parts->positions.detach(),
                     .position_kind = parts->position_kind,
                     .attention = {},
                     .predictions = {},
                     .logits = {}};
  if (!calls.empty()) inside.attention = one_head(loaded, calls[static_cast<std::size_t>(options.layer)], options);
  if (!parts->logits) return inside;
  Tensor logits;  // [T, V] of the stream that was read last
  for (const Tensor& stream : parts->streams) {
    logits = reshape(parts->logits(stream), {tokens, -1}).detach();
    inside.predictions.push_back(most_probable(loaded, logits, options));
  }
  const std::int64_t vocabulary = logits.shape().cols();
  inside.logits = logits.slice_flat((tokens - 1) * vocabulary, {vocabulary}).clone();
  return inside;
}

}  // namespace maki
