// The bidirectional encoder: what its tokens see, its two heads, gradients, counts, and what it refuses.
#include "nn/models/encoder.h"

#include <cmath>
#include <set>

#include "autograd/core/storage.h"
#include "autograd/gradcheck.h"
#include "optim/adam.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr EncoderConfig kSmallEncoder{kSmall};

std::vector<EncoderConfig> variants() {
  std::vector<EncoderConfig> list(9, kSmallEncoder);
  list[1].norm_order = NormOrder::post;
  list[1].positions = Positions::sinusoidal;
  list[2].positions = Positions::none;
  list[2].tie_weights = false;
  list[2].bias = false;
  list[3].classes = 3;
  list[4].positions = Positions::rotary;
  list[5].ngram_orders = {2, 3}, list[5].ngram_rows = 49;
  list[6].n_kv_head = 1;
  list[6].qk_norm = true;
  list[6].ffn_width = 20;
  list[6].norm_epsilon = 1e-3;
  list[7].conv_width = 3;
  list[7].positions = Positions::rotary;
  list[8].conv_width = 4;
  list[8].norm_order = NormOrder::post;
  return list;
}

struct SmallEncoder {
  explicit SmallEncoder(const EncoderConfig& config, DType dtype = DType::float64)
      : store(dtype), wrapped(Scope(store), config), model(wrapped.encoder) {
    store.seal(1);
  }
  ParameterStore store;
  EncoderModel wrapped;
  const Encoder& model;
};

// ids [B, T] and a mask that hides the last b tokens of sequence b; of every third token the target is asked for.
Batch masked_batch(const EncoderConfig& config, std::int64_t batch, std::int64_t tokens, std::uint64_t seed) {
  Batch made{.ids = random_ids(batch, tokens, config.vocab_size, seed),
             .targets = random_ids(batch, tokens, config.vocab_size, seed + 1),
             .source_mask = full({batch, tokens}, DType::int32, 1)};
  for (std::int64_t i = 0; i < batch * tokens; ++i) {
    const bool padding = i % tokens >= tokens - i / tokens;
    if (padding) made.source_mask.data<std::int32_t>()[i] = 0;
    if (padding || i % 3 != 0) made.targets.data<std::int32_t>()[i] = CrossEntropy{}.ignored;
  }
  if (config.classes > 0) made.targets = random_ids(batch, 1, config.classes, seed);
  return made;
}

double step(SmallEncoder& small, Optimizer& optimizer, Tape& tape, const Batch& batch, double lr) {
  const Tensor loss = [&] {
    const Recording on(tape);
    return small.model.loss(batch);
  }();
  tape.backward(loss);
  optimizer.step(lr);
  return loss.item();
}

}  // namespace

TEST_CASE("encoder: activations are estimated with the logits of three in ten tokens, or those of the classes") {
  const auto bytes = [](std::int64_t vocab_size, std::int64_t classes) {
    EncoderConfig config = kSmallEncoder;
    config.vocab_size = vocab_size;
    config.classes = classes;
    return SmallEncoder(config).wrapped.activation_bytes(8, 64);
  };
  REQUIRE(bytes(1007, 0) - bytes(7, 0) == 3 * 8 * 64 / 10 * 1000 * 8);
  REQUIRE(bytes(7, 13) - bytes(7, 3) == 8 * 10 * 8);
  REQUIRE(bytes(1007, 3) == bytes(7, 3));
}

TEST_CASE("encoder: permuting the tokens permutes the output without positions, and does not with them") {
  for (const Positions positions : {Positions::none, Positions::learned, Positions::sinusoidal, Positions::rotary}) {
    for (const NormOrder norm : {NormOrder::pre, NormOrder::post}) {
      EncoderConfig config = kSmallEncoder;
      config.positions = positions;
      config.norm_order = norm;
      SmallEncoder small(config);
      randomize(small.store, 2);
      const std::vector<std::int32_t> ids = {3, 1, 4, 1, 5, 2, 6};
      const std::vector<std::size_t> order = {4, 2, 0, 6, 5, 1, 3};
      std::vector<std::int32_t> permuted;
      for (const std::size_t from : order) permuted.push_back(ids[from]);
      const Tensor y = small.model.hidden(tensor(ids, {1, 7})), z = small.model.hidden(tensor(permuted, {1, 7}));
      double largest = 0;
      for (std::size_t t = 0; t < order.size(); ++t) {
        for (std::size_t c = 0; c < 12; ++c) {
          const double gap =
              z.at(static_cast<std::int64_t>(t * 12 + c)) - y.at(static_cast<std::int64_t>(order[t] * 12 + c));
          largest = max_or_nan(largest, std::abs(gap));
        }
      }
      if (positions == Positions::none) {
        REQUIRE(largest < 1e-12);
      } else {
        REQUIRE(largest > 1e-2);
      }
    }
  }
}

