// Texts that are generated in one batch are those that are generated alone: prompts of different lengths, ends at
// different times, contexts that slide or end.
#include <algorithm>
#include <map>

#include "nn/generate/generate.h"
#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/nn/small_xl.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct Text {
  std::vector<std::int32_t> ids;
  std::int64_t tokens = 0;
  StopReason reason = StopReason::max_tokens;
  bool operator==(const Text&) const = default;
};

using Prompts = std::vector<std::vector<std::int32_t>>;

// Prompts of these lengths, of ids below 7.
Prompts prompts_of(const std::vector<std::int64_t>& lengths) {
  Prompts prompts;
  for (const std::int64_t length : lengths) {
    const Tensor ids = random_ids(1, length, 7, 10 + prompts.size());
    prompts.emplace_back(ids.data<std::int32_t>(), ids.data<std::int32_t>() + length);
  }
  return prompts;
}

const Prompts kRagged = prompts_of({3, 1, 9, 20, 4, 3, 8});

// Text i stops at the first id 5 after 4 · i tokens, so that texts end at different times, and some at max_tokens.
bool continues(std::size_t i, std::int32_t token, std::size_t tokens) { return token != 5 || tokens < 4 * i; }

std::vector<Text> alone(const Generator& model, const Prompts& prompts, const GenerateOptions& options) {
  std::vector<Text> texts(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<std::int32_t>& ids = texts[i].ids;
    const Generated generated = generate(model, prompts[i], options, i, [&](std::int32_t token) {
      ids.push_back(token);
      return continues(i, token, ids.size());
    });
    texts[i].tokens = generated.tokens;
    texts[i].reason = generated.reason;
  }
  return texts;
}

std::vector<Text> together(const Generator& model, const Prompts& prompts, const GenerateOptions& options) {
  std::vector<Text> texts(prompts.size());
  std::vector<int> ends(prompts.size());
  std::vector<TextStart> starts;
  for (std::size_t i = 0; i < prompts.size(); ++i) starts.push_back({prompts[i], i});
  generate_batch(
      model, starts, options,
      [&](std::size_t i, std::int32_t token) {
        REQUIRE(ends[i] == 0);
        texts[i].ids.push_back(token);
        return continues(i, token, texts[i].ids.size());
      },
      [&](std::size_t i, const Generated& generated) {
        ++ends[i];
        texts[i].tokens = generated.tokens;
        texts[i].reason = generated.reason;
      });
  for (const int times : ends) REQUIRE(times == 1);
  return texts;
}

void require_the_same(const Generator& model, const Prompts& prompts) {
  std::map<StopReason, int> reasons;
  Sampling penalized{.temperature = 1.5, .min_p = 0.05, .seed = 3};
  penalized.repetition_penalty = 1.3;
  penalized.frequency_penalty = 0.1;
  penalized.logit_bias = {{2, 0.5}};
  for (const Sampling& sampling : {Sampling{.temperature = 1.5, .seed = 3}, penalized}) {
    for (const bool slide : {true, false}) {
      const GenerateOptions options{.max_tokens = 30, .sampling = sampling, .slide_context = slide};
      const std::vector<Text> texts = together(model, prompts, options);
      REQUIRE(texts == alone(model, prompts, options));
      for (const Text& text : texts) ++reasons[text.reason];
    }
  }
  REQUIRE(reasons[StopReason::stopped] > 0);
  REQUIRE(reasons[StopReason::max_tokens] + reasons[StopReason::context_full] > 0);
}

// Computes what another model does, and counts the most tokens of a text that it has read at once.
class Counting final : public Generator {
 public:
  explicit Counting(const Generator& model) : model_(model) {}
  const char* kind() const override { return model_.kind(); }
  Tensor loss(const Batch& batch, const CrossEntropy& options, State* carried) const override {
    return model_.loss(batch, options, carried);
  }
  double attention_flop(std::int64_t length) const override { return model_.attention_flop(length); }
  std::int64_t activation_bytes(std::int64_t batch, std::int64_t length) const override {
    return model_.activation_bytes(batch, length);
  }
  std::unique_ptr<State> start(std::int64_t batch, const Tensor&, const Tensor&) const override {
    return model_.start(batch);
  }
  Tensor next_logits(const Tensor& ids, State& state) const override {
    most = std::max(most, ids.shape()[1]);
    return model_.next_logits(ids, state);
  }
  bool same_bits_stepwise() const override { return model_.same_bits_stepwise(); }
  mutable std::int64_t most = 0;

 private:
  const Generator& model_;
};

// The logits of the first tokens are those of a single pass over the context, of which `kept` tokens are left when it
// is full; a long one is read in parts.
void require_read_in_parts(const Generator& model, std::int64_t prompt_tokens, std::int64_t tokens,
                           std::int64_t kept = 0) {
  INFO(model.kind() << ", " << prompt_tokens);
  const Counting counting(model);
  const std::vector<std::int32_t> prompt = prompts_of({prompt_tokens}).front();
  std::vector<std::int32_t> context = prompt;
  const std::int64_t capacity = model.start(1)->capacity();
  GenerateOptions options{.max_tokens = tokens, .sampling = {.seed = 3}};
  options.watch = [&](std::size_t, std::int32_t token, const Tensor& logits) {
    if (std::ssize(context) > capacity) context.erase(context.begin(), context.end() - kept);
    REQUIRE(same_bits(logits, model.next_logits(tensor(context, {1, std::ssize(context)}), *model.start(1))));
    context.push_back(token);
  };
  REQUIRE(generate(counting, prompt, options, 0, [](std::int32_t) { return true; }).tokens == tokens);
  REQUIRE(counting.most == std::min(prompt_tokens, GenerationBatch::kMaxReadTokens));
}

}  // namespace

