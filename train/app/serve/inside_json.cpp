#include "train/app/serve/inside_json.h"

#include <cmath>

#include "autograd/ops.h"
#include "data/io/number.h"
#include "train/app/serve/json_body.h"
#include "train/loop/attention_maps.h"

namespace maki {
namespace {

constexpr std::int64_t kInsideColumns = 16;  // of embeddings and positions: as many as a picture has room for
constexpr std::int64_t kInsideLogits = 12;   // the most probable tokens after the text

FloatJson inside_attention(const InsideAttention& a) {
  FloatJson json{{"layer", a.layer},   {"head", a.head},     {"layers", a.layers},          {"heads", a.heads},
                 {"causal", a.causal}, {"linear", a.linear}, {"width", a.value.shape()[1]}, {"scale", a.scale}};
  json.update({{"query", rows_json(a.query)},
               {"key", rows_json(a.key)},
               {"value", rows_json(a.value)},
               {"scores", rows_json(a.scores)},
               {"weights", rows_json(a.weights)},
               {"output", rows_json(a.output)}});
  return json;
}

FloatJson inside_entry(const Tokenizer& tokenizer, const LogProbability& entry) {
  return {{"token", token_bytes(tokenizer, {entry.id}).front()},
          {"id", entry.id},
          {"probability", static_cast<float>(std::exp(entry.value))}};
}

FloatJson inside_predictions(const Tokenizer& tokenizer, const InsideModel& inside) {
  FloatJson layers = FloatJson::array();
  for (const auto& layer : inside.predictions) {
    FloatJson positions = FloatJson::array();
    for (const std::vector<LogProbability>& position : layer) {
      FloatJson& top = positions.emplace_back(FloatJson::array());
      for (const LogProbability& entry : position) top.push_back(inside_entry(tokenizer, entry));
    }
    layers.push_back({{"layer", layers.size()}, {"top", std::move(positions)}});
  }
  return layers;
}

FloatJson inside_logits(const Tokenizer& tokenizer, const InsideModel& inside, double temperature) {
  if (!inside.logits) return nullptr;
  FloatJson top = FloatJson::array();
  for (const LogProbability& entry : log_probabilities(scale(inside.logits, 1 / temperature), 0, kInsideLogits).top) {
    top.push_back(inside_entry(tokenizer, entry));
    top.back()["logit"] = static_cast<float>(inside.logits.at(entry.id));
  }
  return {{"top", std::move(top)}};
}

}  // namespace

InsideRequest parse_inside_request(std::string_view text) {
  JsonBody body(text);
  InsideRequest request{.model = body.text("model", "GET /v1/models lists those that can be named"),
                        .text = body.text("text", "send what the model is to read"),
                        .options = {}};
  InsideOptions& options = request.options;
  options.layer = body.number("layer", options.layer, 0, kMaxCount);
  options.head = body.number("head", options.head, 0, kMaxCount);
  options.top = body.number("top", options.top, 1, kMaxInsideTop);
  constexpr double kMinTemperature = 1e-6;  // logits that are divided by it stay finite
  options.temperature = body.number("temperature", options.temperature, kMinTemperature, kMaxCount);
  body.require_no_others();
  return request;
}

std::string inside_json(const InsideRequest& request, const LoadedModel& loaded, const InsideModel& inside) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  return json_text(
      FloatJson{{"model", request.model},
                {"step", loaded.state.step},
                {"tokens", inside.tokens},
                {"ids", inside.ids},
                {"embedding",
                 {{"columns", inside.embedding.shape()[1]}, {"values", rows_json(inside.embedding, kInsideColumns)}}},
                {"position", {{"kind", inside.position_kind}, {"values", rows_json(inside.positions, kInsideColumns)}}},
                {"attention", inside.attention ? inside_attention(*inside.attention) : FloatJson(nullptr)},
                {"layer_predictions", inside_predictions(tokenizer, inside)},
                {"logits", inside_logits(tokenizer, inside, request.options.temperature)}});
}

}  // namespace maki
