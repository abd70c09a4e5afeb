#include "nn/generate/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include "autograd/core/check.h"
#include "tests/catch.h"

using namespace maki;

namespace {

std::map<std::int32_t, double> frequencies(const Sampling& options, const Tensor& logits, int draws = 40000) {
  Sampler sampler(options);
  std::map<std::int32_t, double> result;
  for (int i = 0; i < draws; ++i) result[sampler(logits, 0, static_cast<std::uint64_t>(i))] += 1.0 / draws;
  return result;
}

const Tensor kLogits = tensor<float>({0, 1, 2, 2, -1}, {5});

}  // namespace

TEST_CASE("samples follow the softmax of logits over temperature") {
  const auto seen = frequencies({.temperature = 0.5, .top_k = 0, .top_p = 1, .seed = 3}, kLogits);
  double total = 0;
  for (int i = 0; i < 5; ++i) total += std::exp(kLogits.at(i) / 0.5);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(seen.at(i) == Approx(std::exp(kLogits.at(i) / 0.5) / total).margin(0.01));
  }
}

TEST_CASE("temperature 0 and top-k 1 choose the largest logit, and the lowest id among equals") {
  for (const Sampling& options : {Sampling{.temperature = 0}, Sampling{.temperature = 1, .top_k = 1}}) {
    const auto seen = frequencies(options, kLogits, 100);
    REQUIRE(seen.size() == 1);
    REQUIRE(seen.begin()->first == 2);
  }
}

TEST_CASE("top-k keeps exactly k, top-p the smallest set that reaches p") {
  REQUIRE(frequencies({.temperature = 1, .top_k = 3}, kLogits).size() == 3);
  const auto two = frequencies({.temperature = 1, .top_k = 2}, kLogits);
  REQUIRE((two.size() == 2 && two.contains(2) && two.contains(3)));
  REQUIRE(frequencies({.temperature = 1, .top_k = 99}, kLogits).size() == 5);
  // Probabilities: 0.39 0.39 0.144 0.053 0.019.
  REQUIRE(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.3}, kLogits).size() == 1);
  REQUIRE(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.7}, kLogits).size() == 2);
  REQUIRE(frequencies({.temperature = 1, .top_k = 0, .top_p = 0.8}, kLogits).size() == 3);
}

TEST_CASE("among equal logits top-k and top-p keep the lowest ids, and no more than necessary") {
  const auto ids = [](const Sampling& options, const Tensor& logits) {
    std::vector<std::int32_t> list;
    for (const auto& [id, frequency] : frequencies(options, logits, 1000)) list.push_back(id);
    return list;
  };
  const Tensor four = tensor<float>({1, 1, 1, 1}, {4}), behind = tensor<float>({0, 3, 3, 3, 3}, {5});
  using Ids = std::vector<std::int32_t>;
  REQUIRE(ids({.temperature = 1, .top_k = 2}, four) == Ids{0, 1});
  REQUIRE(ids({.temperature = 1, .top_p = 0.5}, four) == Ids{0, 1});
  REQUIRE(ids({.temperature = 1, .top_p = 0.51}, four) == Ids{0, 1, 2});
  REQUIRE(ids({.temperature = 1, .top_k = 3, .top_p = 0.5}, four) ==
          Ids{0, 1});  // two of the three reach a probability of 0.5
  REQUIRE(ids({.temperature = 1, .top_k = 2}, behind) == Ids{1, 2});
}

TEST_CASE("a sample is a function of seed, sample and position") {
  const auto sequence = [](std::uint64_t seed, std::uint64_t sample) {
    Sampler sampler({.temperature = 1, .top_k = 0, .top_p = 1, .seed = seed});
    std::vector<std::int32_t> ids;
    for (std::uint64_t i = 0; i < 50; ++i) ids.push_back(sampler(kLogits, sample, i));
    return ids;
  };
  REQUIRE(sequence(1, 0) == sequence(1, 0));
  REQUIRE(sequence(1, 0) != sequence(2, 0));
  REQUIRE(sequence(1, 0) != sequence(1, 1));
}

TEST_CASE("logits that are infinite, huge or NaN, and options out of range") {
  const double infinity = std::numeric_limits<double>::infinity();
  Sampler sampler({.temperature = 1});
  REQUIRE(sampler(tensor<double>({-infinity, 3, -infinity}, {3}), 0, 0) == 1);
  REQUIRE(sampler(tensor<double>({1e300, -1e300}, {2}), 0, 0) == 0);
  for (const Sampling& options : {Sampling{.temperature = 1}, Sampling{.temperature = 0}, Sampling{.top_p = 0.5}}) {
    Sampler refusing(options);
    REQUIRE_THROWS_AS(refusing(tensor<double>({std::nan(""), infinity}, {2}), 0, 0), BadLogitsError);
    REQUIRE_THROWS_WITH(refusing(tensor<double>({0, std::nan("")}, {2}), 0, 0), ContainsSubstring("contain NaN"));
    REQUIRE_THROWS_WITH(refusing(tensor<double>({-infinity, -infinity}, {2}), 0, 0), ContainsSubstring("all -Inf"));
  }
  REQUIRE_THROWS_AS(Sampler({.temperature = -1}), Error);
  REQUIRE_THROWS_AS(Sampler({.temperature = infinity}), Error);
  REQUIRE_THROWS_AS(Sampler({.temperature = 1, .top_k = -1}), Error);
  REQUIRE_THROWS_AS(Sampler({.temperature = 1, .top_k = 0, .top_p = 0}), Error);
}

TEST_CASE("logits of +Inf share all the probability equally") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor one = tensor<float>({5, infinity, -infinity, 7}, {4});
  const Tensor two = tensor<float>({infinity, 100, infinity, -infinity}, {4});
  for (const Sampling& options : {Sampling{.temperature = 1}, Sampling{.temperature = 1, .top_k = 3},
                                  Sampling{.temperature = 2, .top_p = 0.9}, Sampling{.temperature = 0}}) {
    const auto seen = frequencies(options, one, 50);
    REQUIRE((seen.size() == 1 && seen.contains(1)));
  }
  const auto seen = frequencies({.temperature = 1}, two);
  REQUIRE(seen.size() == 2);
  REQUIRE(seen.at(0) == Approx(0.5).margin(0.02));
  REQUIRE(seen.at(2) == Approx(0.5).margin(0.02));
  REQUIRE(frequencies({.temperature = 0}, two, 5).at(0) == Approx(1));
}