TEST_CASE("texts generated together have the tokens that they have alone, whatever the lengths of their prompts") {
  for (const TransformerConfig& config : gpt_variants()) {
    INFO(describe(config));
    ParameterStore store(DType::float32);
    const GptModel model(Scope(store), config);
    store.seal(1);
    randomize(store, 5);
    require_the_same(model, kRagged);
  }
  for (const std::int64_t memory : {0, 2, 11}) {
    const SmallXl xl(with_memory(memory));
    require_the_same(xl.model, kRagged);
  }
}

TEST_CASE("texts of a recurrent state generated together are the same if their prompts have the same length") {
  for (const char* form : {"elu", "random:7", "nystrom:5"}) {
    TransformerConfig config = kSmall;
    config.positions = Positions::rotary;
    ParameterStore store(DType::float32);
    const LinearModel model(Scope(store), {config, parse_attention(form)});
    store.seal(1);
    REQUIRE_FALSE(model.same_bits_stepwise());
    require_the_same(model, prompts_of({6, 6, 6, 6, 6}));
  }
}

TEST_CASE("a batch without texts or tokens ends at once, and an empty prompt or fewer tokens than none are refused") {
  ParameterStore store(DType::float32);
  const GptModel model(Scope(store), kSmall);
  store.seal(1);
  REQUIRE(together(model, {}, {}).empty());
  for (const Text& text : together(model, kRagged, {.max_tokens = 0, .sampling = {}})) REQUIRE(text == Text{});
  REQUIRE_THROWS_WITH(together(model, {{1}, {}}, {}), ContainsSubstring("at least one token"));
  REQUIRE_THROWS_WITH(together(model, kRagged, {.max_tokens = -1, .sampling = {}}),
                      ContainsSubstring("max_tokens must be at least 0; got -1"));
  REQUIRE_THROWS_WITH(GenerationBatch(model, std::vector<GenerationBatch::Text>{{.prompt = {}}}),
                      ContainsSubstring("at least one token"));
}

TEST_CASE("penalties count what was drawn and the prompt, as far as it is read") {
  ParameterStore store(DType::float32);
  const GptModel model(Scope(store), kSmall);
  store.seal(1);
  std::ranges::fill(store.values().values<float>(), 0.0F);  // every token is equally likely
  store.mark_changed();
  Sampling sampling{.temperature = 0};
  sampling.repetition_penalty = 2;
  for (std::int32_t id = 0; id < 7; ++id) sampling.logit_bias.push_back({id, 1});
  const auto drawn = [&](const std::vector<std::int32_t>& prompt) {
    std::vector<std::int32_t> ids;
    generate(model, prompt, {.max_tokens = 6, .sampling = sampling}, 0, [&](std::int32_t id) {
      ids.push_back(id);
      return true;
    });
    return ids;
  };
  REQUIRE(drawn({0, 2}) == std::vector<std::int32_t>{1, 3, 4, 5, 6, 0});
  REQUIRE(drawn({0, 1, 1, 1, 1, 1, 1, 1, 1, 2}) == std::vector<std::int32_t>{0, 3, 4, 5, 6, 0});  // nine are read
}

TEST_CASE("a full context continues with the second half of what it had, and a long prompt begins with its end") {
  ParameterStore store(DType::float32);
  const GptModel model(Scope(store), kSmall);  // a context of nine tokens
  store.seal(1);
  randomize(store, 5);
  for (const std::int64_t length : {3, 9, 20}) {
    INFO(length);
    const std::vector<std::int32_t> prompt = prompts_of({length}).front();
    std::vector<std::int32_t> context(prompt.end() - std::min<std::int64_t>(length, 9), prompt.end());
    int slid = 0;
    GenerateOptions options{.max_tokens = 20, .sampling = {.seed = 3}};
    options.watch = [&](std::size_t, std::int32_t token, const Tensor& logits) {
      if (context.size() > 9) {
        context.erase(context.begin(), context.end() - 4);
        ++slid;
      }
      const Tensor ids = tensor(context, {1, std::ssize(context)});
      REQUIRE(same_bits(logits, model.next_logits(ids, *model.start(1))));
      context.push_back(token);
    };
    REQUIRE(generate(model, prompt, options, 0, [](std::int32_t) { return true; }).tokens == 20);
    REQUIRE(slid >= 2);
  }
}

TEST_CASE("a long context is read in parts, with the bits of a single pass") {
  TransformerConfig config = kSmall;
  config.block_size = 1200;
  ParameterStore store(DType::float32);
  const GptModel gpt(Scope(store), config);
  store.seal(1);
  randomize(store, 5);
  for (const std::int64_t tokens : {512, 513, 1100}) require_read_in_parts(gpt, tokens, 3);
  require_read_in_parts(gpt, 1199, 4, /*kept=*/600);
  const SmallXl xl(kSmallXl);
  require_read_in_parts(xl.model, 1100, 3);
  for (const char* form : {"elu", "random:7", "nystrom:5"}) {
    TransformerConfig unlimited = kSmall;
    unlimited.positions = Positions::rotary;
    add_extras(unlimited);
    ParameterStore recurrent(DType::float32);
    const LinearModel linear(Scope(recurrent), {unlimited, parse_attention(form)});
    recurrent.seal(1);
    randomize(recurrent, 5);
    for (const std::int64_t tokens : {520, 1024, 1100}) require_read_in_parts(linear, tokens, 1);
    const Prompts prompts = prompts_of({1100, 1100, 1100, 1100, 1100});
    const GenerateOptions options{.max_tokens = 10, .sampling = {.temperature = 1.5, .seed = 3}};
    REQUIRE(together(linear, prompts, options) == alone(linear, prompts, options));
  }
}