TEST_CASE("encoder: with rotary positions only distances count, and there is no longest text") {
  EncoderConfig config = kSmallEncoder;
  config.positions = Positions::rotary;
  SmallEncoder small(config);
  randomize(small.store, 2);
  constexpr std::int64_t kTokens = 12, kShift = 5;
  const Tensor ids = random_ids(1, kTokens, config.vocab_size, 1);
  Tensor shifted = zeros({1, kShift + kTokens}, DType::int32), visible = zeros({1, kShift + kTokens}, DType::int32);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    shifted.data<std::int32_t>()[kShift + t] = ids.data<std::int32_t>()[t];
    visible.data<std::int32_t>()[kShift + t] = 1;
  }
  const Tensor y = small.model.hidden(ids), z = small.model.hidden(shifted, visible);
  for (std::int64_t i = 0; i < kTokens * config.n_embd; ++i)
    REQUIRE(std::abs(y.at(i) - z.at(kShift * config.n_embd + i)) < 1e-12);
}

TEST_CASE("encoder: every token sees every other token, and nothing of padding") {
  for (const EncoderConfig& config : variants()) {
    SmallEncoder small(config);
    randomize(small.store, 3);
    const std::int64_t batch = 3, tokens = 6;
    const Batch made = masked_batch(config, batch, tokens, 4);
    const Tensor before = small.model.hidden(made.ids, made.source_mask);
    for (std::int64_t i = 0; i < batch * tokens; ++i) {
      Tensor ids = copy_of<std::int32_t>(made.ids);
      ids.data<std::int32_t>()[i] = (ids.data<std::int32_t>()[i] + 1) % 7;
      const Tensor after = small.model.hidden(ids, made.source_mask);
      for (std::int64_t row = 0; row < batch * tokens; ++row) {
        if (made.source_mask.at(row) == 0) continue;  // the vectors of padding mean nothing
        const bool sees = row / tokens == i / tokens && made.source_mask.at(i) != 0;
        INFO("from token " << i << " to " << row);
        REQUIRE(same_bits(after, row * 12, before, row * 12, 12) == !sees);
      }
    }
  }
}

TEST_CASE("encoder: a token has different vectors in different sentences") {
  SmallEncoder small(kSmallEncoder);
  randomize(small.store, 5);
  const Tensor y = small.model.hidden(tensor<std::int32_t>({1, 2, 3, 4, 2, 5}, {2, 3}));
  REQUIRE_FALSE(same_bits(y, 1 * 12, y, 4 * 12, 12));
}

TEST_CASE("encoder: the loss is that of all logits at the tokens with a target, and so is every gradient") {
  EncoderConfig config = kSmallEncoder;
  for (const bool tied : {true, false}) {
    config.tie_weights = tied;
    SmallEncoder small(config);
    randomize(small.store, 6);
    Batch made = masked_batch(config, 3, 8, 7);
    Tape tape;
    const auto gradients = [&](bool whole) {
      const Tensor loss = [&] {
        const Recording on(tape);
        return whole ? cross_entropy(small.model.logits(made.ids, made.source_mask), made.targets)
                     : small.model.loss(made);
      }();
      tape.backward(loss);
      std::vector<double> all = {loss.item()};
      for (const auto& parameter : small.store.parameters()) {
        const Tensor g = parameter->gradient();
        for (std::int64_t i = 0; i < g.numel(); ++i) all.push_back(g.at(i));
      }
      small.store.clear_gradients();
      return all;
    };
    const std::vector<double> a = gradients(true), b = gradients(false);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) < 1e-12);
    made.targets = full({3, 8}, DType::int32, CrossEntropy{}.ignored);
    for (const double zero : gradients(false)) REQUIRE(zero == 0);
  }
}

