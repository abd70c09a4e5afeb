// Schedules at points computed by hand and against their formulas in extended precision, and their continuity.
#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/core/check.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"

using namespace maki;

namespace {

LrSchedule of(const LrDecay& decay, std::int64_t warmup = 10) {
  return {.decay = &decay, .learning_rate = 1.0, .min_lr = 0.1, .warmup_steps = warmup, .decay_steps = 110};
}
LrSchedule of(const char* name, std::int64_t warmup = 10) { return of(*lr_decay_named(name), warmup); }

// The learning rate of step s of a schedule with a warmup, by the description of its decay.
long double defined_rate(const LrSchedule& c, std::int64_t s) {
  const std::string name = c.decay->name;
  const auto step = static_cast<long double>(s), warmup = static_cast<long double>(c.warmup_steps);
  const long double end = static_cast<long double>(c.decay_steps), peak = c.learning_rate, least = c.min_lr;
  if (s < c.warmup_steps) return peak * (step + 1) / warmup;
  if (name == "constant") return peak;
  if (name == "inverse_sqrt") return std::max(least, peak * std::sqrt(warmup / (step + 1)));
  const long double begin = name == "wsd" ? end * 4 / 5 : warmup;
  const long double f = std::clamp((step - begin) / (end - begin), 0.0L, 1.0L);
  const long double left = name == "cosine"   ? (1 + std::cos(std::numbers::pi_v<long double> * f)) / 2
                           : name == "linear" ? 1 - f
                           : name == "wsd"    ? 1 - std::sqrt(f)
                                              : std::nanl("");
  return least + (peak - least) * left;
}

}  // namespace

TEST_CASE("every step of every schedule agrees with its formula in extended precision") {
  for (const LrDecay& decay : lr_decays()) {
    for (std::int64_t s = 0; s < 120; ++s) {
      INFO(decay.name << ", step " << s);
      const long double gap = std::abs(of(decay)(s) - defined_rate(of(decay), s));
      REQUIRE(static_cast<double>(gap) < 1e-14);
    }
  }
}

TEST_CASE("every schedule warms up linearly and reaches its peak at the last step of the warmup") {
  for (const LrDecay& decay : lr_decays()) {
    const LrSchedule schedule = of(decay);
    INFO(decay.name);
    REQUIRE(schedule(0) == Approx(0.1));
    REQUIRE(schedule(4) == Approx(0.5));
    REQUIRE(schedule(9) == 1.0);
    REQUIRE(of(decay, 0)(0) == 1.0);  // no warmup: the peak at once
  }
}

TEST_CASE("schedules at points computed by hand") {
  REQUIRE(of("constant")(10) == 1.0);
  REQUIRE(of("constant")(1000000) == 1.0);

  REQUIRE(of("linear")(10) == 1.0);
  REQUIRE(of("linear")(35) == Approx(0.775));
  REQUIRE(of("linear")(109) == Approx(0.109));

  REQUIRE(of("cosine")(10) == 1.0);
  REQUIRE(of("cosine")(60) == Approx(0.55));
  REQUIRE(of("cosine")(35) == Approx(0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5))));

  REQUIRE(of("wsd")(50) == 1.0);
  REQUIRE(of("wsd")(88) == 1.0);  // 110 − 22
  REQUIRE(of("wsd")(99) == Approx(0.1 + 0.9 * (1 - std::sqrt(0.5))));
}

TEST_CASE("inverse_sqrt is the schedule of the Transformer, scaled to the learning rate at its peak") {
  // d^-0.5 · min(n^-0.5, n · w^-1.5) with n = s + 1 and warmup w, times √(d w): Vaswani et al. 2017, section 5.3.
  for (const int s : {0, 5, 9, 10, 39, 200}) {
    const double n = s + 1, original = std::sqrt(10.0) * std::min(1 / std::sqrt(n), n / std::pow(10.0, 1.5));
    REQUIRE(of("inverse_sqrt")(s) == Approx(original));
    REQUIRE(of("inverse_sqrt")(s) == Approx(std::min(n / 10, std::sqrt(10 / n))));
  }
  REQUIRE(of("inverse_sqrt")(39) == Approx(0.5));
  REQUIRE(of("inverse_sqrt")(10000000) == 0.1);  // min_lr
  for (const int warmup : {0, 1}) {              // without a warmup as with one of a single step: 1/√n
    REQUIRE(of("inverse_sqrt", warmup)(0) == 1);
    REQUIRE(of("inverse_sqrt", warmup)(3) == Approx(0.5));
    REQUIRE(of("inverse_sqrt", warmup)(1000) == 0.1);
  }
}

TEST_CASE("schedules that end reach min_lr at the horizon and stay there") {
  for (const LrDecay& decay : lr_decays()) {
    if (!decay.ends) continue;
    INFO(decay.name);
    REQUIRE(of(decay)(109) > 0.1);
    for (const int s : {110, 111, 1000000}) REQUIRE(of(decay)(s) == 0.1);
  }
}

