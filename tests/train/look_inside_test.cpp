// What is inside a model, against the same numbers from elsewhere: the weights of `maki attend`, the predictions of
// generation, and the formulas that connect the parts.
#include "train/loop/look_inside.h"

#include <cmath>

#include "data/io/error.h"
#include "nn/models/encoder.h"
#include "tests/train/small_loaded.h"
#include "train/app/report.h"
#include "train/app/serve/inside_json.h"
#include "train/loop/attention_maps.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<std::int32_t> kRead = {0, 3, 3, 1, 5, 2, 0, 4};

double at(const Tensor& x, std::int64_t row, std::int64_t column) { return x.at(row * x.shape().cols() + column); }

// Row t of the scores without what a causal model masks, as probabilities; divided by its sum if attention is linear,
// or by the floor if the sum is below it.
std::vector<double> weighed(const InsideAttention& a, std::int64_t t, double floor) {
  const std::int64_t keys = a.causal ? t + 1 : a.scores.shape()[0];
  std::vector<double> row;
  double sum = 0;
  for (std::int64_t s = 0; s < keys; ++s) {
    row.push_back(a.linear ? at(a.scores, t, s) : std::exp(at(a.scores, t, s)));
    sum += row.back();
  }
  for (double& x : row) x /= std::max(sum, floor);
  row.resize(static_cast<std::size_t>(a.scores.shape()[0]));
  return row;
}

// That weights, values and output belong together, and the weights to these scores.
void require_formulas(const InsideAttention& a, double floor = 0) {
  const std::int64_t tokens = std::ssize(kRead);
  REQUIRE(a.scores.shape() == Shape{tokens, tokens});
  REQUIRE(a.output.shape() == a.value.shape());
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::vector<double> expected = weighed(a, t, floor);
    for (std::int64_t s = 0; s < tokens; ++s) {
      double product = 0;
      for (std::int64_t f = 0; f < a.query.shape()[1]; ++f) product += at(a.query, t, f) * at(a.key, s, f);
      REQUIRE(at(a.scores, t, s) == Approx(a.scale * product).margin(1e-9));
      REQUIRE(at(a.weights, t, s) == Approx(expected[static_cast<std::size_t>(s)]).margin(1e-9));
    }
    for (std::int64_t d = 0; d < a.value.shape()[1]; ++d) {
      double sum = 0;
      for (std::int64_t s = 0; s < tokens; ++s) sum += at(a.weights, t, s) * at(a.value, s, d);
      REQUIRE(at(a.output, t, d) == Approx(sum).margin(1e-4));
    }
  }
}

// That the last predictions are those of generation, and the logits of the last token.
void require_own_predictions(const LoadedModel& loaded, const InsideModel& inside) {
  const std::unique_ptr<State> state = loaded.generator().start(1);
  for (std::size_t t = 0; t < kRead.size(); ++t) {
    const Tensor logits = loaded.generator().next_logits(tensor<std::int32_t>({&kRead[t], 1}, {1, 1}), *state);
    const auto expected = log_probabilities(logits, 0, 3).top;
    const std::vector<LogProbability>& top = inside.predictions.back()[t];
    REQUIRE(top.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) {
      REQUIRE(top[k].id == expected[k].id);
      REQUIRE(top[k].value == Approx(expected[k].value).margin(2e-5));
    }
    if (t + 1 < kRead.size()) continue;
    REQUIRE(inside.logits.numel() == loaded.state.vocab_size);
    for (std::int64_t v = 0; v < logits.numel(); ++v) REQUIRE(inside.logits.at(v) == Approx(logits.at(v)).margin(2e-4));
  }
}

}  // namespace

TEST_CASE("what is inside a model agrees with its attention maps and with generation, for every option") {
  const TemporaryFolder folder;
  for (const SmallModel& small : small_language_models()) {
    INFO(small.name);
    const LoadedModel loaded(write_small_model(folder / "small.maki", small.config));
    REQUIRE(can_look_inside(loaded.state.config));
    const bool seen = small.config.model != "transformer-xl";
    const AttentionMaps maps = seen ? attention_maps(loaded, kRead) : AttentionMaps{};
    for (const auto& [layer, head] : {std::pair{0, 0}, {0, 1}, {1, 3}}) {
      const InsideModel inside = look_inside(loaded, kRead, {.layer = layer, .head = head, .top = 3});
      REQUIRE(inside.tokens == token_bytes(*loaded.tokenizer, kRead));
      REQUIRE(inside.predictions.size() == 3);
      require_own_predictions(loaded, inside);
      REQUIRE(inside.attention.has_value() == seen);
      if (!seen) continue;
      require_formulas(*inside.attention, self_attention_options(loaded).floor);
      const Tensor& all = maps.layers[static_cast<std::size_t>(layer)];
      const std::int64_t tokens = std::ssize(kRead);
      for (std::int64_t i = 0; i < tokens * tokens; ++i)
        REQUIRE(inside.attention->weights.at(i) == all.at(head * tokens * tokens + i));
      REQUIRE(inside.attention->linear == (loaded.state.config.attention != "softmax"));
    }
  }
}

