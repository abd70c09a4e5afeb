// Plans are functions of a text, a time and step times that the test makes up.
#include "train/loop/plan/plan.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tests/catch.h"
#include "tests/train/every_small_model.h"
#include "tests/train/made_up_machine.h"
#include "train/loop/plan/shapes.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

namespace {

double arithmetic(const Plan& plan) {
  const Config& c = plan.config;
  return static_cast<double>(c.n_layer * c.n_embd * c.n_embd);
}

}  // namespace

TEST_CASE("a plan is valid, ends on time, names each of its fields once with a reason, and depends on nothing else") {
  for (const std::int64_t characters : {200, 20'000, 1'000'000, 50'000'000}) {
    for (const std::int64_t distinct : {2, 65, 3000}) {
      for (const double seconds : {1., 10., 60., 600., 36'000.}) {
        const PlanRequest request = request_for(characters, seconds, std::min(distinct, characters));
        const Plan plan = plan_of(request);
        INFO(characters << " " << distinct << " " << seconds << ": " << plan.config.max_steps);
        REQUIRE_NOTHROW(validate(plan.config));
        REQUIRE(plan.config.max_steps >= 1);
        REQUIRE(plan.config.max_steps <= plan.most_steps);
        REQUIRE(plan.config.lr_decay_steps == plan.config.max_steps);
        REQUIRE(plan.config.warmup_steps <= std::max<std::int64_t>(1, plan.config.max_steps / 10));
        if (plan.config.max_steps > 1) REQUIRE(plan.seconds <= seconds);
        if (plan.config.max_steps < plan.most_steps && plan.config.max_steps > 100)
          REQUIRE(plan.seconds > 0.97 * seconds);
        REQUIRE(plan.memory_bytes > 0);
        REQUIRE(names_every_field_once(plan));
        REQUIRE(to_toml(plan_of(request).config) == to_toml(plan.config));
      }
    }
  }
}

TEST_CASE("a plan records as fields whatever differs from the configuration that it was given") {
  const PlanRequest request = request_for(1'000'000, 60);
  const Plan plan = plan_of(request);
  std::set<std::string> recorded;
  for (const PlanChoice& choice : plan.choices) recorded.insert(choice.fields.begin(), choice.fields.end());
  for (const Field& field : fields()) {
    INFO(field.name);
    if (field_text(plan.config, field) != field_text(request.config, field)) REQUIRE(recorded.contains(field.name));
  }
}

TEST_CASE("what the user has given stays as it is") {
  const PlanRequest open = request_for(1'000'000, 60);
  const Plan plan = plan_of(open);
  const std::map<std::string, std::string> given = {
      {"n_layer", "3"},          {"n_embd", "96"},         {"n_head", "3"},
      {"block_size", "48"},      {"batch_size", "7"},      {"tokenizer", "byte"},
      {"ngram_prior", "3"},      {"positions", "learned"}, {"norm", "layer"},
      {"activation", "gelu"},    {"bias", "true"},         {"qk_norm", "false"},
      {"conv_width", "0"},       {"momentum", "0.9"},      {"ngram_orders", "2"},
      {"ngram_rows", "5000"},    {"ngram_dropout", "0.5"}, {"ngram_lr_factor", "11"},
      {"dropout", "0.25"},       {"optimizer", "muon"},    {"learning_rate", "0.001"},
      {"min_lr", "0.0005"},      {"schedule", "cosine"},   {"warmup_steps", "17"},
      {"eval_interval", "13"},   {"eval_batches", "3"},    {"checkpoint_interval", "19"},
      {"sample_interval", "23"}, {"log_interval", "29"},   {"val_fraction", "0.02"},
      {"counting", "true"},      {"tie_weights", "true"}};
  // All together, and each alone.
  std::vector<std::map<std::string, std::string>> cases = {given};
  for (const auto& one : given) cases.push_back({one});
  for (const auto& fixed : cases) {
    const PlanRequest request = with(open, fixed);
    const Plan kept = plan_of(request);
    REQUIRE_NOTHROW(validate(kept.config));
    for (const auto& [name, value] : fixed) {
      INFO(name);
      REQUIRE(field_text(kept.config, find_field(name)) == field_text(request.config, find_field(name)));
      for (const PlanChoice& choice : kept.choices) REQUIRE(std::ranges::count(choice.fields, name) == 0);
    }
  }
  // Every field that a plan chooses, except the number of steps, can be given.
  for (const PlanChoice& choice : plan.choices) {
    for (const std::string& name : choice.fields) {
      INFO(name);
      REQUIRE((given.contains(name) || name == "max_steps" || name == "lr_decay_steps"));
    }
  }
}

TEST_CASE("a plan for an optimizer that the user has given sets only what this optimizer uses") {
  const PlanRequest request = request_for(1'000'000, 600);
  REQUIRE(plan_of(request).config.optimizer == "muon");
  REQUIRE(plan_of(request).config.momentum == 0.95);
  const Plan adamw = plan_of(with(request, {{"optimizer", "adamw"}}));
  REQUIRE(adamw.config.momentum == request.config.momentum);
  REQUIRE(adamw.config.learning_rate == plan_of(request).config.learning_rate);
  const Plan sgd = plan_of(with(request, {{"optimizer", "sgd"}, {"learning_rate", "0.5"}}));
  REQUIRE(sgd.config.momentum == request.config.momentum);
  REQUIRE(sgd.config.learning_rate == 0.5);
  REQUIRE_THROWS_WITH(plan_of(with(request, {{"optimizer", "sgd"}})),
                      "plan: knows no learning rate for sgd; add `learning_rate`");
}

TEST_CASE("width and heads adapt to each other where only one of them is given") {
  const PlanRequest open = request_for(1'000'000, 60);
  for (const char* heads : {"1", "3", "5", "7"}) {
    const Config c = plan_of(with(open, {{"n_head", heads}})).config;
    REQUIRE(c.n_embd % c.n_head == 0);
    REQUIRE(c.n_embd >= 64);
  }
  for (const char* shared : {"1", "2", "3", "5"}) {
    const Config c = plan_of(with(open, {{"n_kv_head", shared}})).config;
    REQUIRE(c.n_head % c.n_kv_head == 0);
    REQUIRE(c.n_embd % c.n_head == 0);
  }
  for (const char* width : {"10", "50", "97"}) {
    const Config c = plan_of(with(open, {{"n_embd", width}})).config;
    REQUIRE(c.n_embd % c.n_head == 0);
  }
}

TEST_CASE("heads and width that are open are made to fit, and those that are given stay") {
  using Sizes = std::pair<std::int64_t, std::int64_t>;  // width and heads
  const auto fitted = [](const Sizes& sizes, std::int64_t n_kv_head, const std::set<std::string>& given) {
    PlanRequest request;
    request.is_fixed = [&](std::string_view field) { return given.contains(std::string(field)); };
    Config c;
    std::tie(c.n_embd, c.n_head) = sizes;
    c.n_kv_head = n_kv_head;
    fit_heads(c, request);
    return Sizes(c.n_embd, c.n_head);
  };
  const std::set<std::string> none, width = {"n_embd"}, heads = {"n_head"}, both = {"n_embd", "n_head"};
  REQUIRE(fitted({128, 4}, 0, none) == Sizes(128, 4));
  REQUIRE(fitted({64, 6}, 0, heads) == Sizes(66, 6));
  REQUIRE(fitted({128, 6}, 0, heads) == Sizes(132, 6));
  REQUIRE(fitted({50, 4}, 0, width) == Sizes(50, 1));
  REQUIRE(fitted({96, 4}, 0, width) == Sizes(96, 4));
  REQUIRE(fitted({64, 4}, 3, none) == Sizes(66, 6));
  REQUIRE(fitted({75, 4}, 3, width) == Sizes(75, 3));
  REQUIRE(fitted({64, 6}, 0, both) == Sizes(64, 6));  // is refused later
}

TEST_CASE("measuring takes less than a twentieth of the time, unless the first measurement alone takes longer") {
  for (const double speed : {1e8, 1e10, 1e12}) {
    for (const double seconds : {1., 60., 3600.}) {
      Machine machine(speed);
      const Plan plan = make_plan(request_for(10'000'000, seconds), machine);
      INFO(speed << " " << seconds << ": " << machine.spent);
      REQUIRE(machine.asked >= 1);
      REQUIRE(static_cast<std::size_t>(machine.asked) == plan.measured.size());
      REQUIRE((machine.asked == 1 || machine.spent < kMeasuringShare * seconds));
    }
  }
}

TEST_CASE("no second shape is measured if its steps take too long, and counting takes its part of the time") {
  Machine machine(10 * kSpeed);
  const PlanRequest large = with(request_for(1'000'000'000, 60), {{"batch_size", "20000"}, {"val_fraction", "0"}});
  make_plan(large, machine);
  REQUIRE(machine.asked == 1);
  const Plan counting = plan_of(with(request_for(16'000'000, 60), {{"counting", "true"}, {"ngram_prior", "0"}}));
  const Plan without = plan_of(with(request_for(16'000'000, 60), {{"counting", "false"}, {"ngram_prior", "0"}}));
  REQUIRE(counting.seconds > 50);
  REQUIRE(without.config.max_steps > 105 * counting.config.max_steps / 100);
}

TEST_CASE("more time and a faster machine lead to larger models, and more steps of the same model") {
  double before = 0;
  for (const double seconds : {2., 20., 200., 2'000., 20'000., 200'000.}) {
    const Plan plan = plan_of(request_for(100'000'000, seconds));
    INFO(seconds << ": " << plan.config.n_layer << " x " << plan.config.n_embd);
    REQUIRE(arithmetic(plan) >= before);
    before = arithmetic(plan);
    REQUIRE(arithmetic(plan_of(request_for(100'000'000, seconds), 8 * kSpeed)) >= before);
  }
  REQUIRE(before > arithmetic(plan_of(request_for(100'000'000, 2))));
  const PlanRequest small = with(request_for(100'000'000, 10),
                                 {{"n_layer", "1"}, {"n_embd", "64"}, {"block_size", "64"}, {"batch_size", "8"}});
  const PlanRequest longer = with(request_for(100'000'000, 20),
                                  {{"n_layer", "1"}, {"n_embd", "64"}, {"block_size", "64"}, {"batch_size", "8"}});
  REQUIRE(plan_of(longer).config.max_steps > 3 * plan_of(small).config.max_steps / 2);
}

TEST_CASE("a short text is not read more often than helps, however much time there is") {
  for (const std::int64_t characters : {5'000, 20'000, 100'000, 1'000'000}) {
    const Plan plan = plan_of(request_for(characters, 36'000));
    INFO(characters << ": " << plan.passes);
    REQUIRE(plan.config.max_steps == plan.most_steps);
    REQUIRE(plan.passes < 41);
    REQUIRE_FALSE(plan.enough.empty());
    REQUIRE(plan.seconds < 18'000);
  }
  // Words are longer than characters: so few of them are no very short text.
  PlanRequest words = with(words_request(36'000), {{"ngram_prior", "6"}});
  words.text.characters = words.text.bytes = 170'000;
  words.text.tokens = 41'000;
  REQUIRE(plan_of(words).passes > 20);
  // One step reads more than all passes.
  REQUIRE(plan_of(with(request_for(100'000, 36'000), {{"batch_size", "1000000"}})).most_steps == 1);
}

TEST_CASE(
    "an n-gram count is the prior of the network, unless counting takes too long or something else was asked for") {
  for (const std::int64_t characters : {5'000, 100'000, 1'000'000}) {
    for (const double seconds : {10., 60., 3'000.}) {
      const Plan plan = plan_of(request_for(characters, seconds));
      REQUIRE(plan.config.ngram_prior == 6);
      REQUIRE(plan.config.ngram_orders.empty());
      REQUIRE(plan.config.optimizer == "muon");
      REQUIRE(plan.config.conv_width == 4);
    }
  }
  REQUIRE(plan_of(request_for(1'000'000'000, 10)).config.ngram_prior == 0);
  REQUIRE(plan_of(request_for(1'000'000'000, 60)).config.ngram_prior == 6);
  REQUIRE(plan_of(with(request_for(1'000'000, 60), kNoPrior)).config.ngram_prior == 0);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"ngram_orders", "2,3"}, {"ngram_rows", "500"}, {"ngram_dropout", "0.5"}, {"ngram_lr_factor", "11"}})
    REQUIRE(plan_of(with(request_for(1'000'000, 60), {{name, value}})).config.ngram_prior == 0);
  REQUIRE(plan_of(request_for(1'000'000, 60, 16'384)).config.ngram_prior == 6);
  REQUIRE(plan_of(request_for(1'000'000, 60, 16'385)).config.ngram_prior == 0);
  PlanRequest repeating = request_for(1'000'000, 60);
  repeating.text.new_ngrams = 0.14;
  REQUIRE(plan_of(repeating).config.ngram_prior == 6);
  const Config asked = plan_of(with(request_for(1'000'000'000, 10), {{"ngram_prior", "4"}})).config;
  REQUIRE(asked.ngram_prior == 4);
  REQUIRE(asked.ngram_orders.empty());
  // Counting takes its part of the time.
  const Plan plan = plan_of(request_for(10'000'000, 60));
  REQUIRE(plan.seconds <= 60);
  REQUIRE(plan.seconds > 58);
}

TEST_CASE("on a prior, a text that is read often gets a small network, and a long text a large one") {
  const Config often = plan_of(request_for(1'000'000, 3'000)).config;
  REQUIRE(often.n_embd == 64);
  REQUIRE(often.dropout == 0.1);
  for (const auto& [characters, passes] :
       std::map<std::int64_t, double>{{100'000, 30}, {400'000, 20}, {800'000, 28.8}, {1'200'000, 40}})
    REQUIRE(std::abs(plan_of(with(request_for(characters, 100'000), {{"teacher", ""}})).passes - passes) < 0.1);
  const Config wide = plan_of(with(request_for(1'000'000, 500), {{"n_embd", "128"}})).config;
  REQUIRE(wide.dropout == 0.1);
  REQUIRE(plan_of(with(request_for(1'000'000, 10'000), {{"n_embd", "128"}})).config.dropout == 0.2);
  const Plan once = plan_of(request_for(100'000'000, 20'000));
  REQUIRE(once.passes < 1);
  REQUIRE(once.config.n_embd > 64);
  REQUIRE(once.config.dropout == 0);
}

TEST_CASE(
    "without a prior, time decides between tables, a network with tables, and a network that reads several times") {
  const auto request = [](std::int64_t characters, double seconds) {
    return with(request_for(characters, seconds), kNoPrior);
  };
  const auto also = [](std::int64_t characters, double seconds, std::map<std::string, std::string> given) {
    given.insert(kNoPrior.begin(), kNoPrior.end());
    return plan_of(with(request_for(characters, seconds), given)).config;
  };
  const Config little = plan_of(request(1'000'000, 10)).config;
  REQUIRE_FALSE(little.ngram_orders.empty());
  REQUIRE(little.optimizer == "adamw");
  REQUIRE(little.conv_width == 0);
  // AdamW, which tables usually have, would ignore these.
  const std::map<std::string, std::string> of_muon[] = {{{"muon_lr", "0.01"}}, {{"momentum", "0.9"}}};
  for (const auto& given : of_muon) {
    const Config c = also(1'000'000, 10, given);
    INFO(given.begin()->first);
    REQUIRE_FALSE(c.ngram_orders.empty());
    REQUIRE(c.optimizer == "muon");
    REQUIRE(c.muon_lr == (given.contains("muon_lr") ? 0.01 : Config().muon_lr));
    REQUIRE(c.momentum == (given.contains("momentum") ? 0.9 : 0.95));
  }
  const Plan more = plan_of(request(1'000'000, 200));
  REQUIRE_FALSE(more.config.ngram_orders.empty());
  REQUIRE(more.config.optimizer == "muon");
  REQUIRE(more.config.conv_width == 4);
  REQUIRE(more.config.dropout == 0);
  REQUIRE(more.passes < 1.3);
  for (const double seconds : {3'000., 10'000.}) {
    const Plan plan = plan_of(request(1'000'000, seconds));
    INFO(seconds << ": " << plan.passes);
    REQUIRE(plan.config.ngram_orders.empty());
    REQUIRE(plan.config.optimizer == "muon");
    REQUIRE(plan.config.conv_width == 4);
    REQUIRE(plan.passes > 4);
    REQUIRE(plan.config.dropout == 0.2);
  }
  REQUIRE(also(1'000'000, 20, {{"ngram_orders", "none"}}).dropout == 0);
  REQUIRE(also(1'000'000, 500, {{"ngram_orders", "none"}}).dropout > 0);
  // A text that is never read to its end keeps its tables. So does a short one, unless there is time for several
  // passes.
  REQUIRE_FALSE(plan_of(request(1'000'000'000, 10'000)).config.ngram_orders.empty());
  REQUIRE_FALSE(plan_of(request(100'000, 3)).config.ngram_orders.empty());
  REQUIRE(plan_of(request(100'000, 10'000)).config.ngram_orders.empty());
  REQUIRE(also(100'000, 10, {{"ngram_orders", "none"}}).optimizer == "muon");
  REQUIRE_FALSE(also(1'000'000, 10'000, {{"ngram_rows", "500"}}).ngram_orders.empty());
  REQUIRE_FALSE(also(1'000'000, 10, {{"tokenizer", "char"}}).ngram_orders.empty());
  // Fields that are given stay, and what is left of the recipe is valid.
  const Config odd = plan_of(with(request_for(1'000'000, 1'000), {{"n_embd", "15"}, {"n_head", "5"}})).config;
  REQUIRE(odd.positions == Positions::learned);
  REQUIRE_NOTHROW(validate(odd));
}

TEST_CASE("repeated tokens are worth less than new ones") {
  const auto size = [](std::int64_t characters) {
    return arithmetic(plan_of(with(request_for(characters, 100'000), {{"ngram_orders", "none"}})));
  };
  REQUIRE(size(300'000) < size(300'000'000));
}

TEST_CASE("a plan keeps to the memory that there is") {
  PlanRequest request = request_for(100'000'000, 200'000);
  const std::int64_t all = plan_of(request).memory_bytes;
  request.memory = all / 2;
  const Plan plan = plan_of(request);
  REQUIRE(plan.memory_bytes <= all / 2);
  request.memory = 1000;
  REQUIRE_THROWS_AS(plan_of(request), Error);
}

TEST_CASE("there are plans for two models and one task, and for time that is left") {
  Machine machine;
  PlanRequest request = request_for(1000, 60);
  request.config.model = "encoder";
  REQUIRE_THROWS_AS(make_plan(request, machine), Error);
  request = request_for(1000, 60);
  request.config.task = "masked";
  REQUIRE_THROWS_AS(make_plan(request, machine), Error);
  REQUIRE_THROWS_AS(make_plan(request_for(1000, 0), machine), Error);
  request = request_for(1000, 60);
  request.config.model = "linear";
  request.config.attention = "elu";
  REQUIRE(make_plan(request, machine).config.model == "linear");
  machine.speed = 0;  // infinitely long steps
  REQUIRE_THROWS_AS(make_plan(request_for(1000, 60), machine), Error);
}

TEST_CASE("what is not needed for validation of a long text is trained on") {
  const Plan plan = plan_of(with(request_for(50'000'000, 60), kNoPrior));
  const Config& c = plan.config;
  REQUIRE(c.val_fraction < 0.1);
  const double tokens = static_cast<double>(c.max_steps * c.block_size * c.batch_size * c.grad_accum);
  REQUIRE(plan.passes == Approx(tokens / (50'000'000 * (1 - c.val_fraction))));
}

TEST_CASE("the shape follows from the speed of an idle machine, the steps and the recipe from the clock") {
  const auto planned = [](const PlanRequest& request, double busy) {
    Machine machine;
    machine.busy = busy;
    return make_plan(request, machine);
  };
  const PlanRequest text = request_for(100'000'000, 600);
  const Plan idle = planned(text, 1), busy = planned(text, 2);
  REQUIRE(busy.config.n_embd == idle.config.n_embd);
  REQUIRE(busy.config.n_layer == idle.config.n_layer);
  REQUIRE(busy.config.max_steps < 6 * idle.config.max_steps / 10);
  REQUIRE(busy.step.seconds == 2 * busy.step.idle_seconds);
  REQUIRE(planned(words_request(60), 1).config.ngram_prior == 0);
  REQUIRE(planned(words_request(60), 8).config.ngram_prior == 6);
}

TEST_CASE("a number of steps that is given is a second limit") {
  const Plan open = plan_of(request_for(1'000'000, 60));
  const Plan few = plan_of(with(request_for(1'000'000, 60), {{"max_steps", "50"}}));
  REQUIRE(few.config.max_steps == 50);
  REQUIRE(few.config.lr_decay_steps == 50);
  REQUIRE(few.most_steps == 50);
  REQUIRE(few.config.checkpoint_interval <= 25);
  REQUIRE(few.config.eval_interval <= 25);
  REQUIRE(few.config.dropout == 0);  // fewer passes than need any
  REQUIRE_THROWS_WITH(plan_of(with(request_for(1'000'000, 60), {{"max_steps", "0"}})),
                      ContainsSubstring("max_steps: a run that is planned has at least one step; got 0"));
  const Plan many = plan_of(with(request_for(1'000'000, 60), {{"max_steps", "1000000"}}));
  REQUIRE(many.config.max_steps == open.config.max_steps);
}

TEST_CASE("a number of passes is one pass or several passes") {
  REQUIRE(passes_text(1) == "1 pass");
  REQUIRE(passes_text(0.998) == "1 pass");
  REQUIRE(passes_text(0.5) == "0.5 passes");
  REQUIRE(passes_text(1.34) == "1.3 passes");
  REQUIRE(passes_text(12) == "12 passes");
  REQUIRE(passes_text(123.4) == "123 passes");
}

TEST_CASE("a plan says why it has chosen a value") {
  const auto reason = [](const PlanRequest& request, const std::string& field) {
    const std::vector<PlanChoice> choices = plan_of(request).choices;
    const auto choice = std::ranges::find_if(
        choices, [&](const PlanChoice& c) { return std::ranges::find(c.fields, field) != c.fields.end(); });
    REQUIRE(choice != choices.end());
    return choice->reason;
  };
  const PlanRequest usual = request_for(1'000'000, 60), often = request_for(400'000, 100'000),
                    few = request_for(1000, 60), very_short = request_for(30'000, 60);
  REQUIRE(reason(usual, "tokenizer") == "1,000,000 characters, 65 of them different");
  REQUIRE(reason(few, "tokenizer") == "1,000 characters are so few that the text is learned by heart");
  const auto counting = [](const std::string& seconds) {
    return "counting the n-grams of the text takes about " + seconds +
           ", and leaves to the network what counts do not know";
  };
  REQUIRE(reason(usual, "ngram_prior") == counting("0.7 s"));
  REQUIRE(reason(request_for(16'000'000, 60), "ngram_prior") == counting("11 s"));
  REQUIRE(reason(usual, "learning_rate") == "for a width of 64 and a vocabulary of 65");
  REQUIRE(reason(very_short, "learning_rate") ==
          "of a text this short, higher rates would only learn by heart what counting knows");
  REQUIRE(reason(usual, "min_lr") == "the learning rate falls to 0 at the end of the time");
  const Plan constant = plan_of(with(usual, {{"schedule", "constant"}}));
  REQUIRE(std::ranges::none_of(constant.choices, [](const PlanChoice& choice) {
    return std::ranges::find(choice.fields, "min_lr") != choice.fields.end();
  }));
  REQUIRE(reason(often, "dropout") == "20 passes over the text");
  REQUIRE(reason(usual, "eval_interval") == "evaluations and checkpoints take some hundredths of the time");
  REQUIRE(reason(usual, "warmup_steps") == "a twentieth of the steps");
  REQUIRE(reason(usual, "max_steps") == "as many as fit into the time; decided anew after a tenth of it");
  REQUIRE(reason(often, "max_steps") ==
          "after 20 passes over a text of this length the model would only learn it by heart");
  REQUIRE(reason(few, "max_steps") == "after so many the text is known by heart");
  REQUIRE(reason(very_short, "max_steps") == "after so many the model would only learn by heart what counting knows");
  REQUIRE_THAT(reason(usual, "n_layer"), ContainsSubstring("a step of 1,536 tokens takes "));
}

TEST_CASE("a measured step takes less time than measuring it, and a step that was timed is not timed again") {
  const Config config = small_model_config("gpt");
  const auto begin = std::chrono::steady_clock::now();
  MeasuredStepTimer timer;
  const StepTime step = timer.time_step(config, 11);
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  REQUIRE(step.seconds > 0);
  REQUIRE(step.seconds < all.count());
  REQUIRE(step.idle_seconds > 0);
  REQUIRE(step.idle_seconds <= step.seconds);
  Machine machine;
  RememberedTimes remembered(machine);
  const double once = remembered.time_step(config, 11).seconds;
  REQUIRE(remembered.time_step(config, 11).seconds == once);
  REQUIRE(machine.asked == 1);
  Config other = config;
  other.n_layer = 3;
  REQUIRE(remembered.time_step(other, 11).seconds > once);
  REQUIRE(machine.asked == 2);
}
