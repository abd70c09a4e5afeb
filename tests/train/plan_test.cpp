// Plans are functions of a text, a time and step times that the test makes up.
#include "train/loop/plan/plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/train/every_small_model.h"
#include "tests/train/made_up_machine.h"
#include "tests/train/small_data.h"
#include "train/loop/masked_task.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/plan/shapes.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::map<std::string, std::string> kNoPrior = {{"ngram_prior", "0"}};

double arithmetic(const Plan& plan) {
  const Config& c = plan.config;
  return static_cast<double>(c.n_layer * c.n_embd * c.n_embd);
}

bool names_every_field_once(const Plan& plan) {
  std::set<std::string> seen;
  for (const PlanChoice& choice : plan.choices) {
    if (choice.reason.empty() || choice.fields.empty()) return false;
    for (const std::string& name : choice.fields) {
      if (!seen.insert(name).second) return false;
    }
  }
  return true;
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
    REQUIRE(std::abs(plan_of(request_for(characters, 100'000)).passes - passes) < 0.1);
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

TEST_CASE("a plan chooses bytes where most characters are too rare, and shorter n-grams for many characters") {
  REQUIRE(plan_of(request_for(1'000'000, 60)).config.tokenizer == "char");
  REQUIRE(plan_of(request_for(1'000'000, 60, 3000)).config.tokenizer == "char");
  PlanRequest rare = request_for(3'000, 60, 1500);
  rare.text.tokenizer = "byte";
  REQUIRE(plan_of(rare).config.tokenizer == "byte");
  REQUIRE(plan_of(with(request_for(1'000'000, 60, 3000), kNoPrior)).config.ngram_orders ==
          std::vector<std::int64_t>{2, 3});
  PlanRequest words = with(request_for(1'000'000, 60), {{"tokenizer", "word"}, {"ngram_prior", "0"}});
  words.text.tokens = 200'000;
  words.text.vocabulary = 20'000;
  REQUIRE(plan_of(words).config.tokenizer == "word");
  REQUIRE(plan_of(words).config.ngram_orders.empty());
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

TEST_CASE("a plan knows how many tokens a fixed tokenizer makes of the text") {
  Corpus corpus;
  for (int i = 0; i < 100; ++i) corpus.text += "the cat sat ";
  corpus.characters = std::ssize(corpus.text);
  const auto bpe = make_tokenizer("bpe", corpus.text, {.vocab_size = 300});
  const TextFacts plain = text_facts(corpus), facts = text_facts(corpus, bpe.get());
  REQUIRE(plain.tokens == 0);
  REQUIRE(facts.tokens == std::ssize(bpe->encode(corpus.text)));
  REQUIRE(facts.tokens < plain.characters / 2);
  REQUIRE(facts.vocabulary == bpe->vocab_size());
}

TEST_CASE("a plan knows how much of the sequences of documents is filling") {
  Corpus corpus;
  for (const int length : {30, 65, 5}) {
    corpus.documents.push_back(corpus.text.size());
    corpus.text.append(static_cast<std::size_t>(length), 'a');
  }
  corpus.characters = 100;
  REQUIRE(text_facts(corpus).documents.empty());
  const TextFacts facts = text_facts(corpus, nullptr, /*documents=*/true);
  REQUIRE(facts.documents == std::vector<std::int64_t>{30, 65, 5});
  REQUIRE(used_share(facts, 100, 10) == 100.0 / 110);  // 3 + 7 + 1 sequences
  REQUIRE(used_share(facts, 100, 100) == 100.0 / 300);
  REQUIRE(used_share(facts, 200, 50) == 200.0 / 300);  // 60, 130 and 10 tokens in 2 + 3 + 1 sequences
  REQUIRE(used_share(text_facts(corpus), 100, 10) == 1);
  PlanRequest request = with(request_for(1'000'000, 60), kNoPrior);
  const Plan whole = plan_of(request);
  request.text.documents.assign(1000, 1000);
  const Plan fitting = plan_of(request);
  REQUIRE(fitting.most_steps >= whole.most_steps);
  REQUIRE(fitting.most_steps < whole.most_steps * 11 / 10);
  request.text.documents.assign(100'000, 10);  // a small part of every sequence is used
  const Plan filled = plan_of(request);
  const Config& c = filled.config;
  const double places = static_cast<double>(c.max_steps * c.block_size * c.batch_size * c.grad_accum);
  REQUIRE(filled.passes == Approx(places / (100'000.0 * static_cast<double>(c.block_size) * (1 - c.val_fraction))));
}

TEST_CASE("what is not needed for validation of a long text is trained on") {
  const Plan plan = plan_of(with(request_for(50'000'000, 60), kNoPrior));
  const Config& c = plan.config;
  REQUIRE(c.val_fraction < 0.1);
  const double tokens = static_cast<double>(c.max_steps * c.block_size * c.batch_size * c.grad_accum);
  REQUIRE(plan.passes == Approx(tokens / (50'000'000 * (1 - c.val_fraction))));
}

TEST_CASE("whole words are the tokens of a text in which hardly any word is new, unless the user has fixed others") {
  Corpus corpus;
  for (int i = 0; i < 5000; ++i) corpus.text += i % 3 == 0 ? "the cat sat on the mat. " : "a dog ran to the cat. ";
  corpus.characters = std::ssize(corpus.text);
  const TextFacts facts = text_facts(corpus);
  REQUIRE(facts.new_words == 0);
  REQUIRE(facts.tokenizer == "word");
  const SplitText parts = split_text(corpus, 0.1);  // words are learned from the first
  const auto words = make_tokenizer("word", TextToLearn(parts.train, parts.val));
  REQUIRE(facts.tokens ==
          std::ssize(words->encode(parts.train.front())) + std::ssize(words->encode(parts.val.front())));
  REQUIRE(facts.vocabulary == words->vocab_size());
  REQUIRE(text_facts(corpus, make_tokenizer("bpe", corpus.text).get()).new_words == 1);
  PlanRequest request = request_for(2'000'000, 600);
  request.text.tokenizer = "word";
  request.text.tokens = 400'000;
  request.text.vocabulary = 6000;
  const Plan plan = plan_of(request);
  REQUIRE(plan.config.tokenizer == "word");
  REQUIRE(plan.config.ngram_orders.empty());
  REQUIRE(plan.passes ==
          Approx(static_cast<double>(plan.config.max_steps * plan.config.batch_size * plan.config.block_size) /
                 (0.9 * 400'000)));
  REQUIRE(plan_of(with(request, {{"tokenizer", "char"}})).config.tokenizer == "char");
}

TEST_CASE("a plan takes byte pairs only if there can be a prior") {
  PlanRequest request = request_for(2'000'000, 60, 700);
  request.text.new_ngrams = 0.1;
  request.text.tokenizer = "bpe";
  request.text.tokens = 600'000;
  request.text.vocabulary = 4096;
  const Plan plan = plan_of(request);
  REQUIRE(plan.config.tokenizer == "bpe");
  REQUIRE(plan.config.vocab_size == 4096);
  REQUIRE(plan.config.ngram_prior > 0);
  REQUIRE(plan.passes ==
          Approx(static_cast<double>(plan.config.max_steps * plan.config.batch_size * plan.config.block_size) /
                 (0.9 * 600'000)));
  for (const auto& [field, value] : std::map<std::string, std::string>{
           {"tokenizer", "char"}, {"ngram_prior", "0"}, {"ngram_orders", "2"}, {"ngram_rows", "5000"}}) {
    INFO(field);
    const Config config = plan_of(with(request, {{field, value}})).config;
    REQUIRE(config.tokenizer == "char");
    REQUIRE(config.vocab_size == request.config.vocab_size);
    REQUIRE(config.ngram_prior == (field == "tokenizer" ? 6 : 0));
  }
  REQUIRE(plan_of(with(request, {{"vocab_size", "2048"}})).config.vocab_size == 2048);
  request.seconds = 0.5;  // too short to count n-grams
  REQUIRE(plan_of(request).config.tokenizer == "char");
  REQUIRE(plan_of(with(request, {{"tokenizer", "bpe"}})).config.vocab_size == request.config.vocab_size);
}

namespace {

// The words of @stories.
PlanRequest words_request(double seconds) {
  PlanRequest request = request_for(1'900'000, seconds);
  request.text.tokenizer = "word";
  request.text.tokens = 387'000;
  request.text.vocabulary = 5800;
  return request;
}

}  // namespace

TEST_CASE("words are learned by a network, and with too little time for it on a prior, at every speed of the machine") {
  // At kSpeed, 2 x 64 takes 85 ms per step, which is an ordinary machine with two cores.
  for (const double slower : {0.25, 0.5, 1., 1.2}) {
    const Plan plan = plan_of(words_request(60), kSpeed / slower);
    INFO(slower << ": " << plan.config.n_layer << " x " << plan.config.n_embd << ", " << plan.config.max_steps);
    REQUIRE(plan.config.ngram_orders.empty());
    REQUIRE(plan.config.ngram_prior == 0);
    REQUIRE(plan.config.max_steps >= 400);
    REQUIRE(plan.seconds > 58);
    REQUIRE(plan.expected_loss < 0.85);
  }
  for (const double slower : {4., 8., 16.}) {
    const Plan plan = plan_of(words_request(60), kSpeed / slower);
    INFO(slower << ": " << plan.config.max_steps);
    REQUIRE(plan.config.ngram_prior == 6);
    REQUIRE(plan.expected_loss <= 1);
  }
  REQUIRE(plan_of(words_request(600), kSpeed).config.n_embd >= 128);
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

TEST_CASE("a text of a few lines is learned by heart, with a context that fits") {
  for (const std::int64_t characters : {2, 30, 100, 600, 1000, 1200, 1999}) {
    const Plan plan = plan_of(request_for(characters, 60, std::min<std::int64_t>(characters, 30)));
    const Config& c = plan.config;
    INFO(characters << ": " << c.block_size);
    REQUIRE(plan.by_heart);
    REQUIRE(c.val_fraction == 0);
    REQUIRE(c.ngram_prior == 0);
    REQUIRE(c.dropout == 0);
    REQUIRE(c.tokenizer == "char");
    REQUIRE(c.block_size + 1 <= characters);
    REQUIRE(c.max_steps == 300);
    REQUIRE_FALSE(plan.enough.empty());
  }
  // The windows of an epoch leave out what a division by the context leaves over.
  REQUIRE(509 % plan_of(request_for(509, 60)).config.block_size <= 1);
  REQUIRE(plan_of(request_for(441, 60)).config.block_size > 50);
  REQUIRE_FALSE(plan_of(with(request_for(1000, 60), {{"val_fraction", "0.2"}})).by_heart);
}

TEST_CASE("both parts of a text have room for a window") {
  for (const std::int64_t characters : {2000, 2500, 5000, 20'000}) {
    for (const char* const share : {"0.01", "0.1", "0.5", "0.99"}) {
      const Config c = plan_of(with(request_for(characters, 60), {{"val_fraction", share}})).config;
      INFO(characters << " " << share);
      REQUIRE(static_cast<double>(c.block_size + 1) <= c.val_fraction * static_cast<double>(characters));
      REQUIRE(static_cast<double>(c.block_size + 1) <= (1 - c.val_fraction) * static_cast<double>(characters));
    }
  }
  // A window of 64 reads 65 tokens; nine tenths of those for validation are certain.
  const auto context = [](std::int64_t characters) {
    return plan_of(with(request_for(characters, 60), {{"val_fraction", "0.1"}})).config.block_size;
  };
  REQUIRE(context(720) == 32);
  REQUIRE(context(730) == 64);
}

TEST_CASE("of a very short text, little is learned at low rates and measured often") {
  const Plan plan = plan_of(request_for(30'000, 60));
  REQUIRE(plan.config.ngram_prior == 6);
  REQUIRE(plan.config.learning_rate == 1e-4);
  REQUIRE(plan.config.muon_lr == 2e-3);
  REQUIRE(plan.config.max_steps == 100);
  REQUIRE(plan.config.eval_interval == 10);
  REQUIRE_FALSE(plan.config.tie_weights);
  PlanRequest many = request_for(1'000'000, 600, 3000);
  REQUIRE(plan_of(many).config.tie_weights);
  REQUIRE_FALSE(plan_of(many, kSpeed / 200).config.tie_weights);  // so few steps that they have to begin with the count
}

TEST_CASE("a number of steps that is given is a second limit") {
  const Plan open = plan_of(request_for(1'000'000, 60));
  const Plan few = plan_of(with(request_for(1'000'000, 60), {{"max_steps", "50"}}));
  REQUIRE(few.config.max_steps == 50);
  REQUIRE(few.config.lr_decay_steps == 50);
  REQUIRE(few.most_steps == 50);
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

TEST_CASE("the size of a model whose data have columns follows from their bytes, unless it is given") {
  const auto size = [](std::int64_t bytes, const std::map<std::string, std::string>& given = {}) {
    const Config c = choose_size(with(request_for(1, 1), given), bytes).config;
    return std::vector<std::int64_t>{c.n_layer, c.n_embd, c.batch_size};
  };
  REQUIRE(size(199'999) == std::vector<std::int64_t>{1, 64, 32});
  REQUIRE(size(200'000) == std::vector<std::int64_t>{2, 128, 32});
  REQUIRE(size(1'999'999) == std::vector<std::int64_t>{2, 128, 32});
  REQUIRE(size(2'000'000) == std::vector<std::int64_t>{4, 128, 32});
  REQUIRE(size(2'000'000, {{"n_embd", "96"}}) == std::vector<std::int64_t>{4, 96, 32});
  REQUIRE(choose_size(request_for(1, 1), 250'000).choices.at(0).reason == "for 250 kB of data");
}

namespace {

// A text of 4,000 characters, a quarter of them for validation, and a small model that is decided.
PlanRequest decided_request(double seconds) {
  PlanRequest request = request_for(4000, seconds);
  Config& c = request.config;
  c.n_layer = 1;
  c.n_head = 2;
  c.n_embd = 8;
  c.block_size = 16;
  c.batch_size = 4;
  c.val_fraction = 0.25;
  return request;
}

}  // namespace

TEST_CASE("a run whose model is decided has as many steps as fit into the time, and no more than help") {
  const PlanRequest request = decided_request(1e6);
  const Dataset data = dataset_of(seeded_text(4000, "abcdef"), request.config);
  const LanguageModelTask task(request.config, data);
  Machine machine(1e8);
  const Plan plan = plan_length(request, task, machine);
  const Config& c = plan.config;
  REQUIRE(plan.most_steps == static_cast<std::int64_t>(std::ceil(10 / task.epochs(1))));
  REQUIRE(plan.most_steps > 200);
  REQUIRE(c.max_steps == plan.most_steps);
  REQUIRE(c.lr_decay_steps == c.max_steps);
  REQUIRE(c.warmup_steps == c.max_steps / 20);
  REQUIRE(c.eval_interval == c.max_steps / 10);
  REQUIRE(c.checkpoint_interval == c.eval_interval);
  REQUIRE(c.sample_interval == c.max_steps / 2);
  REQUIRE(c.log_interval == c.max_steps / 50);
  REQUIRE(c.learning_rate == request.config.learning_rate);
  REQUIRE(c.schedule == "linear");
  REQUIRE(c.min_lr == 0);
  REQUIRE(plan.passes == task.epochs(c.max_steps));
  REQUIRE(plan.memory_bytes == memory_needed(request.config, task.vocab_sizes()).total());
  REQUIRE(plan.enough == "after 10 passes over the data the model would only memorize it");
  REQUIRE(names_every_field_once(plan));
  const auto planned = [&](const PlanRequest& other) { return plan_length(other, task, machine); };
  const Plan half = planned(decided_request(plan.seconds / 2));
  REQUIRE(half.config.max_steps < plan.most_steps);
  REQUIRE(half.seconds <= plan.seconds / 2);
  REQUIRE(half.most_steps == plan.most_steps);
  REQUIRE(half.enough.empty());
  const Config few = planned(with(request, {{"max_steps", "60"}})).config;
  REQUIRE(few.max_steps == 60);
  REQUIRE(few.warmup_steps == 3);
  PlanRequest other = request;
  other.has_weights = true;
  REQUIRE(planned(other).config.learning_rate == 3e-4);
  REQUIRE(planned(with(other, {{"learning_rate", "0.002"}})).config.learning_rate == 0.002);
  other.memory = plan.memory_bytes;
  REQUIRE(planned(other).memory_bytes == plan.memory_bytes);
  other.memory = plan.memory_bytes - 1;
  REQUIRE_THROWS_WITH(planned(other), ContainsSubstring("of memory are needed") &&
                                          ContainsSubstring("lower batch_size, block_size, n_embd or n_layer"));
  REQUIRE_THROWS_WITH(planned(decided_request(0)), ContainsSubstring("minutes: no time is left for training"));
}

TEST_CASE("the plan of a run whose model is decided has time for counting all of its text, if its tokens are counted") {
  Machine machine(1e8);
  const auto seconds = [&](const PlanRequest& request, const Task& task) {
    return plan_length(request, task, machine).seconds;
  };
  PlanRequest with_counting = decided_request(1e6);
  with_counting.config.counting = true;
  PlanRequest without = with_counting;
  without.config.counting = false;
  const Dataset data = dataset_of(seeded_text(4000, "abcdef"), without.config);
  const LanguageModelTask text(without.config, data);
  const double counting = counting_seconds(with_counting.config, 4000);
  REQUIRE(counting > 0);
  REQUIRE(seconds(with_counting, text) - seconds(without, text) == Approx(counting).epsilon(1e-6));
  for (PlanRequest* const request : {&with_counting, &without}) {
    request->config.model = "encoder";
    request->config.task = "masked";
  }
  const MaskedTask masked(without.config, std::make_shared<const Dataset>(data));
  REQUIRE(seconds(with_counting, masked) == seconds(without, masked));
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
