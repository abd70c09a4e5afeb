// Several models as one, against the mean of what each of them says alone.
#include "train/loop/mean_of_models.h"

#include <cmath>

#include "tests/train/small_loaded.h"
#include "train/loop/score_tokens.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<std::int32_t> kTokens = {0, 3, 3, 1, 5, 2, 0, 4, 1, 1, 3, 0, 2};  // block_size + 1

std::vector<std::unique_ptr<LoadedModel>> loaded(const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<LoadedModel>> list;
  for (const std::string& path : paths) list.push_back(std::make_unique<LoadedModel>(path));
  return list;
}

}  // namespace

TEST_CASE("the logarithm of a mean is that of the probabilities, however small they are") {
  const Tensor a = tensor<float>({0, -1, -200, -INFINITY}, {2, 2}), b = tensor<float>({0, -3, -201, -INFINITY}, {2, 2});
  const Tensor mean = log_of_mean({a, b, b});
  const auto values = mean.values<float>();
  REQUIRE(values[0] == Approx(0).margin(1e-7));
  REQUIRE(values[1] == Approx(std::log((std::exp(-1.0) + 2 * std::exp(-3.0)) / 3)));
  REQUIRE(values[2] == Approx(-200 + std::log((1 + 2 * std::exp(-1.0)) / 3)));
  REQUIRE(values[3] == -INFINITY);
  REQUIRE(std::isnan(log_of_mean({tensor<float>({NAN}, {1, 1}), a.slice_flat(0, {1, 1})}).item()));
}

TEST_CASE("the mean of several models of every kind, in a loss and token by token, is that of their probabilities") {
  const TemporaryFolder folder;
  for (const SmallModel& small : small_language_models()) {
    INFO(small.name);
    Config other = small.config;
    other.seed = 77;
    other.n_layer = 1;
    const std::vector<std::string> paths = {write_small_model(folder / "one.maki", small.config),
                                            write_small_model(folder / "two.maki", other)};
    const LoadedModel one(paths[0]), two(paths[1]);
    LoadedModel mean(paths[0]);
    mean.model = std::make_unique<MeanOfModels>(mean, loaded({paths[1]}));
    const auto of_one = score_tokens(one, kTokens), of_two = score_tokens(two, kTokens),
               of_mean = score_tokens(mean, kTokens);
    // The models compute one after the other.
    REQUIRE(mean.model->activation_bytes(2, 9) ==
            std::max(one.model->activation_bytes(2, 9), two.model->activation_bytes(2, 9)));
    REQUIRE(mean.model->attention_flop(9) == one.model->attention_flop(9) + two.model->attention_flop(9));
    const std::unique_ptr<State> state = mean.generator().start(1);
    REQUIRE(state->batch() == 1);
    REQUIRE(state->capacity() == one.generator().start(1)->capacity());
    double sum = 0;
    for (std::size_t i = 0; i < of_one.size(); ++i) {
      const double p = std::exp(of_one[i].drawn.value), q = std::exp(of_two[i].drawn.value);
      REQUIRE(p != Approx(q));
      REQUIRE(std::exp(of_mean[i].drawn.value) == Approx((p + q) / 2).epsilon(1e-5));
      sum -= std::log((p + q) / 2);
      const Tensor logits = mean.generator().next_logits(tensor<std::int32_t>({&kTokens[i], 1}, {1, 1}), *state);
      REQUIRE(log_probabilities(logits, kTokens[i + 1], 0).drawn.value == Approx(std::log((p + q) / 2)).margin(5e-5));
      REQUIRE(state->length() == static_cast<std::int64_t>(i) + 1);
    }
    const std::int64_t rows = std::ssize(kTokens) - 1;
    const Tensor loss = mean.model->loss({.ids = tensor(std::span(kTokens).first(kTokens.size() - 1), {1, rows}),
                                          .targets = tensor(std::span(kTokens).subspan(1), {1, rows})},
                                         {.sum = true});
    REQUIRE(loss.item() == Approx(sum));
  }
}

TEST_CASE("a mean of models has room for as many tokens as that with the smallest context, and forgets as they do") {
  const TemporaryFolder folder;
  Config config = small_language_models()[0].config;
  const std::string large = write_small_model(folder / "large.maki", config);
  config.block_size = 5;
  const std::string small = write_small_model(folder / "small.maki", config);
  for (const auto& [first, second] : {std::pair{large, small}, {small, large}}) {
    LoadedModel mean(first);
    mean.model = std::make_unique<MeanOfModels>(mean, loaded({second}));
    const std::unique_ptr<State> state = mean.generator().start(2);
    REQUIRE(state->batch() == 2);
    REQUIRE(state->capacity() == 5);
    const Tensor ids = tensor<std::int32_t>({0, 3, 1, 5, 2, 4}, {2, 3}), next = tensor<std::int32_t>({1, 1}, {2, 1});
    const Tensor logits = mean.generator().next_logits(ids, *state);
    // Rows that change places take what they have read with them.
    const std::vector<std::int32_t> swapped = {1, 0};
    const Tensor before = mean.generator().next_logits(next, *state);
    state->clear();
    REQUIRE(state->length() == 0);
    const Tensor again = mean.generator().next_logits(ids, *state);
    REQUIRE(same_bits(again, logits));
    state->reorder(swapped);
    const Tensor after = mean.generator().next_logits(next, *state);
    const std::int64_t columns = after.shape().cols();
    for (std::int64_t i = 0; i < 2 * columns; ++i) REQUIRE(after.at(i) == before.at((i + columns) % (2 * columns)));
  }
}

TEST_CASE("models that share their counts share their prior, and the prior of a batch is given to them alone") {
  const TemporaryFolder folder;
  Config config = small_language_models()[9].config;
  REQUIRE(config.ngram_prior == 3);
  const std::string path = write_small_model(folder / "one.maki", config);
  LoadedModel mean(path);
  auto others = loaded({path, write_small_model(folder / "plain.maki", small_language_models()[0].config)});
  const LoadedModel& second = *others[0];
  const auto prior = mean.generator().prior();
  REQUIRE(second.generator().prior() != prior);
  mean.model = std::make_unique<MeanOfModels>(mean, std::move(others));
  REQUIRE(second.generator().prior() == prior);
}

TEST_CASE("models that do not belong together are refused, naming both") {
  const TemporaryFolder folder;
  const std::string gpt = write_small_model(folder / "gpt.maki", small_language_models()[0].config);
  const auto refusal = [&](const std::string& other) {
    LoadedModel first(gpt);
    return error_message<Error>([&] { MeanOfModels(first, loaded({other})); });
  };
  Config xl;
  for (const SmallModel& small : small_language_models()) {
    if (small.name == "transformer-xl") xl = small.config;
  }
  REQUIRE_THAT(refusal(write_small_model(folder / "xl.maki", xl)), ContainsSubstring("only one of them remembers"));
  REQUIRE_THAT(refusal(golden_checkpoint("encoder")), ContainsSubstring("is a model of kind encoder; omit it"));
  REQUIRE_THAT(refusal(golden_checkpoint("seq2seq")), ContainsSubstring("use models of one task"));
  REQUIRE_THAT(refusal(golden_checkpoint("gpt")), ContainsSubstring("has other tokens than " + gpt));
}