TEST_CASE("every kind of model shows its layers, unless it reads a source") {
  for (const SmallModel& small : every_small_model()) {
    INFO(small.name);
    const SmallTrainer trained(small.config);
    const auto parts = trained.trainer.model().forward_parts(tensor<std::int32_t>(std::vector{1, 2, 3}, {1, 3}));
    REQUIRE(parts.has_value() == can_look_inside(small.config));
    if (parts) REQUIRE(std::ssize(parts->streams) == small.config.n_layer + 1);
  }
}

TEST_CASE("the stream before the first block is the sum of embeddings and positions") {
  const TemporaryFolder folder;
  for (const auto& [kind, has_vectors] :
       {std::pair{"learned", true}, {"sinusoidal", true}, {"rotary", false}, {"none", false}}) {
    INFO(kind);
    Config config = small_language_models().front().config;
    set_field(config, find_field("positions"), kind);
    const LoadedModel loaded(write_small_model(folder / "small.maki", config));
    const InsideModel inside = look_inside(loaded, kRead, {});
    const ForwardParts parts = loaded.model->forward_parts(tensor(kRead, {1, std::ssize(kRead)})).value();
    REQUIRE(inside.position_kind == kind);
    REQUIRE(static_cast<bool>(inside.positions) == has_vectors);
    const Tensor table = loaded.store.find("wte.weight").value();
    const double factor = inside.position_kind == "sinusoidal" ? 4 : 1;  // √16
    for (std::int64_t t = 0; t < std::ssize(kRead); ++t) {
      for (std::int64_t c = 0; c < 16; ++c) {
        REQUIRE(at(inside.embedding, t, c) ==
                Approx(factor * at(table, kRead[static_cast<std::size_t>(t)], c)).margin(1e-6));
        const double position = inside.positions ? at(inside.positions, t, c) : 0;
        REQUIRE(parts.streams[0].at(t * 16 + c) == Approx(at(inside.embedding, t, c) + position).margin(1e-6));
      }
    }
    if (inside.position_kind == "learned") {
      REQUIRE(at(inside.positions, 3, 5) == at(loaded.store.find("wpe.weight").value(), 3, 5));
    } else if (inside.position_kind == "sinusoidal") {
      REQUIRE(at(inside.positions, 3, 0) == Approx(std::sin(3.0)).margin(1e-6));
    }
  }
}

TEST_CASE("an encoder shows what it expects at every token, and a classifier no prediction") {
  const LoadedModel masked(golden_checkpoint("encoder"));
  const InsideModel inside = look_inside(masked, kRead, {.top = 2});
  REQUIRE_FALSE(inside.attention->causal);
  require_formulas(*inside.attention);
  const Tensor logits = masked.model->as_encoder()->logits(tensor(kRead, {1, std::ssize(kRead)}));
  const std::int64_t vocabulary = logits.shape().cols();
  for (std::int64_t t = 0; t < std::ssize(kRead); ++t) {
    const auto expected = log_probabilities(logits.slice_flat(t * vocabulary, {vocabulary}), 0, 2).top;
    REQUIRE(inside.predictions.back()[static_cast<std::size_t>(t)][0].id == expected[0].id);
    REQUIRE(inside.predictions.back()[static_cast<std::size_t>(t)][1].value == Approx(expected[1].value).margin(2e-5));
  }
  const LoadedModel classifier(golden_checkpoint("classify"));
  const InsideModel labels = look_inside(classifier, kRead, {});
  require_formulas(*labels.attention);
  REQUIRE(labels.predictions.empty());
  REQUIRE_FALSE(labels.logits);
  const FloatJson json = FloatJson::parse(inside_json({"labels", "text", {}}, classifier, labels));
  REQUIRE(json["layer_predictions"].empty());
  REQUIRE(json["logits"].is_null());
}

TEST_CASE("a temperature divides the logits before the softmax of every layer") {
  const TemporaryFolder folder;
  const LoadedModel loaded(write_small_model(folder / "small.maki", small_language_models().front().config));
  const auto top = [&](double temperature, std::size_t layer) {
    return look_inside(loaded, kRead, {.top = 2, .temperature = temperature}).predictions[layer].back();
  };
  for (const std::size_t layer : {0U, 1U, 2U}) {
    const auto one = top(1, layer), half = top(0.5, layer);
    REQUIRE(half[0].id == one[0].id);
    REQUIRE(half[0].value - half[1].value == Approx(2 * (one[0].value - one[1].value)).margin(1e-5));
  }
}

