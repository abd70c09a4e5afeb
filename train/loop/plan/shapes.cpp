#include "train/loop/plan/shapes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/ngram/ngram_model.h"
#include "optim/make_optimizer.h"
#include "train/loop/estimate.h"
#include "train/run/config/field_effects.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

using enum Recipe;

// N-gram tables make a step of the smallest shape a tenth longer. They are left out of measurements, because their
// memory takes longer to prepare than a few steps.
constexpr double kTableSlowdown = 1.1;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Candidate {
  ModelShape shape;
  Config config;
  double flop = 0;                    // of one step
  StepTime step{kUnknown, kUnknown};  // an upper estimate unless measured
  bool measured = false;

  double cost() const { return step.seconds * StepTimer::kTimedSteps; }
};

double tokens_per_step(const Config& c) { return static_cast<double>(c.block_size * c.batch_size * c.grad_accum); }

double flop_of_step(const Config& c, const VocabSizes& vocab) {
  ParameterStore planned(c.dtype);
  const std::unique_ptr<Model> model = make_model(c, vocab, Scope(planned));
  return flop_per_token(*model, planned, c.block_size) * tokens_per_step(c);
}

// How much longer a step of the recipe takes than the one that is measured.
double share_of(const ModelShape& shape) {
  constexpr double kTableSlowdownOfLargerShapes = 1.03;  // tables take the same time, of a longer step
  return shape.recipe == tables                ? kTableSlowdown
         : shape.recipe == network_with_tables ? kTableSlowdownOfLargerShapes
                                               : 1;
}

// How often a run reads the text, and whether counts teach it meanwhile.
struct Reading {
  double passes;
  bool taught;
};

// `passes`: how many there is time for. Half of the time for a teacher is better than none, where the rest is enough
// for two of them.
Reading reading_of(const Candidate& c, double passes, const LearnedText& text) {
  constexpr double kMostShare = 0.5, kFewestPasses = 2;
  const double left = passes * (1 - text.counts_share);
  if (c.shape.recipe != prior || text.counts_share > kMostShare || left < kFewestPasses) return {passes, false};
  return {left / (1 + kCountsPart), true};
}

// New tokens that are worth as much as those that a run reads, some of them again: Muennighoff et al. 2023,
// arXiv:2305.16264, eq. 5, with constants that fit the losses of the tables, and the order of taught networks: on byte
// pairs of tinyshakespeare, 2 x 64 has 2.621 nats per token after 5 passes, 4 x 64 2.624 after 3 in about the same
// time; 4 x 128 2.549 and 6 x 192 2.529 after 20.
double tokens_of(const Candidate& c, const Reading& reading, double train_tokens) {
  constexpr double kUsefulRepetitions = 2.35;  // reading a text for ever is worth 3.35 passes over new ones
  constexpr double kUsefulTaughtRepetitions = 8;
  const double useful = reading.taught ? kUsefulTaughtRepetitions : kUsefulRepetitions;
  const double passes = std::min(c.shape.most_passes(train_tokens, reading.taught), reading.passes);
  if (passes <= 1) return passes * train_tokens;
  return train_tokens * (1 + useful * (1 - std::exp((1 - passes) / useful)));
}

// Whether the recipe fits the text and what the user has given about tables.
bool is_allowed(Recipe recipe, const PlanRequest& request, const LearnedText& text) {
  if (recipe == prior) return text.prior != PriorUse::no;
  if (text.prior == PriorUse::certain) return false;
  const bool wanted = request.wants_tables();
  if (request.is_fixed("ngram_orders") && !wanted) return recipe == network;
  if (wanted && recipe == network) return false;
  return recipe != network_with_tables || text.train_tokens >= kShortText;
}

// The longest context for which both parts of the text have a window.
std::int64_t longest_block(const LearnedText& text) {
  constexpr double kCertainShare = 0.9;  // of the tokens that are expected, whose number is known only up to a few
  const auto train = text.train_tokens, val = static_cast<double>(text.tokens) - train;
  const double shorter = val >= 1 ? kCertainShare * std::min(train, val) : train;
  return longest_window(static_cast<std::int64_t>(shorter));
}

