#include "train/plan/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "optim/muon.h"
#include "train/config/models.h"
#include "train/loop/estimate.h"

namespace maki {
namespace {

// In the comments of this file, "4 x 128" is a network of 4 layers of width 128, and losses are in nats per token.
using enum Recipe;
// Fitted to losses on tinyshakespeare, a million tokens. Tables, 1 x 64: 1.628 after 460,000 tokens, 1.564 after one
// pass; 2 x 128 is equal to it there, so that it pays only where there are more tokens. Network with tables, 4 x 128:
// 1.490 after 1.2 passes. Network, 4 x 128: 1.583 after 1.4 passes, 1.499 after 3.1, 1.482 after 10.5. Prior, 2 x 64:
// 1.469 after 0.54 passes, 1.459 after 1.8; 4 x 64: 1.453 after 0.92, 1.438 after 11.6, 1.427 after 15.3, 1.422 after
// 40; 4 x 128: 1.498 after 0.15, 1.456 after 1.2, 1.441 after 5.8, 1.441 after 7.7. The larger ones are extrapolated.
constexpr std::array kShapes = {ModelShape{tables, 1, 1, 64, 64, 1.365, 28.7},
                                ModelShape{tables, 2, 4, 128, 64, 1.34, 33.4},
                                ModelShape{network_with_tables, 4, 4, 128, 128, 1.198, 45},
                                ModelShape{network, 4, 4, 128, 128, 1.227, 57},
                                ModelShape{network_with_tables, 6, 6, 192, 128, 1.143, 58},
                                ModelShape{network, 6, 6, 192, 128, 1.164, 72},
                                ModelShape{network_with_tables, 6, 8, 256, 128, 1.095, 75},
                                ModelShape{network, 6, 8, 256, 128, 1.107, 92},
                                ModelShape{prior, 2, 2, 64, 128, 1.439, 3.5},
                                ModelShape{prior, 4, 4, 64, 128, 1.41, 6.0},
                                ModelShape{prior, 4, 8, 128, 128, 1.405, 7.8},
                                ModelShape{prior, 6, 12, 192, 128, 1.393, 11},
                                ModelShape{prior, 6, 16, 256, 128, 1.385, 13.5}};

// N-gram tables make a step of the smallest shape a tenth longer. They are left out of measurements, because their
// memory takes longer to prepare than a few steps.
constexpr double kTableShare = 1.1;

struct Candidate {
  const ModelShape* shape;
  Config config;
  double flop = 0;                                           // of one step
  double seconds = std::numeric_limits<double>::infinity();  // of one step; an upper estimate unless measured
  bool measured = false;

