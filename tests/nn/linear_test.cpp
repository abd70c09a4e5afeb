// The model `linear`: causal to the bit, the same in parallel and one token after the other, exact gradients, a state
// of constant size.
#include "nn/models/linear.h"

#include <array>
#include <cmath>
#include <fmt/ranges.h>

#include "autograd/gradcheck.h"
#include "nn/generate/generate.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<std::string> kForms = {"elu", "random:7", "random:40", "nystrom:5"};

struct SmallLinear {
  SmallLinear(const TransformerConfig& config, const std::string& form, DType dtype)
      : store(dtype), model(Scope(store), {config, parse_attention(form)}) {
    store.seal(1);
  }
  /// Draws all values but those of frozen parameters, which SmallGpt would draw, too.
  void randomize(std::uint64_t seed) {
    for (const auto& parameter : store.parameters()) {
      if (!parameter->trainable()) continue;
      const RandomStream stream(seed, RandomPurpose::test, parameter->name());
      dispatch(store.dtype(), [&]<class T>() {
        T* const value = store.values().data<T>() + parameter->offset();
        for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
          const double draw = stream.normal(static_cast<std::uint64_t>(i));
          value[i] = static_cast<T>(parameter->shape().rank() >= 2 ? 0.5 * draw : value[i] + 0.1 * draw);
        }
      });
    }
    store.mark_changed();
  }
  Tensor loss(const Tensor& ids, const Tensor& targets) const {
    return model.loss({.ids = ids, .targets = targets}, {});
  }

  ParameterStore store;
  LinearModel model;
};

TransformerConfig with(Positions positions, std::int64_t block_size = kSmall.block_size) {
  TransformerConfig config = kSmall;
  config.positions = positions;
  config.block_size = block_size;
  return config;
}

/// Largest difference of row b of `logits` [B, V] from row (b, t) of `all` [B, T, V].
double difference(const Tensor& logits, const Tensor& all, std::int64_t t) {
  const std::int64_t v = logits.shape()[1], tokens = all.shape()[1];
  double most = 0;
  for (std::int64_t i = 0; i < logits.numel(); ++i) {
    const double d = std::abs(logits.at(i) - all.at((i / v * tokens + t) * v + i % v));
    if (!(d <= most)) most = d;
  }
  return most;
}

std::int64_t elements(State& state) {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : state.tensors()) sum += tensor->numel();
  return sum;
}

}  // namespace

TEST_CASE("linear: changing a token changes its own and all later logits, and no bit of earlier ones") {
  for (const std::string& form : kForms) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const TransformerConfig config = with(Positions::rotary, 70);
      SmallLinear linear(config, form, dtype);
      linear.randomize(3);
      const std::int64_t tokens = config.block_size, v = config.vocab_size;
      const Tensor ids = random_ids(2, tokens, v, 5), before = linear.model.logits(ids);
      for (const std::int64_t t : {0, 1, 31, 62, 63, 64, 69}) {
        Tensor changed = copy_of<std::int32_t>(ids);
        std::int32_t& id = changed.data<std::int32_t>()[tokens + t];  // of the second sequence
        id = static_cast<std::int32_t>((id + 1) % v);
        const Tensor after = linear.model.logits(changed);
        INFO(form << ", token " << t);
        REQUIRE(same_bits(after, 0, before, 0, (tokens + t) * v));
        for (std::int64_t later = t; later < tokens; ++later) {
          REQUIRE_FALSE(same_bits(after, (tokens + later) * v, before, (tokens + later) * v, v));
        }
      }
    }
  }
}

TEST_CASE("linear: step by step equals the parallel pass to 1e-12, however the tokens are split into calls") {
  for (const std::string& form : kForms) {
    for (const Positions positions : {Positions::learned, Positions::rotary, Positions::none}) {
      const TransformerConfig config = with(positions, 80);
      SmallLinear linear(config, form, DType::float64);
      linear.randomize(4);
      const Tensor ids = random_ids(3, 80, config.vocab_size, 6), all = linear.model.logits(ids);
      for (const std::vector<std::int64_t>& pieces :
           std::vector<std::vector<std::int64_t>>{{1}, {66, 1}, {3, 7}, {80}}) {
        const std::unique_ptr<State> state = linear.model.start(3);
        const std::int64_t size = elements(*state);
        for (std::size_t i = 0; state->length() < 80; ++i) {
          const std::int64_t begin = state->length(),
                             end = std::min<std::int64_t>(80, begin + pieces[i % pieces.size()]);
          const Tensor logits = linear.model.next_logits(columns(ids, begin, end), *state);
          INFO(form << ", tokens " << begin << " to " << end);
          REQUIRE(state->length() == end);
          REQUIRE(difference(logits, all, end - 1) < 1e-12);
        }
        REQUIRE(elements(*state) == size);
        state->clear();
        REQUIRE(state->length() == 0);
        REQUIRE(difference(linear.model.next_logits(columns(ids, 0, 5), *state), all, 4) < 1e-12);
      }
    }
  }
}