std::vector<Candidate> candidates_for(const Config& config, const PlanRequest& request, const VocabSizes& vocab,
                                      const LearnedText& text) {
  std::vector<Candidate> list;
  for (ModelShape shape : shape_table(config, text).shapes) {
    if (!is_allowed(shape.recipe, request, text)) continue;
    const auto has_prior = [](const Candidate& c) { return c.shape.recipe == prior; };
    const bool is_larger = shape.recipe == prior && std::ranges::any_of(list, has_prior);
    if (is_larger && text.train_characters < kVeryShortText) continue;
    if (!config.respect_documents) shape.block_size = std::min(shape.block_size, longest_block(text));
    shape.block_size = std::min(shape.block_size, request.most_context.value_or(shape.block_size));
    if (text.by_heart) shape.block_size = block_by_heart(text.tokens, shape.block_size);
    Candidate next{.shape = shape, .config = config};
    apply_shape(next.config, shape, request);
    const std::int64_t need = memory_needed(next.config, vocab).total();
    if (request.memory && need > *request.memory) {
      check(!list.empty(),
            "plan: the smallest model that is considered needs about {} of memory, and {} may be used; lower `n_embd`, "
            "`n_layer`, `block_size`, `batch_size` or `ngram_rows`",
            format_bytes(need), format_bytes(*request.memory));
      continue;
    }
    next.config.ngram_orders.clear();
    const auto same = [&](const Candidate& c) {
      return c.shape.recipe == shape.recipe && training_differences(c.config, next.config).empty();
    };
    if (std::ranges::any_of(list, same)) continue;  // the user has fixed what the shapes differ in
    next.flop = flop_of_step(next.config, vocab);
    list.push_back(std::move(next));
  }
  return list;
}

// Returns the seconds that it took.
double measure(Candidate& candidate, const VocabSizes& vocab, StepTimer& timer, std::vector<MeasuredShape>& measured) {
  Config c = candidate.config;
  c.min_lr = 0;  // the learning rate, which it must not exceed, is chosen later
  candidate.step = timer.time_step(c, vocab);
  for (const double seconds : {candidate.step.seconds, candidate.step.idle_seconds}) {
    check(seconds > 0 && std::isfinite(seconds), "plan: the time of a step must be finite and above 0; got {} seconds",
          seconds);
  }
  candidate.measured = true;
  measured.push_back({c.n_layer, c.n_embd, c.block_size, c.batch_size, candidate.step});
  return candidate.cost();
}

}  // namespace

std::int64_t block_by_heart(std::int64_t tokens, std::int64_t longest) {
  const std::int64_t most = std::clamp<std::int64_t>((tokens - 1) / 2, 1, longest);
  std::int64_t best = most;
  for (std::int64_t block = most; block >= std::max<std::int64_t>(1, most / 2); --block) {
    if (tokens % block < tokens % best) best = block;
  }
  return best;
}

std::int64_t longest_window(std::int64_t tokens) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(2, tokens) - 1)));
}

std::vector<std::string> apply_recipe(Config& config, const PlanRequest& request) {
  constexpr std::pair<const char*, const char*> kRecipe[] = {{"optimizer", "muon"}, {"norm_order", "pre"},
                                                             {"norm", "rms"},       {"activation", "relu_squared"},
                                                             {"bias", "false"},     {"qk_norm", "true"}};
  std::vector<std::string> changed;
  const auto choose = [&](const std::string& name, const std::string& value) {
    if (request.is_fixed(name) || !has_effect(config, name)) return;
    set_field(config, find_field(name), value);
    changed.push_back(name);
  };
  for (const auto& [name, value] : kRecipe) choose(name, value);
  // Three tokens before each, and after it where a model sees both sides.
  choose("conv_width", task_rule(config).writes() ? "4" : "7");
  if (config.n_embd / config.n_head % 2 == 0) choose("positions", "rotary");
  if (const auto momentum = optimizer_kind(config.optimizer).momentum) choose("momentum", fmt::format("{}", *momentum));
  return changed;
}

// A width that the user fixes keeps its value; heads and width that do not fit each other adapt where they may.
void fit_heads(Config& config, const PlanRequest& request) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, config.n_kv_head);
  const bool heads_are_open = !request.is_fixed("n_head");
  if (heads_are_open) config.n_head = ceil_div(config.n_head, kv_heads) * kv_heads;
  if (config.n_embd % config.n_head == 0) return;
  if (!request.is_fixed("n_embd")) {
    config.n_embd += config.n_head - config.n_embd % config.n_head;
  } else if (heads_are_open) {
    config.n_head = kv_heads;
  }
}