TEST_CASE("what cannot be looked at is refused with a sentence that names the field") {
  const TemporaryFolder folder;
  LoadedModel loaded(write_small_model(folder / "small.maki", small_language_models().front().config));
  const auto said = [&](const InsideOptions& options, const std::vector<std::int32_t>& ids = kRead) {
    return error_message<Error>([&] { look_inside(loaded, ids, options); });
  };
  REQUIRE_THAT(said({.layer = 2}), ContainsSubstring("layer: must be from 0 to 1, because "));
  REQUIRE_THAT(said({.head = 4}), ContainsSubstring("head: must be from 0 to 3, because "));
  REQUIRE_THAT(said({.head = -1}), ContainsSubstring("got -1"));
  REQUIRE(said({.top = 0}) == "top: must be at least 1; got 0; give the number of tokens for each prediction");
  REQUIRE_THAT(said({.temperature = 0}), ContainsSubstring("temperature: must be above 0; got 0"));
  REQUIRE(said({}, {}) == "text: must have at least one token; got none; give a longer one");
  REQUIRE(said({}, std::vector<std::int32_t>(13, 1)) == "text: may have at most 12 tokens; got 13; shorten it");
  REQUIRE_FALSE(said({}, {0, 77}).empty());
  const LoadedModel translating(golden_checkpoint("seq2seq"));
  REQUIRE_FALSE(can_look_inside(translating.state.config));
  REQUIRE_THROWS_WITH(look_inside(translating, kRead, {}), ContainsSubstring("which reads a source"));
  for (float& value : loaded.store.values().values<float>()) value = std::nanf("");
  loaded.store.mark_changed();
  REQUIRE_THROWS_AS(look_inside(loaded, kRead, {}), CheckpointError);
}

TEST_CASE("a map of attention is refused where there is none, and of more tokens than it can have") {
  const TemporaryFolder folder;
  const LoadedModel one(write_small_model(folder / "small.maki", small_language_models().front().config));
  const LoadedModel pairs(golden_checkpoint("seq2seq"));
  const std::vector<std::int32_t> many(kMaxAttendedTokens + 1);
  const auto said = [](const auto& make) { return error_message<Error>(make); };
  const std::string none = "attend: the prompt has no token; give a longer one";
  const auto too_many = [](const std::string& what) {
    return "attend: the " + what + " may have at most 512 tokens; it has 513; shorten it";
  };
  REQUIRE(said([&] { attention_maps(one, {}); }) == none);
  REQUIRE(said([&] { attention_maps(one, many); }) == too_many("prompt"));
  REQUIRE(said([&] { attention_maps(pairs, "cross", {}, {1}); }) == none);
  REQUIRE(said([&] { attention_maps(pairs, "cross", many, {1}); }) == too_many("prompt"));
  REQUIRE(said([&] { attention_maps(pairs, "cross", {1}, many); }) == too_many("target"));
  for (const SmallModel& small : small_language_models()) {
    if (small.name != "transformer-xl") continue;
    const LoadedModel remembering(write_small_model(folder / "xl.maki", small.config));
    REQUIRE_THAT(said([&] { attention_maps(remembering, kRead); }),
                 ContainsSubstring("is a model of kind transformer-xl, whose attention cannot be drawn"));
  }
  LoadedModel diverged(write_small_model(folder / "diverged.maki", small_language_models().front().config));
  for (float& value : diverged.store.values().values<float>()) value = std::nanf("");
  diverged.store.mark_changed();
  REQUIRE_THAT(error_message<CheckpointError>([&] { attention_maps(diverged, kRead); }),
               ContainsSubstring("the attention of this model is not finite; the model has diverged"));
}