TEST_CASE("the table says of each schedule whether it ends, and knows each by its name") {
  REQUIRE(lr_decay_names() == std::vector<std::string>{"cosine", "linear", "constant", "inverse_sqrt", "wsd"});
  for (const LrDecay& decay : lr_decays()) {
    INFO(decay.name);
    const LrSchedule longer{.decay = &decay, .learning_rate = 1, .min_lr = 0.1, .warmup_steps = 10, .decay_steps = 111};
    REQUIRE(decay.ends == (of(decay)(110) != longer(110)));  // only schedules that end use decay_steps
  }
}

TEST_CASE("no schedule jumps or rises after the warmup") {
  for (const LrDecay& decay : lr_decays()) {
    // Over 100,000 steps the curve must look continuous: no two neighbouring steps differ by more than the steepest
    // slope allows.
    const LrSchedule fine{
        .decay = &decay, .learning_rate = 1, .min_lr = 0.1, .warmup_steps = 1000, .decay_steps = 100000};
    double largest = 0;
    for (std::int64_t s = 1; s < 100100; ++s) {
      const double step = fine(s) - fine(s - 1);
      if (s >= 1000) REQUIRE(step <= 0);
      largest = tests::max_or_nan(largest, std::abs(step));
    }
    INFO(decay.name);
    REQUIRE(largest > 0);
    REQUIRE(largest < 0.01);  // wsd's square root falls by 0.9/√20000 in its first step
  }
}

TEST_CASE("horizons shorter than the warmup, and no horizon") {
  for (const LrDecay& decay : lr_decays()) {
    if (!decay.ends) continue;
    INFO(decay.name);
    const LrSchedule schedule{.decay = &decay, .learning_rate = 1, .min_lr = 0.25, .warmup_steps = 8, .decay_steps = 4};
    REQUIRE(schedule(7) == 1);
    REQUIRE(schedule(8) == 0.25);
    const LrSchedule none{.decay = &decay, .learning_rate = 1, .min_lr = 0.25};
    REQUIRE(none(0) == 0.25);
    const LrSchedule tiny{.decay = &decay, .learning_rate = 1, .min_lr = 0.25, .warmup_steps = 0, .decay_steps = 1};
    REQUIRE(tiny(0) == 1);
    REQUIRE(tiny(1) == 0.25);
  }
}

TEST_CASE("schedules have names, and refuse values that make no sense") {
  for (const LrDecay& decay : lr_decays()) {
    INFO(decay.name);
    REQUIRE(lr_decay_named(decay.name) == &decay);
    REQUIRE_FALSE(std::string(decay.description).empty());
  }
  REQUIRE(LrSchedule().decay == lr_decay_named("cosine"));
  REQUIRE_THROWS_WITH(
      lr_decay_named("cosin"),
      ContainsSubstring("cosine, linear, constant, inverse_sqrt, wsd; got cosin; the nearest is cosine"));
  REQUIRE_THROWS_AS(of("cosine")(-1), Error);
  REQUIRE_NOTHROW(of("cosine").validate());
  REQUIRE_THROWS_AS((LrSchedule{.learning_rate = 1, .min_lr = 2}.validate()), Error);
  REQUIRE_THROWS_AS((LrSchedule{.learning_rate = std::nan("")}.validate()), Error);
  REQUIRE_THROWS_AS((LrSchedule{.learning_rate = 1, .warmup_steps = -1}.validate()), Error);
}

TEST_CASE("a program can have a schedule of its own") {
  const LrDecay halved{.name = "halved",
                       .description = "half the peak, forever",
                       .ends = false,
                       .rate = [](const LrSchedule& schedule, std::int64_t) { return schedule.learning_rate / 2; }};
  REQUIRE(of(halved)(4) == Approx(0.5));  // of the warmup
  REQUIRE(of(halved)(9) == 1.0);
  REQUIRE(of(halved)(10) == 0.5);
}

TEST_CASE("phases take over at their start and count their steps from there") {
  const LrSchedule first{.decay = lr_decay_named("linear"), .learning_rate = 1, .decay_steps = 10},
      second{
          .decay = lr_decay_named("cosine"), .learning_rate = 2, .min_lr = 0.5, .warmup_steps = 3, .decay_steps = 20};
  const std::vector<LrPhase> phases = {{0, first}, {12, second}};
  for (std::int64_t s = 0; s < 40; ++s) {
    INFO(s);
    REQUIRE(learning_rate_at(phases, s) == (s < 12 ? first(s) : second(s - 12)));
  }
  REQUIRE_THROWS(learning_rate_at({}, 0));
  REQUIRE_THROWS(learning_rate_at(phases, -1));
}
