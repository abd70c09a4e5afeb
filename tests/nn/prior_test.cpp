// Models with a prior: the formula, generation token by token, and what is refused.
#include "nn/prior.h"

#include <algorithm>
#include <cmath>

#include "autograd/gradcheck.h"
#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_xl.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A prior that depends on the last two tokens. It is not normalized, which the formula does not ask for.
class TwoTokens final : public TokenPrior {
 public:
  explicit TwoTokens(std::int64_t vocab_size = kSmall.vocab_size) : vocab_size_(vocab_size) {}
  std::int64_t vocab_size() const override { return vocab_size_; }
  std::int64_t context_tokens() const override { return 2; }
  void log_probabilities(std::span<const std::int32_t> before, std::span<const std::int32_t> ids,
                         std::span<float> out) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int32_t second = i > 0 ? ids[i - 1] : before.empty() ? -1 : before.back();
      for (std::int64_t v = 0; v < vocab_size_; ++v)
        out[i * static_cast<std::size_t>(vocab_size_) + static_cast<std::size_t>(v)] =
            static_cast<float>(std::sin(1.0 + ids[i] + 3.0 * second + 7.0 * static_cast<double>(v)) - 2);
    }
  }

 private:
  std::int64_t vocab_size_;
};

TransformerConfig with_prior(TransformerConfig config) {
  config.ngram_prior = 3;
  return config;
}

struct SmallPrior {
  explicit SmallPrior(const TransformerConfig& config, DType dtype = DType::float32)
      : store(dtype), model(Scope(store), with_prior(config)) {
    store.seal(1);
    randomize(store, 5);
    model.use_prior(prior);
  }
  std::shared_ptr<const TokenPrior> prior = std::make_shared<TwoTokens>();
  ParameterStore store;
  GptModel model;
};

// The largest difference between the logits of all tokens and those of generation in the given pieces.
template <class AnyModel>
double worst_difference(const AnyModel& model, const Tensor& ids, const Tensor& logits,
                        const std::vector<std::int64_t>& pieces) {
  const std::int64_t batch = ids.shape()[0], tokens = ids.shape()[1], vocab = logits.shape()[2];
  const std::unique_ptr<State> state = model.start(batch);
  double worst = 0;
  for (std::size_t i = 0; state->length() < tokens; ++i) {
    const std::int64_t begin = state->length(), end = std::min(tokens, begin + pieces[i % pieces.size()]);
    const Tensor next = model.next_logits(columns(ids, begin, end), *state);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t v = 0; v < vocab; ++v) {
        const double difference = std::abs(next.at(b * vocab + v) - logits.at((b * tokens + end - 1) * vocab + v));
        worst = max_or_nan(worst, difference);
      }
    }
  }
  return worst;
}

// Whether a new model of this kind, with a head of its own, has the logits of its prior.
template <class AnyModel, class AnyConfig>
void require_initial_prior(AnyConfig config) {
  config.ngram_prior = 3;
  config.tie_weights = false;
  ParameterStore store(DType::float32);
  AnyModel model(Scope(store), config);
  store.seal(1);
  const auto prior = std::make_shared<const TwoTokens>();
  model.use_prior(prior);
  const Tensor ids = random_ids(1, 5, config.vocab_size, 6), expected = prior_of(*prior, ids, {}, DType::float32);
  const Tensor logits = model.next_logits(ids, *model.start(1));
  for (std::int64_t v = 0; v < config.vocab_size; ++v) REQUIRE(logits.at(v) == expected.at(4 * config.vocab_size + v));
}

}  // namespace

TEST_CASE("a new model with a head of its own predicts what its prior predicts", "[prior]") {
  require_initial_prior<GptModel>(kSmall);
  require_initial_prior<TransformerXlModel>(kSmallXl);
}

TEST_CASE("the logits are those of the head plus the prior, as far as the gate trusts it", "[prior]") {
  const SmallPrior small(kSmall, DType::float64);
  const Gpt& gpt = small.model.gpt;
  const Tensor ids = random_ids(2, 9, kSmall.vocab_size, 6), x = gpt.hidden(ids);
  const Tensor prior = prior_of(*small.prior, ids, {}, DType::float64), head = gpt.head(x);
  const Tensor logits = gpt.logits(ids, prior);
  const Parameter &weight = gpt.prior_gate->scale.weight, &bias = *gpt.prior_gate->scale.bias;
  for (std::int64_t i = 0; i < logits.numel(); ++i) {
    const std::int64_t row = i / kSmall.vocab_size;
    double scale = 1 + bias.value().at(0);
    for (std::int64_t c = 0; c < kSmall.n_embd; ++c) scale += weight.value().at(c) * x.at(row * kSmall.n_embd + c);
    REQUIRE(logits.at(i) == Approx(head.at(i) + scale * prior.at(i)).margin(1e-12));
  }
}