TEST_CASE("encoder: a classifier reads the mean of the tokens without padding") {
  EncoderConfig config = kSmallEncoder;
  config.classes = 3;
  SmallEncoder small(config);
  randomize(small.store, 8);
  const Batch made = masked_batch(config, 3, 6, 9);
  const Tensor y = small.model.class_logits(made.ids, made.source_mask);
  REQUIRE(y.shape() == Shape{3, 3});
  const Tensor hidden = small.model.hidden(made.ids, made.source_mask);
  for (std::int64_t b = 0; b < 3; ++b) {
    Tensor average = zeros({12}, DType::float64);
    for (std::int64_t i = 0; i < (6 - b) * 12; ++i) {
      average.data<double>()[i % 12] += hidden.at(b * 72 + i) / static_cast<double>(6 - b);
    }
    const Tensor expected = (*small.model.classifier)(average);
    for (std::int64_t i = 0; i < 3; ++i) REQUIRE(y.at(b * 3 + i) == Approx(expected.at(i)).epsilon(1e-12));
  }
  const Tensor all = small.model.class_logits(made.ids, full({3, 6}, DType::int32, 1));
  const Tensor none = small.model.class_logits(made.ids);
  for (std::int64_t i = 0; i < all.numel(); ++i) REQUIRE(all.at(i) == Approx(none.at(i)).epsilon(1e-12));
  Batch flat = made;
  flat.targets = reshape(made.targets, {3});
  REQUIRE(small.model.loss(flat).item() == small.model.loss(made).item());
}

TEST_CASE("encoder: no precision rounds the mean of the tokens, whether there is padding or not") {
  EncoderConfig config = kSmallEncoder;
  config.classes = 3;
  SmallEncoder small(config, DType::float32);
  randomize(small.store, 8);
  Batch made = masked_batch(config, 3, 6, 9);
  const ProductPrecision precision(Precision::bfloat16);
  Tape tape;
  const auto step = [&](const Tensor& mask) {
    made.source_mask = mask;
    const Tensor loss = [&] {
      const Recording on(tape);
      return small.model.loss(made);
    }();
    tape.backward(loss);
    std::vector<double> all = {loss.item()};
    const Tensor g = small.model.wte.weight.gradient();
    for (std::int64_t i = 0; i < g.numel(); ++i) all.push_back(g.at(i));
    small.store.clear_gradients();
    return all;
  };
  // A mask that hides nothing has the mean of the same tokens.
  const std::vector<double> none = step(Tensor()), ones = step(full({3, 6}, DType::int32, 1));
  REQUIRE(none.size() == ones.size());
  for (std::size_t i = 0; i < none.size(); ++i) REQUIRE(std::abs(ones[i] - none[i]) < 1e-5);
}

TEST_CASE("encoder: the gradient of every parameter") {
  for (EncoderConfig config : variants()) {
    config.n_embd = 8;
    config.dropout = config.norm_order == NormOrder::post ? 0.2 : 0;
    SmallEncoder small(config);
    randomize(small.store, 10);
    const Batch made = masked_batch(config, 3, 5, 11);
    const GradcheckOptions options{.step = 2.5e-4, .relative_floor = 1e-6, .random = {.seed = 3}};
    const auto loss = [&] { return small.model.loss(made, {.label_smoothing = 0.1}); };
    const std::vector<GradcheckResult> results = gradcheck(small.store, loss, options);
    REQUIRE(results.size() == small.store.parameters().size());
    for (const GradcheckResult& result : results) {
      INFO(result.name << ": error " << result.error);
      REQUIRE(result.passed(1e-8));
    }
  }
}

TEST_CASE("encoder: a token is predicted from both sides, and a class from the whole sequence") {
  for (EncoderConfig config : variants()) {
    if (config.positions == Positions::none) continue;  // cannot know which neighbour is which
    config.n_embd = 32;
    SmallEncoder small(config, DType::float32);
    Adam optimizer(small.store, {.beta2 = 0.99});
    Tape tape;
    // Token 6 is the mask in the middle; its target is a function of both neighbours.
    Batch made{.ids = random_ids(12, 3, 6, 12), .targets = full({12, 3}, DType::int32, CrossEntropy{}.ignored)};
    if (config.classes > 0) made.targets = zeros({12, 1}, DType::int32);
    for (std::int64_t b = 0; b < 12; ++b) {
      std::int32_t* const ids = made.ids.data<std::int32_t>() + b * 3;
      if (config.classes > 0) {
        made.targets.data<std::int32_t>()[b] = (ids[0] + 2 * ids[2]) % 3;
      } else {
        made.targets.data<std::int32_t>()[b * 3 + 1] = (ids[0] + 2 * ids[2]) % 6;
      }
      ids[1] = 6;
    }
    double loss = 10;
    int steps = 0;
    for (; loss >= 0.01 && steps < 500; ++steps) loss = step(small, optimizer, tape, made, 0.005);
    INFO("steps " << steps << ", loss " << loss << ", classes " << config.classes);
    REQUIRE(loss < 0.01);
  }
}

