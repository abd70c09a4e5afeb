// Bias, penalties and min-p, against the same formulas written out, and the log-probabilities of what was drawn.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <rapidcheck.h>

#include "nn/generate/log_probabilities.h"
#include "nn/generate/sampler.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::int32_t> draws(const Sampling& options, const std::vector<double>& logits,
                                const TokenHistory& before = {}) {
  Sampler sampler(options);
  const Tensor tensor_of = tensor<double>(logits, {std::ssize(logits)});
  std::vector<std::int32_t> ids;
  for (std::uint64_t i = 0; i < 40; ++i) ids.push_back(sampler(tensor_of, 0, i, before));
  return ids;
}

TokenHistory history(const std::vector<std::int32_t>& prompt, const std::vector<std::int32_t>& drawn) {
  TokenHistory before;
  before.add_prompt(prompt);
  for (const std::int32_t id : drawn) before.add_drawn(id);
  return before;
}

std::vector<std::int32_t> random_ids_below(int count) {
  return *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, count));
}

double random_number(int low, int high) { return 0.01 * *rc::gen::inRange(100 * low, 100 * high); }

}  // namespace

TEST_CASE("bias and penalties give the draws of logits that were changed by hand") {
  REQUIRE(rc::check([] {
    const int vocabulary = *rc::gen::inRange(1, 12);
    std::vector<double> logits;
    for (int i = 0; i < vocabulary; ++i) logits.push_back(random_number(-5, 5));
    const std::vector<std::int32_t> prompt = random_ids_below(vocabulary), drawn = random_ids_below(vocabulary);
    Sampling options{.temperature = random_number(0, 2), .top_p = random_number(0, 1) + 0.01, .seed = 7};
    options.repetition_penalty = random_number(0, 3) + 0.01;
    options.frequency_penalty = random_number(-2, 2);
    options.presence_penalty = random_number(-2, 2);
    const std::int32_t biased = *rc::gen::inRange(0, vocabulary);
    options.logit_bias = {{biased, random_number(-9, 9)}};

    std::vector<double> changed = logits;
    changed[static_cast<std::size_t>(biased)] += options.logit_bias[0].bias;
    for (std::int32_t id = 0; id < vocabulary; ++id) {
      double& logit = changed[static_cast<std::size_t>(id)];
      const auto times = std::ranges::count(drawn, id), in_prompt = std::ranges::count(prompt, id);
      if (times + in_prompt > 0)
        logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
      if (times > 0) logit -= static_cast<double>(times) * options.frequency_penalty + options.presence_penalty;
    }
    const Sampling plain{.temperature = options.temperature, .top_p = options.top_p, .seed = 7};
    RC_ASSERT(draws(options, logits, history(prompt, drawn)) == draws(plain, changed));
  }));
}

TEST_CASE("min-p keeps the tokens with at least this share of the largest probability, after the temperature") {
  REQUIRE(rc::check([] {
    const int vocabulary = *rc::gen::inRange(1, 12);
    std::vector<double> logits;
    for (int i = 0; i < vocabulary; ++i) logits.push_back(random_number(-3, 3));
    const double temperature = random_number(0, 2) + 0.01, share = random_number(0, 1) + 0.01;
    std::vector<double> cut = logits;
    const double largest = *std::ranges::max_element(logits);
    for (double& logit : cut) {
      if (std::exp((logit - largest) / temperature) < share) logit = -kInfinity;
    }
    RC_ASSERT(draws({.temperature = temperature, .min_p = share, .seed = 3}, logits) ==
              draws({.temperature = temperature, .seed = 3}, cut));
  }));
}

TEST_CASE("min-p is applied to what top-k and top-p have left, and never removes the most likely token") {
  const std::vector<double> logits = {0, 1, 2, 2, -1};
  const auto ids = [&](const Sampling& options) {
    const std::vector<std::int32_t> list = draws(options, logits);
    return std::map<std::int32_t, int>{{0, std::ranges::count(list, 0)},
                                       {1, std::ranges::count(list, 1)},
                                       {2, std::ranges::count(list, 2)},
                                       {3, std::ranges::count(list, 3)},
                                       {4, std::ranges::count(list, 4)}};
  };
  REQUIRE(ids({.temperature = 1, .top_k = 1, .min_p = 1}).at(2) == 40);
  const auto both = ids({.temperature = 1, .min_p = 1});
  REQUIRE(both.at(2) + both.at(3) == 40);
  REQUIRE(both.at(2) > 0);
  REQUIRE(both.at(3) > 0);
  REQUIRE(ids({.temperature = 1, .top_k = 2, .min_p = 0.01}) == ids({.temperature = 1, .top_k = 2}));
}