TEST_CASE("a new model adds the whole prior", "[prior]") {
  ParameterStore store;
  GptModel model(Scope(store), with_prior(kSmall));
  store.seal(1);
  const Tensor ids = random_ids(1, 9, kSmall.vocab_size, 6);
  const Tensor prior = prior_of(TwoTokens(), ids, {}, DType::float32);
  const Tensor sum = add(model.gpt.head(model.gpt.hidden(ids)), prior), logits = model.gpt.logits(ids, prior);
  REQUIRE(same_bits(logits, 0, sum, 0, sum.numel()));
}

TEST_CASE("generation with a prior has the logits of the whole sequence", "[prior]") {
  const Tensor ids = random_ids(2, 9, kSmall.vocab_size, 6);
  const Tensor prior = prior_of(TwoTokens(), ids, {}, DType::float32);
  for (const std::vector<std::int64_t>& pieces : std::vector<std::vector<std::int64_t>>{{1}, {2, 1}, {9}, {3}}) {
    for (const TransformerConfig& config : gpt_variants()) {
      INFO(describe(config));
      const SmallPrior small(config);
      REQUIRE(worst_difference(small.model, ids, small.model.gpt.logits(ids, prior), pieces) == 0);
    }
    ParameterStore store;
    LinearModel linear(Scope(store), LinearConfig{with_prior(kSmall)});
    store.seal(1);
    randomize(store, 5);
    linear.use_prior(std::make_shared<TwoTokens>());
    REQUIRE(worst_difference(linear, ids, linear.logits(ids, prior), pieces) < 1e-5);
    TransformerXlConfig config = with_memory(0);
    config.ngram_prior = 3;
    SmallXl xl(config);
    xl.model.use_prior(std::make_shared<TwoTokens>());
    REQUIRE(worst_difference(xl.model, ids, xl.model.logits(ids, nullptr, prior), pieces) < 1e-5);
  }
}

TEST_CASE("a segment of transformer-xl has a prior that begins in the tokens of its memory", "[prior]") {
  TransformerXlConfig config = kSmallXl;
  config.ngram_prior = 3;
  SmallXl xl(config, DType::float64);
  xl.model.use_prior(std::make_shared<TwoTokens>());
  const Tensor ids = random_ids(2, 18, config.vocab_size, 6), targets = random_ids(2, 18, config.vocab_size, 7);
  const Tensor prior = prior_of(TwoTokens(), ids, {}, DType::float64);
  const std::unique_ptr<SegmentMemory> own = xl.memory(2), given = xl.memory(2);
  for (std::int64_t begin = 0; begin < 18; begin += 9) {
    Batch batch{.ids = columns(ids, begin, begin + 9), .targets = columns(targets, begin, begin + 9)};
    const double loss = xl.model.loss(batch, {}, own.get()).item();
    batch.prior = slice(prior, 1, begin, begin + 9);
    REQUIRE(xl.model.loss(batch, {}, given.get()).item() == Approx(loss).epsilon(1e-12));
  }
}

TEST_CASE("gradients through the gate are those of differences", "[prior]") {
  const SmallPrior small(kSmall, DType::float64);
  const Batch batch{.ids = random_ids(2, 9, kSmall.vocab_size, 6), .targets = random_ids(2, 9, kSmall.vocab_size, 7)};
  GradcheckOptions options;
  options.step = 2.5e-4;
  const auto results = gradcheck(
      const_cast<ParameterStore&>(small.store), [&] { return small.model.loss(batch, {}); }, options);
  int gates = 0;
  for (const GradcheckResult& result : results) {
    INFO(result.name << ": error " << result.error);
    gates += result.name.starts_with("prior.") ? 1 : 0;
    REQUIRE(result.compared == small.store.find(result.name).shape().numel());
    REQUIRE(result.passed(1e-7));
  }
  REQUIRE(gates == 2);
}

TEST_CASE("a batch that has a prior is predicted with it", "[prior]") {
  const SmallPrior small(kSmall);
  Batch batch{.ids = random_ids(2, 9, kSmall.vocab_size, 6), .targets = random_ids(2, 9, kSmall.vocab_size, 7)};
  const double own = small.model.loss(batch, {}).item();
  batch.prior = scale(prior_of(*small.prior, batch.ids, {}, DType::float32), 2);
  const double given = small.model.loss(batch, {}).item();
  REQUIRE(given == small.model.gpt.loss(batch.ids, batch.targets, {}, batch.prior).item());
  REQUIRE(std::abs(given - own) > 1e-3);
}