TEST_CASE("the answer in JSON has the numbers of the struct") {
  const TemporaryFolder folder;
  const LoadedModel loaded(write_small_model(folder / "small.maki", small_language_models().front().config));
  const InsideRequest request =
      parse_inside_request(R"({"model": "run@3", "text": "add", "layer": 1, "head": 2, "top": 2, "temperature": 0.5})");
  REQUIRE(request.text == "add");
  const InsideModel inside = look_inside(loaded, kRead, request.options);
  const FloatJson json = FloatJson::parse(inside_json(request, loaded, inside));
  REQUIRE(json["model"] == "run@3");
  REQUIRE(json["step"] == 3);
  REQUIRE(json["tokens"].get<std::vector<std::string>>() == inside.tokens);
  REQUIRE(json["ids"].get<std::vector<std::int32_t>>() == kRead);
  REQUIRE(json["embedding"]["columns"] == 16);
  REQUIRE(json["embedding"]["values"][7][15].get<float>() == static_cast<float>(at(inside.embedding, 7, 15)));
  REQUIRE(json["position"]["kind"] == "learned");
  REQUIRE(json["position"]["values"].size() == 8);
  const FloatJson& attention = json["attention"];
  REQUIRE(attention["layer"] == 1);
  REQUIRE(attention["head"] == 2);
  REQUIRE(attention["layers"] == 2);
  REQUIRE(attention["heads"] == 4);
  REQUIRE(attention["causal"] == true);
  REQUIRE(attention["width"] == 4);
  REQUIRE(attention["scale"].get<float>() == 0.5F);
  const std::pair<const char*, const Tensor*> tensors[] = {
      {"query", &inside.attention->query},     {"key", &inside.attention->key},
      {"value", &inside.attention->value},     {"scores", &inside.attention->scores},
      {"weights", &inside.attention->weights}, {"output", &inside.attention->output}};
  for (const auto& [name, values] : tensors) {
    INFO(name);
    REQUIRE(attention[name].size() == 8);
    REQUIRE(std::ssize(attention[name][5]) == values->shape()[1]);
    REQUIRE(attention[name][5][2].get<float>() == static_cast<float>(at(*values, 5, 2)));
  }
  REQUIRE(json["layer_predictions"].size() == 3);
  const FloatJson& last = json["layer_predictions"][2];
  REQUIRE(last["layer"] == 2);
  REQUIRE(last["top"].size() == 8);
  REQUIRE(last["top"][7].size() == 2);
  // Six tokens, fewer than the 12 that are shown of a larger vocabulary. Of the last place, both lists are the same.
  const FloatJson& logits = json["logits"]["top"];
  REQUIRE(logits.size() == 6);
  double sum = 0;
  for (const FloatJson& entry : logits) {
    sum += entry["probability"].get<double>();
    REQUIRE(entry["logit"].get<float>() == static_cast<float>(inside.logits.at(entry["id"].get<std::int64_t>())));
    REQUIRE(entry["token"] == loaded.tokenizer->bytes(entry["id"].get<std::int32_t>()));
  }
  REQUIRE(sum == Approx(1).margin(1e-5));
  REQUIRE(logits[1]["probability"].get<double>() == Approx(last["top"][7][1]["probability"].get<double>()));
  REQUIRE(logits[1]["id"] == last["top"][7][1]["id"]);
}

TEST_CASE("a request to look inside names the field that is wrong") {
  const auto said = [](const std::string& body) { return error_message<Error>([&] { parse_inside_request(body); }); };
  const auto with = [&](const std::string& more) { return said(R"({"model":"a","text":"b",)" + more + "}"); };
  const InsideRequest usual = parse_inside_request(R"({"model":"a","text":"b"})");
  REQUIRE(usual.options.layer == 0);
  REQUIRE(usual.options.head == 0);
  REQUIRE(usual.options.top == 5);
  REQUIRE(usual.options.temperature == 1);
  REQUIRE(said("{\"a\":}") == "body: must be JSON; byte 6 of it is not");
  REQUIRE(said("[1]") == "body: must be an object of JSON; got [1]");
  REQUIRE(said(R"({"text":"b"})") == "model: must be a text; got none; GET /v1/models lists those that can be named");
  REQUIRE(said(R"({"model":"a"})") == "text: must be a text; got none; send what the model is to read");
  REQUIRE(said(R"({"model":"a","text":3})") == "text: must be a text; got 3; send what the model is to read");
  REQUIRE(with(R"("heads":1)") ==
          "heads: is no field of this request; must be one of model, text, layer, head, top, temperature");
  REQUIRE(with(R"("top":21)") == "top: must be a whole number between 1 and 20; got 21");
  REQUIRE_FALSE(with(R"("top":0)").empty());
  REQUIRE_FALSE(with(R"("top":2.5)").empty());
  REQUIRE_FALSE(with(R"("layer":-1)").empty());
  REQUIRE_FALSE(with(R"("head":18446744073709551615)").empty());
  REQUIRE_FALSE(with(R"("layer":"0")").empty());
  REQUIRE_THAT(with(R"("temperature":0)"), ContainsSubstring("temperature: must be a number between 1e-06 and "));
  REQUIRE_FALSE(with(R"("temperature":1e-308)").empty());  // by which no logit can be divided
  REQUIRE_FALSE(with(R"("temperature":"1")").empty());
  REQUIRE_FALSE(with(R"("temperature":1e999)").empty());
}