TEST_CASE("linear: reorder gives every row the state of the chosen row") {
  SmallLinear linear(with(Positions::none), "elu", DType::float64);
  linear.randomize(5);
  const Tensor ids = random_ids(3, 9, 7, 7), all = linear.model.logits(ids);
  const std::unique_ptr<State> state = linear.model.start(3);
  linear.model.next_logits(columns(ids, 0, 8), *state);
  const std::vector<std::int32_t> rows = {2, 0, 2};
  state->reorder(rows);
  Tensor last = empty({3, 1}, DType::int32);
  for (std::int64_t b = 0; b < 3; ++b)
    last.data<std::int32_t>()[b] = ids.data<std::int32_t>()[rows[static_cast<std::size_t>(b)] * 9 + 8];
  const Tensor logits = linear.model.next_logits(last, *state);
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t v = 0; v < 7; ++v) {
      REQUIRE(logits.at(b * 7 + v) ==
              Approx(all.at((rows[static_cast<std::size_t>(b)] * 9 + 8) * 7 + v)).margin(1e-12));
    }
  }
  REQUIRE_THROWS_AS(state->reorder(std::vector<std::int32_t>{}), Error);
  REQUIRE_THROWS_AS(state->reorder(std::vector<std::int32_t>{0, 1, 3}), Error);
}

TEST_CASE("linear: the tensors of a state are all of it") {
  SmallLinear linear(with(Positions::none), "random:6", DType::float32);
  linear.randomize(5);
  const Tensor ids = random_ids(2, 9, 7, 7);
  const std::unique_ptr<State> a = linear.model.start(2), b = linear.model.start(2);
  linear.model.next_logits(columns(ids, 0, 8), *a);
  const auto from = a->tensors(), to = b->tensors();
  REQUIRE(from.size() == 4);
  REQUIRE(from[0].first == "sums.0");
  REQUIRE(from[0].second->shape() == Shape{2, 2, 6, 6});
  REQUIRE(from[3].first == "norms.1");
  REQUIRE(from[3].second->shape() == Shape{2, 2, 6});
  for (std::size_t i = 0; i < from.size(); ++i) *to[i].second = copy_of<float>(*from[i].second);
  const Tensor last = columns(ids, 8, 9);
  REQUIRE(same_bits(linear.model.next_logits(last, *a), linear.model.next_logits(last, *b)));
}

TEST_CASE("linear: a state of an impossible size is refused") {
  const auto make = [](const std::array<std::int64_t, 5>& s) {
    LinearState(s[0], s[1], s[2], s[3], s[4], 9, DType::float32);
  };
  make({1, 1, 1, 1, 1});
  for (std::size_t i = 0; i < 5; ++i) {
    std::array<std::int64_t, 5> sizes = {1, 1, 1, 1, 1};
    sizes[i] = 0;
    REQUIRE_THROWS_WITH(make(sizes),
                        ContainsSubstring(fmt::format("must be at least 1; got {}", fmt::join(sizes, ", "))));
  }
}

TEST_CASE("linear: with softmax attention it is gpt, bit for bit") {
  SmallLinear linear(kSmall, "softmax", DType::float32);
  linear.randomize(6);
  SmallGpt gpt(kSmall);
  gpt.randomize(6);
  const Tensor ids = random_ids(2, 9, 7, 8);
  REQUIRE(same_bits(linear.model.logits(ids), gpt.model.logits(ids)));
  REQUIRE(linear.model.attention_flop(100) == attention_flop(kSmall, 100));
  REQUIRE(linear.model.activation_bytes(2, 9) == gpt.model.activation_bytes(2, 9));
  const std::unique_ptr<State> state = linear.model.start(2);
  KvCache cache = gpt.model.make_cache(2);
  REQUIRE(same_bits(linear.model.next_logits(ids, *state), gpt.model.next_logits(ids, cache)));
  REQUIRE(state->capacity() == kSmall.block_size);
}