TEST_CASE("the largest logit is chosen after bias and penalties") {
  const std::vector<double> logits = {1, 2, 3};
  REQUIRE(draws({.temperature = 0, .logit_bias = {{2, -5}}}, logits).front() == 1);
  Sampling repeated{.temperature = 0};
  repeated.repetition_penalty = 4;
  REQUIRE(draws(repeated, logits, history({2}, {})).front() == 1);
  REQUIRE(draws(repeated, {-1, -2, -3}, history({0}, {})).front() == 1);  // negative logits become more negative
  Sampling present{.temperature = 0};
  present.presence_penalty = 10;
  REQUIRE(draws(present, logits, history({2}, {})).front() == 2);  // only what is in the new text counts
  REQUIRE(draws(present, logits, history({}, {2})).front() == 1);
}

TEST_CASE("a bias makes no impossible token possible, and infinite logits stay what they are") {
  REQUIRE(draws({.temperature = 1, .logit_bias = {{0, 1e9}}}, {-kInfinity, 0}).front() == 1);
  REQUIRE(draws({.temperature = 1, .logit_bias = {{0, -1e9}}}, {kInfinity, 0}).front() == 0);
  Sampling penalized{.temperature = 1};
  penalized.repetition_penalty = 100;
  REQUIRE(draws(penalized, {kInfinity, -kInfinity, 5}, history({}, {0, 1, 2})).front() == 0);
}

TEST_CASE("transforms with values out of range are refused") {
  REQUIRE_THROWS_WITH(Sampler({.min_p = 1.5}), ContainsSubstring("min_p: must be in [0, 1]; got 1.5"));
  REQUIRE_THROWS_WITH(Sampler({.min_p = std::nan("")}), ContainsSubstring("min_p"));
  REQUIRE_THROWS_WITH(Sampler({.repetition_penalty = 0}), ContainsSubstring("greater than 0; got 0"));
  REQUIRE_THROWS_WITH(Sampler({.frequency_penalty = kInfinity}), ContainsSubstring("frequency_penalty"));
  REQUIRE_THROWS_WITH(Sampler({.presence_penalty = kInfinity}), ContainsSubstring("presence_penalty"));
  REQUIRE_THROWS_WITH(Sampler({.logit_bias = {{3, kInfinity}}}), ContainsSubstring("for id 3"));
  REQUIRE_THROWS_WITH(draws({.logit_bias = {{2, 1}}}, {0, 0}), ContainsSubstring("must be in [0, 2); got 2"));
}

TEST_CASE("log-probabilities are the log-softmax of the logits, the most probable first") {
  const std::vector<double> logits = {0.5, -1, 2, 2, -kInfinity};
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  const TokenLogProbabilities result = log_probabilities(tensor<double>(logits, {1, 5}), 1, 3);
  REQUIRE(result.drawn.id == 1);
  REQUIRE(result.drawn.value == Approx(-1 - std::log(sum)).epsilon(1e-14));
  REQUIRE(result.top.size() == 3);
  REQUIRE((result.top[0].id == 2 && result.top[1].id == 3 && result.top[2].id == 0));
  REQUIRE(result.top[2].value == Approx(0.5 - std::log(sum)).epsilon(1e-14));
  REQUIRE(log_probabilities(tensor<double>(logits, {5}), 0, 9).top.size() == 5);
  REQUIRE(log_probabilities(tensor<double>(logits, {5}), 4, 0).drawn.value == -kInfinity);
  for (const auto& [id, count] : {std::pair(-1, 1), std::pair(5, 1), std::pair(0, -1)})
    REQUIRE_THROWS_AS(log_probabilities(tensor<double>(logits, {5}), id, count), Error);
  REQUIRE(log_probabilities(tensor<float>({1e30F, std::numeric_limits<float>::infinity()}, {2}), 1, 1).drawn.value ==
          0);
}