TEST_CASE("a prior that does not fit its model is refused", "[prior]") {
  ParameterStore store;
  GptModel model(Scope(store), with_prior(kSmall)), plain(Scope(store, "plain"), kSmall);
  store.seal(1);
  const Batch batch{.ids = random_ids(1, 9, kSmall.vocab_size, 6), .targets = random_ids(1, 9, kSmall.vocab_size, 7)};
  REQUIRE_THROWS_WITH(model.loss(batch, {}), ContainsSubstring("use_prior() must be called first"));
  REQUIRE_THROWS_WITH(model.next_logits(batch.ids, *model.start(1)), ContainsSubstring("use_prior() must be called"));
  REQUIRE_THROWS_WITH(model.gpt.logits(batch.ids), ContainsSubstring("needs the prior of each token"));
  KvCache cache = model.gpt.make_cache(1);
  REQUIRE_THROWS_WITH(model.gpt.next_logits(batch.ids, cache),
                      ContainsSubstring("[1, 1, 7] for the next token; got none"));
  REQUIRE_THROWS_WITH(model.gpt.next_logits(batch.ids, cache, zeros({1, 9, 7}, DType::float32)),
                      ContainsSubstring("got float32 [1, 9, 7]"));
  REQUIRE(cache.length() == 0);
  REQUIRE_FALSE(cache.recent.ids());
  REQUIRE_THROWS_WITH(model.use_prior(std::make_shared<TwoTokens>(8)), ContainsSubstring("vocabulary of 7"));
  REQUIRE_THROWS_WITH(model.use_prior(nullptr), ContainsSubstring("has a prior; got none"));
  REQUIRE_THROWS_WITH(plain.use_prior(std::make_shared<TwoTokens>()), ContainsSubstring("has no prior"));
  Tensor outside = random_ids(1, 2, kSmall.vocab_size, 6);
  outside.data<std::int32_t>()[1] = 7;
  REQUIRE_THROWS_WITH(prior_of(TwoTokens(), outside, {}, DType::float32),
                      ContainsSubstring("must be in [0, 7); got 7"));
  ParameterStore other;
  TransformerConfig shorter = kSmall;
  shorter.ngram_prior = 2;
  GptModel shorter_model(Scope(other), shorter);
  TransformerXlConfig negative = kSmallXl;
  negative.ngram_prior = -1;
  REQUIRE_THROWS_WITH(SmallXl(negative), ContainsSubstring("ngram_prior must be at least 0; got -1"));
  REQUIRE_THROWS_WITH(shorter_model.use_prior(std::make_shared<TwoTokens>()), ContainsSubstring("at most 1 tokens"));
}

namespace {

// Reads tokens only as its interface promises them.
class StrictPrior final : public TokenPrior {
 public:
  std::int64_t vocab_size() const override { return kSmall.vocab_size; }
  std::int64_t context_tokens() const override { return 2; }
  void log_probabilities(std::span<const std::int32_t> before, std::span<const std::int32_t> ids,
                         std::span<float> out) const override {
    for (const auto& part : {before, ids}) {
      for (const std::int32_t id : part) was_valid = was_valid && id >= 0 && id < vocab_size();
    }
    std::ranges::fill(out, 0.0F);
  }
  mutable bool was_valid = true;
};

}  // namespace

TEST_CASE("ids and states that do not fit each other are refused before a prior reads them", "[prior]") {
  const auto prior = std::make_shared<StrictPrior>();
  SmallPrior small(kSmall);
  small.model.use_prior(prior);
  ParameterStore store;
  LinearModel linear(Scope(store), LinearConfig{with_prior(kSmall)});
  store.seal(1);
  linear.use_prior(prior);
  const Tensor good = tensor(std::vector<std::int32_t>{1, 2, 3}, {1, 3});
  for (const Generator* const model :
       {static_cast<const Generator*>(&small.model), static_cast<const Generator*>(&linear)}) {
    const std::unique_ptr<State> state = model->start(1);
    model->next_logits(good, *state);
    for (const Tensor& bad : {tensor(std::vector<std::int32_t>{1, 2, 3, 4}, {4, 1}),
                              tensor(std::vector<std::int32_t>{999999, -5, 1}, {1, 3}), zeros({1, 0}, DType::int32)})
      REQUIRE_THROWS_AS(model->next_logits(bad, *state), Error);
  }
  REQUIRE(prior->was_valid);
}