TEST_CASE("linear: with many features it approaches the gpt of the same weights, with few it does not") {
  const Tensor ids = random_ids(2, 9, 7, 8);
  const auto error = [&](const std::string& form, double size) {
    SmallGpt gpt(with(Positions::rotary), DType::float64);
    SmallLinear linear(with(Positions::rotary), form, DType::float64);
    linear.randomize(6);
    gpt.randomize(6);
    for (const auto& parameter : gpt.store.parameters()) {  // attention that is far from uniform, but not a maximum
      for (ParameterStore* store : {&gpt.store, &linear.store}) {
        double* const value = store->values().data<double>() + store->find(parameter->name()).offset();
        for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) value[i] *= size;
      }
    }
    const Tensor a = linear.model.logits(ids), b = gpt.model.logits(ids);
    const double difference = std::sqrt(sum(mul(sub(a, b), sub(a, b))).item());
    return difference / std::sqrt(sum(mul(b, b)).item());
  };
  const double random_many = error("random:16384", 0.6), random_few = error("random:2", 0.6);
  const double nystrom_many = error("nystrom:200", 0.6), elu = error("elu", 0.6);
  INFO("random:16384 " << random_many << ", random:2 " << random_few << ", nystrom:200 " << nystrom_many << ", elu "
                       << elu);
  REQUIRE(random_many < 0.03);
  REQUIRE(nystrom_many < 0.01);
  REQUIRE(random_few > 0.03);
  REQUIRE(elu > 0.03);
}

TEST_CASE("linear: queries of any size give finite logits and gradients") {
  for (const std::string& form : kForms) {
    SmallLinear linear(with(Positions::none), form, DType::float32);
    linear.randomize(6);
    Parameter& qkv = linear.store.find("h.0.attn.c_attn.weight");
    for (std::int64_t i = 0; i < 12 * 12; ++i) linear.store.values().data<float>()[qkv.offset() + i] *= 1e4F;
    linear.store.mark_changed();
    const Tensor ids = random_ids(2, 9, 7, 8);
    Tape tape;
    const Tensor loss = [&] {
      const Recording on(tape);
      return linear.loss(ids, ids);
    }();
    REQUIRE(std::isfinite(loss.item()));
    tape.backward(loss);
    const Tensor gradients = linear.store.gradients();
    for (std::int64_t i = 0; i < gradients.numel(); ++i) REQUIRE(std::isfinite(gradients.at(i)));
  }
}

TEST_CASE("linear: the gradient of every parameter of a two-layer model") {
  for (const std::string& form : kForms) {
    for (const Positions positions : {Positions::learned, Positions::rotary}) {
      if (positions == Positions::rotary && form != "elu") continue;
      TransformerConfig config = with(positions, 4);
      config.n_embd = 8;
      config.dropout = positions == Positions::rotary ? 0.2 : 0;
      SmallLinear linear(config, form, DType::float64);
      linear.randomize(9);
      const Tensor ids = random_ids(2, 4, 7, 10), targets = random_ids(2, 4, 7, 11);
      GradcheckOptions options;
      options.step = 2.5e-4;
      options.halvings = 3;  // for elu + 1, whose second derivative jumps, and the floor of Nyström denominators
      options.random = {.seed = 5, .step = 3};
      // The gradient of a bias of random features' queries or keys may be 0 by mathematics.
      options.relative_floor = 1e-4;
      const auto results = gradcheck(
          linear.store, [&] { return linear.loss(ids, targets); }, options);
      REQUIRE(results.size() > 20);
      for (const GradcheckResult& result : results) {
        INFO(form << ", " << result.name << ": error " << result.error << ", worst " << result.worst << " "
                  << result.worst_analytic << " against " << result.worst_numeric);
        REQUIRE(result.passed(2e-7));
      }
    }
  }
}

TEST_CASE("linear: no bit of loss and gradients depends on the number of threads") {
  for (const std::string& form : kForms) {
    const TransformerConfig config = with(Positions::none, 600);
    SmallLinear linear(config, form, DType::float32);
    const Tensor ids = random_ids(1, 600, 7, 10), targets = random_ids(1, 600, 7, 11);
    const auto run = [&](int threads) {
      const ThreadsScope scope(threads);
      linear.store.clear_gradients();
      Tape tape;
      const Tensor loss = [&] {
        const Recording on(tape);
        return linear.loss(ids, targets);
      }();
      tape.backward(loss);
      return copy_of<float>(linear.store.gradients());
    };
    const Tensor alone = run(1);
    for (const int threads : {2, 3, 8}) REQUIRE(same_bits(run(threads), alone));
  }
}