TEST_CASE("encoder: parameters, their counts, and the memory of a step") {
  for (EncoderConfig config : variants()) {
    config.n_embd = 64;
    config.block_size = 64;
    SmallEncoder small(config, DType::float32);
    std::int64_t count = 0;
    std::set<std::string> names;
    for (const auto& parameter : small.store.parameters()) {
      names.insert(parameter->name());
      if (parameter->name() != "wpe.weight") count += parameter->shape().numel();
    }
    REQUIRE(names.contains("h.1.attn.c_attn.weight"));
    REQUIRE(names.contains("wpe.weight") == (config.positions == Positions::learned));
    REQUIRE(names.contains("ln_f.weight") == (config.norm_order == NormOrder::pre));
    REQUIRE(names.contains("lm_head.weight") == !config.tie_weights);
    REQUIRE(names.contains("classifier.weight") == (config.classes > 0));
    std::int64_t looked_up = !config.tie_weights || config.classes > 0 ? 7 * 64 : 0;
    if (!config.ngram_orders.empty()) looked_up += 2 * 49 * 64;
    REQUIRE(flop_per_token(small.wrapped, small.store, 10) ==
            6.0 * static_cast<double>(count - looked_up) + 12.0 * 2 * 64 * 10);

    const Batch made = masked_batch(config, 8, 64, 13);
    Adam optimizer(small.store);
    Tape tape;
    step(small, optimizer, tape, made, 1e-3);
    storage_pool::trim();
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    storage_pool::reset_peak();
    step(small, optimizer, tape, made, 1e-3);
    const auto taken = static_cast<double>(storage_pool::statistics().peak_bytes - before);
    const auto estimate = static_cast<double>(small.wrapped.activation_bytes(8, 64));
    INFO("estimated " << estimate << ", taken " << taken);
    CHECK(estimate > 0.85 * taken);
    CHECK(estimate < 1.2 * taken);
  }
}

TEST_CASE("encoder: impossible configurations and inputs are refused with messages that contain the values") {
  ParameterStore store;
  const auto build = [&](EncoderConfig config) { Encoder(Scope(store), config); };
  REQUIRE_THROWS_WITH(build({{.n_head = 5, .n_embd = 12}}), ContainsSubstring("12 and 5"));
  REQUIRE_THROWS_AS(build({{}, -1}), Error);
  REQUIRE_THROWS_AS(build({{.dropout = 1}}), Error);
  const SmallEncoder small(kSmallEncoder);
  EncoderConfig config = kSmallEncoder;
  config.classes = 3;
  const SmallEncoder classifier(config);
  const Tensor ids = random_ids(2, 4, 7, 1);
  REQUIRE_THROWS_WITH(small.model.hidden(random_ids(1, 10, 7, 1)), ContainsSubstring("block_size = 9"));
  REQUIRE_THROWS_WITH(small.model.hidden(ids, zeros({2, 4}, DType::int32)),
                      ContainsSubstring("encoder: source_mask") && ContainsSubstring("hides all 4"));
  REQUIRE_THROWS_WITH(small.model.class_logits(ids), ContainsSubstring("no classes"));
  REQUIRE_THROWS_WITH(classifier.model.logits(ids), ContainsSubstring("classifier of 3 classes"));
  REQUIRE_THROWS_WITH(small.model.loss({.ids = ids, .targets = zeros({2, 3}, DType::int32)}),
                      ContainsSubstring("[2, 4]") && ContainsSubstring("[2, 3]"));
  REQUIRE_THROWS_WITH(classifier.model.loss({.ids = ids, .targets = ids}), ContainsSubstring("each of 2 sequences"));
}