void apply_shape(Config& config, const ModelShape& shape, const PlanRequest& request) {
  const auto choose = [&](const char* name, auto member, const auto& value) {
    if (!request.is_fixed(name)) config.*member = value;
  };
  choose("n_layer", &Config::n_layer, shape.n_layer);
  choose("n_embd", &Config::n_embd, shape.n_embd);
  choose("n_head", &Config::n_head, shape.n_head);
  choose("block_size", &Config::block_size, shape.block_size);
  if (shape.recipe == network || shape.recipe == prior)
    choose("ngram_orders", &Config::ngram_orders, std::vector<std::int64_t>());
  choose("ngram_prior", &Config::ngram_prior, shape.recipe == prior ? kMaxCountedNgram : 0);
  if (shape.recipe != tables) choose("batch_size", &Config::batch_size, shape.rows);
  fit_heads(config, request);
  if (shape.recipe != tables) apply_recipe(config, request);
}

ShapeChoice choose_shape(const Config& config, const PlanRequest& request, const LearnedText& text, StepTimer& timer) {
  const VocabSizes vocab = random_vocab_sizes(config, text.vocabulary);
  std::vector<Candidate> list = candidates_for(config, request, vocab, text);
  const auto passes = [&](const Candidate& c, double seconds_per_step) {
    const double steps = request.seconds / seconds_per_step / share_of(c.shape);
    return steps * tokens_per_step(c.config) * used_share(request.text, text.tokens, c.config.block_size) /
           text.train_tokens;
  };
  const auto promise = [&](const Candidate& c, double seconds_per_step) {
    const double tokens = tokens_of(c, reading_of(c, passes(c, seconds_per_step), text), text.train_tokens);
    return c.shape.expected_loss(tokens, text.vocabulary, text.train_tokens);
  };
  const auto idle = [&](const Candidate& c) { return promise(c, c.step.idle_seconds); };
  const auto now = [&](const Candidate& c) { return promise(c, c.step.seconds); };
  ShapeChoice choice{};
  double left = kMeasuringShare * request.seconds;
  const auto measure_next = [&](Candidate& next) {
    left -= measure(next, vocab, timer, choice.measured);
    const StepTime per_flop{next.step.seconds / next.flop, next.step.idle_seconds / next.flop};
    for (Candidate& c : list) {  // larger products are not slower
      if (c.measured) continue;
      c.step.seconds = std::min(c.step.seconds, c.flop * per_flop.seconds);
      c.step.idle_seconds = std::min(c.step.idle_seconds, c.flop * per_flop.idle_seconds);
    }
  };
  // The smallest shape is measured first: it costs least and says how fast the machine is.
  for (Candidate* next = list.data(); !next->measured && (choice.measured.empty() || next->cost() <= left);
       next = &*std::ranges::min_element(list, {}, idle))
    measure_next(*next);

  // Of each recipe the smallest is considered even if there is no time to measure it.
  Candidate* best = nullptr;
  for (const Recipe recipe : {tables, network, network_with_tables, prior}) {
    Candidate* of_recipe = nullptr;
    for (Candidate& c : list) {
      if (c.shape.recipe != recipe || (of_recipe != nullptr && !c.measured)) continue;
      if (of_recipe == nullptr || !of_recipe->measured || idle(c) < idle(*of_recipe)) of_recipe = &c;
    }
    if (of_recipe == nullptr || (best != nullptr && now(*of_recipe) >= now(*best))) continue;
    if (!of_recipe->measured && of_recipe->cost() <= left) measure_next(*of_recipe);
    if (best == nullptr || now(*of_recipe) < now(*best)) best = of_recipe;
  }
  choice.shape = best->shape;
  choice.passes = passes(*best, best->step.seconds);
  choice.taught = reading_of(*best, choice.passes, text).taught;
  const double share = share_of(best->shape);
  choice.step = {share * best->step.seconds, share * best->step.idle_seconds};
  choice.expected_loss = now(*best) / shape_table(config, text).counting;
  return choice;
}

}  // namespace maki