TEST_CASE("linear: random and Nystrom vectors are frozen functions of the model's seed") {
  const auto drawn = [](const std::string& form, std::uint64_t seed) {
    ParameterStore store;
    const LinearModel model(Scope(store), {kSmall, parse_attention(form)});
    store.seal(seed);
    const Parameter& first = store.find(form == "random:7" ? "h.0.attn.projection" : "h.0.attn.landmarks");
    const Parameter& second = store.find(form == "random:7" ? "h.1.attn.projection" : "h.1.attn.landmarks");
    REQUIRE_FALSE(first.trainable());
    REQUIRE(first.shape()[1] == 6);
    REQUIRE_FALSE(same_bits(first.value(), second.value()));
    return copy_of<float>(first.value());
  };
  for (const std::string form : {"random:7", "nystrom:5"}) {
    REQUIRE(same_bits(drawn(form, 1), drawn(form, 1)));
    REQUIRE_FALSE(same_bits(drawn(form, 1), drawn(form, 2)));
  }
}

TEST_CASE("linear: operations per token do not depend on the length") {
  const auto flop = [](const std::string& form, std::int64_t length) {
    ParameterStore store;
    const LinearModel model(Scope(store), {kSmall, parse_attention(form)});
    return model.attention_flop(length);
  };
  // Two layers with two heads of six columns; 2 operations per product, forward and twice that backward.
  REQUIRE(flop("elu", 100) == 3 * 4 * (2 * 2 * 6 * 6));
  REQUIRE(flop("random:7", 100) == 3 * 4 * (2 * 2 * 7 * 6 + 2 * 2 * 7 * 6));
  REQUIRE(flop("nystrom:5", 100) == 3 * 4 * (2 * 2 * 5 * 6 + 2 * (2 * 5 * 6 + 2 * 5 * 5)));
  for (const std::string& form : kForms) REQUIRE(flop(form, 1) == flop(form, 100000));
  TransformerConfig single = kSmall;
  single.n_layer = 1;
  REQUIRE(SmallLinear(single, "random:7", DType::float32).model.attention_flop(9) == flop("random:7", 100) / 2);
  REQUIRE(flop("softmax", 200) == 2 * flop("softmax", 100));
}

TEST_CASE("linear: generation goes on beyond block_size without forgetting, except with learned positions") {
  SmallLinear linear(with(Positions::none), "elu", DType::float32), learned(kSmall, "elu", DType::float32);
  REQUIRE(linear.model.start(1)->capacity() == State::kUnlimitedCapacity);
  REQUIRE(learned.model.start(1)->capacity() == kSmall.block_size);
  const std::vector<std::int32_t> prompt = {1, 2, 3};
  for (const bool unlimited : {true, false}) {
    const Generated generated =
        generate((unlimited ? linear : learned).model, prompt,
                 {.max_tokens = 40, .sampling = {}, .slide_context = false}, 0, [](std::int32_t) { return true; });
    REQUIRE(generated.reason == (unlimited ? StopReason::max_tokens : StopReason::context_full));
    REQUIRE(generated.tokens == (unlimited ? 40 : kSmall.block_size - 3 + 1));
  }
}

TEST_CASE("linear: what a state or a model refuses") {
  SmallLinear linear(kSmall, "elu", DType::float32);
  const std::unique_ptr<State> state = linear.model.start(2);
  KvCache cache = linear.model.gpt.make_cache(2);
  REQUIRE_THROWS_WITH(linear.model.next_logits(zeros({2, 1}, DType::int32), cache),
                      ContainsSubstring("made by start()"));
  REQUIRE_THROWS_WITH(linear.model.next_logits(zeros({3, 1}, DType::int32), *state),
                      ContainsSubstring("must be [2, t]"));
  REQUIRE_THROWS_WITH(linear.model.next_logits(zeros({2, 10}, DType::int32), *state),
                      ContainsSubstring("block_size = 9"));
  REQUIRE_THROWS_WITH(linear.model.start(1, zeros({1, 1}, DType::int32)), ContainsSubstring("takes no source"));
  REQUIRE(state->length() == 0);
  Tape tape;
  const Recording on(tape);
  REQUIRE_THROWS_WITH(linear.model.next_logits(zeros({2, 1}, DType::int32), *state), ContainsSubstring("no gradient"));
}
