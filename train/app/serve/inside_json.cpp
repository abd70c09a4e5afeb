#include "train/app/serve/inside_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "data/io/number.h"
#include "train/app/reading.h"
#include "train/app/serve/json_body.h"
#include "train/loop/attention_maps.h"

namespace maki {
namespace {

constexpr std::int64_t kInsideColumns = 16;  // of embeddings and positions: as many as a picture has room for
constexpr std::int64_t kInsideLogits = 12;   // the most probable tokens after the text

// The first columns of each row of a tensor, or all; null for an empty handle.
FloatJson inside_rows(const Tensor& x, std::int64_t columns = std::numeric_limits<std::int64_t>::max()) {
  if (!x) return nullptr;
  FloatJson rows = FloatJson::array();
  const std::int64_t width = x.shape().cols();
  dispatch(x.dtype(), [&]<class T>() {
    for (const T* row = x.data<T>(); row != x.data<T>() + x.numel(); row += width)
      rows.push_back(std::vector<float>(row, row + std::min(width, columns)));
  });
  return rows;
}

FloatJson inside_attention(const InsideAttention& a) {
  FloatJson json{{"layer", a.layer},   {"head", a.head},     {"layers", a.layers},          {"heads", a.heads},
                 {"causal", a.causal}, {"linear", a.linear}, {"width", a.value.shape()[1]}, {"scale", a.scale}};
  json.update({{"query", inside_rows(a.query)},
               {"key", inside_rows(a.key)},
               {"value", inside_rows(a.value)},
               {"bias", nullptr},
               {"scores", inside_rows(a.scores)},
               {"weights", inside_rows(a.weights)},
               {"output", inside_rows(a.output)}});
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

std::string answer_inside(const InsideRequest& request, const LoadedModel& loaded) {
  const std::vector<std::int32_t> ids = encode_text(loaded, request.text, "text", Unknown::error);
  return inside_json(request, loaded, look_inside(loaded, ids, request.options));
}

std::string inside_json(const InsideRequest& request, const LoadedModel& loaded, const InsideModel& inside) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  return json_text(FloatJson{
      {"model", request.model},
      {"step", loaded.state.step},
      {"tokens", inside.tokens},
      {"ids", inside.ids},
      {"embedding",
       {{"columns", inside.embedding.shape()[1]}, {"values", inside_rows(inside.embedding, kInsideColumns)}}},
      {"position", {{"kind", inside.position_kind}, {"values", inside_rows(inside.positions, kInsideColumns)}}},
      {"attention", inside.attention ? inside_attention(*inside.attention) : FloatJson(nullptr)},
      {"layer_predictions", inside_predictions(tokenizer, inside)},
      {"logits", inside_logits(tokenizer, inside, request.options.temperature)}});
}

}  // namespace maki