  double cost() const { return seconds * StepTimer::kTimedSteps; }
};

double flop_of_step(const Config& c, const VocabSizes& vocab) {
  ParameterStore planned(dtype_named(c.dtype));
  const std::unique_ptr<Model> model = make_model(c, vocab, Scope(planned));
  return model->flop_per_token(c.block_size) * static_cast<double>(c.block_size * c.batch_size * c.grad_accum);
}

// How much longer a step of the recipe takes than the one that is measured.
double share_of(const ModelShape& shape) {
  constexpr double kLargerShape = 1.03;
  return shape.recipe == tables ? kTableShare : shape.recipe == network_with_tables ? kLargerShape : 1;
}

// New tokens that are worth as much as those that a run reads, some of them again: Muennighoff et al. 2023,
// arXiv:2305.16264, eq. 5, with a constant that fits the losses of kShapes. `used`: used_share().
double tokens_of(const Candidate& c, double seconds, double train_tokens, double used) {
  constexpr double kUsefulRepetitions = 2.35;
  const double per_step = used * static_cast<double>(c.config.block_size * c.config.batch_size * c.config.grad_accum);
  const double read = seconds / (c.seconds * share_of(*c.shape)) * per_step;
  const double passes = std::min(c.shape->most_passes(train_tokens), read / train_tokens);
  if (passes <= 1) return passes * train_tokens;
  return train_tokens * (1 + kUsefulRepetitions * (1 - std::exp((1 - passes) / kUsefulRepetitions)));
}

// Training texts with fewer tokens than this are short: tables alone read them a little more than once, and a network
// with tables was not tried on them.
constexpr double kShortText = 300'000;

// Whether the recipe fits the text and what the user has given about tables.
bool is_allowed(Recipe recipe, const Config& config, const PlanRequest& request, double train_tokens) {
  const auto is_fixed = [&](const char* name) { return request.is_fixed && request.is_fixed(name); };
  if (config.ngram_prior > 0 || recipe == prior) return config.ngram_prior > 0 && recipe == prior;
  if (is_fixed("ngram_orders") && config.ngram_orders == "none") return recipe == network;
  const bool wanted =
      is_fixed("ngram_orders") || is_fixed("ngram_rows") || is_fixed("ngram_dropout") || is_fixed("ngram_lr_factor");
  if (wanted && recipe == network) return false;
  // With words as tokens, tables add little: @stories has 0.387 nats per character after 1.2 passes with them, 0.314
  // after 2.2 passes without.
  if (config.tokenizer == "word" && !wanted && recipe == network_with_tables) return false;
  return recipe != network_with_tables || train_tokens >= kShortText;
}

std::vector<Candidate> candidates_for(const Config& config, const PlanRequest& request, const VocabSizes& vocab,
                                      double train_tokens) {
  std::vector<Candidate> list;
  for (const ModelShape& shape : kShapes) {
    if (!is_allowed(shape.recipe, config, request, train_tokens)) continue;
    if (shape.recipe == prior && !list.empty() && train_tokens < kVeryShortText) continue;
    Candidate next{.shape = &shape, .config = config};
    apply_shape(next.config, shape, request);
    const std::int64_t need = memory_needed(next.config, vocab).total();
    if (request.memory && need > *request.memory) {
      check(!list.empty(),
            "plan: the smallest model that is considered needs about {} of memory, and {} may be used; lower --n-embd, "
            "--n-layer, --block-size, --batch-size or --ngram-rows",
            format_bytes(need), format_bytes(*request.memory));
      continue;
    }
    next.config.ngram_orders = "none";
    const auto same = [&](const Candidate& c) {
      return c.shape->recipe == shape.recipe && training_differences(c.config, next.config).empty();
    };
    if (std::ranges::any_of(list, same)) continue;  // the user has fixed what the shapes differ in
    next.flop = flop_of_step(next.config, vocab);
    list.push_back(std::move(next));
  }
  return list;
}

// Returns the seconds that it took.
double measure(Candidate& candidate, const VocabSizes& vocab, StepTimer& timer, std::vector<MeasuredShape>& measured) {
  const Config& c = candidate.config;
  candidate.seconds = timer.seconds_per_step(c, vocab);
  check(candidate.seconds > 0 && std::isfinite(candidate.seconds),
        "plan: the time of a step must be finite and above 0; got {} seconds", candidate.seconds);
  candidate.measured = true;
  measured.push_back({c.n_layer, c.n_embd, c.block_size, c.batch_size, candidate.seconds});
  return candidate.cost();
}

}  // namespace

double ModelShape::most_passes(double train_tokens) const {
  // N-gram tables learn a text by heart when they read it again. With 1 x 64, the validation loss on tinyshakespeare is
  // 1.564 after one pass, 1.575 after 1.2 and 1.584 after 1.5; on its first 100,000 characters 1.623 after 0.9 passes,
  // 1.603 after 1.3, 1.639 after 2.6 and 1.725 after 5.1. Dropout of the tables does not change that.
  constexpr double kTablesShort = 1.3, kTables = 1, kBoth = 1.2, kNetwork = 20;
  // A network of 4 x 128 has 1.960 and 1.627 after 10 passes over 88,000 characters of chat and 100,000 of prose, 1.987
  // after 17 and 1.638 after 15.
  constexpr double kNetworkShort = 10;
  // On a prior, 4 x 64 has 1.427 after 15 passes over tinyshakespeare, a million tokens, and 1.422 after 40; over the
  // 310,000 of neko.ja.txt 3.248 after 10 and 3.241 after 20.
  constexpr double kTokensPerPass = 25'000, kMostSmall = 40;
  // 2 x 64 on a prior has 1.699 after five passes over the 18,000 characters of a license, and more after each further
  // one.
  constexpr double kPriorVeryShort = 5;
  if (recipe == prior && train_tokens < kVeryShortText) return kPriorVeryShort;
  const bool is_short = train_tokens < kShortText;
  if (recipe == prior && n_embd <= 64 && !is_short)
    return std::clamp(train_tokens / kTokensPerPass, kNetwork, kMostSmall);
  if (recipe == network || recipe == prior) return is_short ? kNetworkShort : kNetwork;
  if (recipe == network_with_tables) return kBoth;
  return is_short ? kTablesShort : kTables;
}

double ModelShape::expected_loss(double tokens, std::int64_t vocabulary, double train_tokens) const {
  // With the tables of 1 x 64, neko.ja.txt has 3.75 after 460,000 tokens, at most 1.2 passes of which help; a network
  // of 4 x 128 has 3.83 after 380,000, before the learning rate has fallen, and 3.50 after 920,000.
  constexpr double kExponent = -0.36, kRareNgrams = 0.04;
  const bool has_tables = recipe == tables || recipe == network_with_tables;
  const double rare = has_tables && vocabulary > kManyTokens ? kRareNgrams : 0;
  // On 100,000 characters of prose, tables have 1.776 after their 1.3 passes, a network 1.627 after 10; on 88,000 of
  // chat 2.097 and 1.960.
  constexpr double kOnePass = 0.1;
  const double few = recipe == tables && train_tokens < kShortText ? kOnePass : 0;
  return rare + few + floor + slope * std::pow(std::max(tokens, 1.0), kExponent);
}

std::span<const ModelShape> model_shapes() { return kShapes; }

void apply_shape(Config& config, const ModelShape& shape, const PlanRequest& request) {
  const auto choose = [&](const char* name, auto Config::*member, auto value) {
    if (!request.is_fixed || !request.is_fixed(name)) config.*member = value;
  };
  choose("n_layer", &Config::n_layer, shape.n_layer);
  choose("n_embd", &Config::n_embd, shape.n_embd);
  choose("n_head", &Config::n_head, shape.n_head);
  choose("block_size", &Config::block_size, shape.block_size);
  if (shape.recipe == network || shape.recipe == prior) choose("ngram_orders", &Config::ngram_orders, "none");
  if (shape.recipe != tables) {
    choose("batch_size", &Config::batch_size, 12);
    choose("optimizer", &Config::optimizer, "muon");
    if (config.optimizer == "muon") choose("momentum", &Config::momentum, MuonOptions().momentum);
    choose("norm", &Config::norm, "rms");
    choose("activation", &Config::activation, "relu_squared");
    choose("bias", &Config::bias, false);
    choose("qk_norm", &Config::qk_norm, true);
    choose("conv_width", &Config::conv_width, 4);
  }
  const std::int64_t kv_heads = std::max<std::int64_t>(1, config.n_kv_head);
  choose("n_head", &Config::n_head, ceil_div(config.n_head, kv_heads) * kv_heads);
  // A width that the user fixes keeps its value; heads and width that do not fit each other adapt where they may.
  if (config.n_embd % config.n_head != 0) {
    if (request.is_fixed && request.is_fixed("n_embd")) {
      choose("n_head", &Config::n_head, kv_heads);
    } else {
      config.n_embd += config.n_head - config.n_embd % config.n_head;
    }
  }
  if (shape.recipe != tables && config.n_embd / config.n_head % 2 == 0)
    choose("positions", &Config::positions, "rotary");
}

ShapeChoice choose_shape(const Config& config, const PlanRequest& request, std::int64_t vocabulary, double train_tokens,
                         StepTimer& timer) {
  const VocabSizes vocab = random_vocab_sizes(config, vocabulary);
  std::vector<Candidate> list = candidates_for(config, request, vocab, train_tokens);
  const auto tokens = static_cast<std::int64_t>(train_tokens / (1 - config.val_fraction));
  const auto promise = [&](const Candidate& c) {
    const double used = used_share(request.text, tokens, c.config.block_size);
    return c.shape->expected_loss(tokens_of(c, request.seconds, train_tokens, used), vocabulary, train_tokens);
  };
  ShapeChoice choice{};
  double left = kMeasuringShare * request.seconds;
  // The smallest shape is measured first: it costs least and says how fast the machine is.
  for (Candidate* next = list.data(); !next->measured && (choice.measured.empty() || next->cost() <= left);
       next = &*std::ranges::min_element(list, {}, promise)) {
    left -= measure(*next, vocab, timer, choice.measured);
    const double speed = next->flop / next->seconds;
    for (Candidate& c : list) {
      if (!c.measured) c.seconds = std::min(c.seconds, c.flop / speed);  // larger products are not slower
    }
  }
  const auto measured = [](const Candidate& c) { return c.measured; };
  std::vector<Candidate> known;
  std::ranges::copy_if(list, std::back_inserter(known), measured);
  const Candidate& best = *std::ranges::min_element(known, {}, promise);
  choice.shape = *best.shape;
  choice.seconds_per_step = best.seconds * share_of(*best.shape);
  return choice;
}

}  // namespace maki
