// Plans of runs whose model make_plan() does not choose: size, tokens, parts of a block and length, and what they have
// to know about their data.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "data/mixing/held_out_expectations.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/made_up_machine.h"
#include "tests/train/small_data.h"
#include "train/loop/language_model_task.h"
#include "train/loop/masked_task.h"
#include "train/loop/plan/data_facts.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/tasks.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Given = std::map<std::string, std::string>;

PlanRequest request_of(const std::string& model, const std::string& task, const Given& given = {}) {
  PlanRequest request{.text = {}, .seconds = 60, .config = {}};
  apply_preset(request.config, "quickstart");
  set_field(request.config, find_field("model"), model);
  set_field(request.config, find_field("task"), task);
  request = with(request, given);
  fill_open_fields(request.config);
  return request;
}

Corpus corpus_of(const std::string& text) {
  Corpus corpus;
  corpus.text = text;
  corpus.characters = static_cast<std::int64_t>(text.size());
  return corpus;
}

// Lines of the same few words, each followed by `rest`.
std::string lines_of_few_words(int lines, const std::string& rest) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += "the cat sees the dog" + rest + "\n";
  return text;
}

const std::pair<const char*, const char*> kOtherModels[] = {
    {"seq2seq", "translate"}, {"encoder", "masked"}, {"encoder", "classify"}, {"transformer-xl", "next_token"}};

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

TEST_CASE("the plan of every other model is valid, and names each field that it changes once, with a reason") {
  for (const auto& [model, task] : kOtherModels) {
    for (const std::int64_t bytes : {1'000, 1'000'000, 100'000'000}) {
      const PlanRequest request = request_of(model, task);
      const Plan plan = choose_size(request, {.bytes = bytes});
      INFO(model << ", " << task << ", " << bytes);
      const Config given = with_planned_schedule(request);  // whose reason plan_length() gives
      Config config = plan.config;
      fill_dependent_defaults(config);
      REQUIRE_NOTHROW(validate(config));
      std::set<std::string> named;
      for (const PlanChoice& choice : plan.choices) {
        REQUIRE_FALSE(choice.reason.empty());
        for (const std::string& field : choice.fields) REQUIRE(named.insert(field).second);
      }
      for (const Field& field : fields()) {
        INFO(field.name);
        if (field_text(config, field) != field_text(given, field))
          REQUIRE((named.contains(field.name) || field.name == "lr_decay_steps"));
      }
    }
  }
}

TEST_CASE("a configuration with a low learning rate is complete before its length is planned") {
  for (const auto& [model, task] : kOtherModels) {
    const PlanRequest request = request_of(model, task, {{"learning_rate", "0.00005"}});
    INFO(model << ", " << task);
    REQUIRE_THROWS_AS(validate(request.config), Error);
    REQUIRE_NOTHROW(validate(with_planned_schedule(request)));
    REQUIRE_NOTHROW(validate(choose_size(request, {.bytes = 1000}).config));
  }
}

TEST_CASE("the size of a model whose data have columns follows from their bytes, unless it is given") {
  const auto size = [](std::int64_t bytes, const Given& given = {}) {
    const Config c = choose_size(request_of("seq2seq", "translate", given), {.bytes = bytes}).config;
    return std::vector<std::int64_t>{c.n_layer, c.n_embd, c.batch_size};
  };
  REQUIRE(size(199'999) == std::vector<std::int64_t>{1, 64, 32});
  REQUIRE(size(200'000) == std::vector<std::int64_t>{2, 128, 32});
  REQUIRE(size(1'999'999) == std::vector<std::int64_t>{2, 128, 32});
  REQUIRE(size(2'000'000) == std::vector<std::int64_t>{4, 128, 64});
  REQUIRE(size(2'000'000, {{"n_embd", "96"}}) == std::vector<std::int64_t>{4, 96, 64});
  REQUIRE(choose_size(request_of("encoder", "classify"), {.bytes = 2'000'000}).config.batch_size == 32);
  PlanRequest longer = request_of("seq2seq", "translate");
  longer.seconds = 300;
  REQUIRE(choose_size(longer, {.bytes = 1'999'999}).config.batch_size == 32);
  REQUIRE(choose_size(longer, {.bytes = 2'000'000}).config.batch_size == 128);
  // Dropout where two megabytes are read twelve times or more, at 64 kB a second.
  const auto dropout = [&](double seconds, std::int64_t bytes) {
    longer.seconds = seconds;
    return choose_size(longer, {.bytes = bytes, .lines = 30'000}).config.dropout;
  };
  REQUIRE(dropout(374, 2'000'000) == 0);
  REQUIRE(dropout(375, 2'000'000) == 0.1);
  REQUIRE(dropout(375, 2'100'000) == 0);
  REQUIRE(dropout(1e6, 1'999'999) == 0);
  REQUIRE(choose_size(request_of("seq2seq", "translate"), {.bytes = 250'000}).choices.at(0).reason ==
          "for 250 kB of data");
}

TEST_CASE(
    "a width that is planned for data in columns fits the heads that are given, and open heads fit their groups") {
  const auto heads = [](const Given& given) {
    Config c = choose_size(request_of("seq2seq", "translate", given), {.bytes = 1'000'000}).config;
    fill_dependent_defaults(c);
    validate(c);
    return std::vector<std::int64_t>{c.n_embd, c.n_head};
  };
  REQUIRE(heads({}) == std::vector<std::int64_t>{128, 4});
  REQUIRE(heads({{"n_head", "6"}}) == std::vector<std::int64_t>{132, 6});
  REQUIRE(heads({{"n_head", "8"}, {"n_embd", "96"}}) == std::vector<std::int64_t>{96, 8});
}

TEST_CASE("other models get the parts of a block that they have, the optimizer of plans, and a rate for their width") {
  const auto planned = [](const char* model, const char* task) {
    return choose_size(request_of(model, task), {.bytes = 1'000'000}).config;
  };
  for (const auto& [model, task] : kOtherModels) {
    const Config c = planned(model, task);
    INFO(model << ", " << task);
    REQUIRE(c.optimizer == "muon");
    REQUIRE(c.momentum == 0.95);
    REQUIRE(c.n_embd == 128);
    REQUIRE(c.learning_rate == 0.004);
    REQUIRE(c.norm == NormKind::rms);
    REQUIRE(c.norm_order == NormOrder::pre);
    REQUIRE(c.activation == Activation::relu_squared);
    REQUIRE_FALSE(c.bias);
    REQUIRE(c.conv_width == (std::string(model) == "encoder" ? 7 : 0));
    REQUIRE(c.block_size == (std::string(task) == "masked" ? 128 : 64));
    REQUIRE(c.batch_size * c.block_size == 32 * 64);
    const bool relative = std::string(model) == "transformer-xl";
    REQUIRE(c.qk_norm == !relative);
    REQUIRE(c.positions == (relative ? Positions::sinusoidal : Positions::rotary));
  }
  // The rate suits what Muon leaves to AdamW, not AdamW alone.
  const Config adamw =
      choose_size(request_of("encoder", "masked", {{"optimizer", "adamw"}}), {.bytes = 1'000'000}).config;
  REQUIRE(adamw.optimizer == "adamw");
  REQUIRE(adamw.learning_rate == Config().learning_rate);
  // Heads of an odd number of columns cannot be rotated.
  const Config odd =
      choose_size(request_of("encoder", "masked", {{"n_embd", "12"}, {"n_head", "4"}}), {.bytes = 1000}).config;
  REQUIRE(odd.positions == Positions::learned);
}

TEST_CASE("an optimizer whose learning rate is not known needs one, as the plans of texts do") {
  const Given sgd = {{"optimizer", "sgd"}}, with_rate = {{"optimizer", "sgd"}, {"learning_rate", "0.5"}};
  const char* const refusal = "plan: knows no learning rate for sgd; add `learning_rate`";
  REQUIRE_THROWS_WITH(choose_size(request_of("encoder", "masked", sgd), {.bytes = 1000}), refusal);
  REQUIRE(choose_size(request_of("encoder", "masked", with_rate), {.bytes = 1000}).config.learning_rate == 0.5);
  const PlanRequest request = decided_request(60);
  const Dataset data = dataset_of(seeded_text(4000, "abcdef"), request.config);
  const LanguageModelTask task(request.config, data);
  Machine machine;
  REQUIRE_THROWS_WITH(plan_length(with(request, sgd), task, machine), refusal);
  REQUIRE(plan_length(with(request, with_rate), task, machine).config.learning_rate == 0.5);
}

TEST_CASE("the context of a short text leaves both of its parts a window") {
  const auto context = [](std::int64_t characters, const Given& given = {}) {
    PlanRequest request = request_of("encoder", "masked", given);
    const Corpus corpus = corpus_of(seeded_text(static_cast<std::size_t>(characters), "ab"));
    request.config = choose_size(request, data_facts(corpus, request.config)).config;
    make_task(request.config, corpus, {});  // throws if there is none
    return request.config.block_size;
  };
  REQUIRE(context(527) == 32);  // 53 characters are for validation
  REQUIRE(context(640) == 32);
  REQUIRE(context(650) == 64);
  REQUIRE(context(527, {{"val_fraction", "0"}}) == 64);
  REQUIRE(context(527, {{"val_fraction", "0.9"}}) == 32);
  REQUIRE(context(527, {{"block_size", "50"}}) == 50);
  REQUIRE(context(1000, {{"tokenizer", "bpe"}}) < 64);
  REQUIRE(context(200'000) == 128);
}

TEST_CASE("what the user has given of other models stays as it is") {
  const Given given = {
      {"n_layer", "3"},        {"n_embd", "96"},      {"batch_size", "7"},       {"tokenizer", "byte"},
      {"block_size", "16"},    {"positions", "none"}, {"norm", "layer"},         {"norm_order", "post"},
      {"activation", "gelu"},  {"bias", "true"},      {"qk_norm", "false"},      {"momentum", "0.9"},
      {"val_fraction", "0.3"}, {"optimizer", "muon"}, {"learning_rate", "1e-3"}, {"label_smoothing", "0.2"}};
  const DataFacts data{
      .bytes = 1'000'000, .lines = 50'000, .longest_bytes = 300, .longest_characters = 200, .tokenizer = "word"};
  std::vector<Given> cases = {given};
  for (const auto& one : given) cases.push_back({one});
  for (const Given& fixed : cases) {
    const PlanRequest request = request_of("seq2seq", "translate", fixed);
    const Plan plan = choose_size(request, data);
    for (const auto& [name, value] : fixed) {
      INFO(name);
      REQUIRE(field_text(plan.config, find_field(name)) == field_text(request.config, find_field(name)));
      for (const PlanChoice& choice : plan.choices) REQUIRE(std::ranges::count(choice.fields, name) == 0);
    }
  }
  for (const PlanChoice& choice : choose_size(request_of("seq2seq", "translate"), data).choices)
    for (const std::string& name : choice.fields) REQUIRE(given.contains(name));
}

TEST_CASE("a plan for lines has room for the longest of them, and holds back no more than are needed") {
  const auto planned = [](const DataFacts& data, const Given& given = {}) {
    return choose_size(request_of("seq2seq", "translate", given), data).config;
  };
  const DataFacts data{.bytes = 1, .lines = 50'000, .longest_bytes = 300, .longest_characters = 200};
  // With a space before it and an end token, in whole eights.
  REQUIRE(planned(data).block_size == 208);
  REQUIRE(planned(data, {{"tokenizer", "word"}}).block_size == 208);  // rare words are spelled
  REQUIRE(planned(data, {{"tokenizer", "byte"}}).block_size == 304);
  REQUIRE(planned(data, {{"tokenizer", "bpe"}}).block_size == 304);
  REQUIRE(planned({.bytes = 1, .lines = 9, .longest_bytes = 62, .longest_characters = 62}).block_size == 64);
  REQUIRE(planned({.bytes = 1, .lines = 9, .longest_bytes = 63, .longest_characters = 63}).block_size == 72);
  REQUIRE(planned({.bytes = 1, .lines = 9, .longest_bytes = 5, .longest_characters = 5}).block_size == 64);
  REQUIRE(planned(data).val_fraction == 0.02);
  REQUIRE(planned({.bytes = 1, .lines = 10'000}).val_fraction == 0.1);
  REQUIRE(planned({.bytes = 1, .lines = 20'000}).val_fraction == 0.05);
  REQUIRE(planned(data).label_smoothing == 0.1);
  REQUIRE(planned(data).tokenizer == "char");
  REQUIRE(planned({.bytes = 1, .lines = 9, .tokenizer = "word"}).tokenizer == "word");
  REQUIRE(choose_size(request_of("encoder", "classify"), data).config.label_smoothing == 0);
  REQUIRE(choose_size(request_of("encoder", "masked"), {.bytes = 1}).config.block_size == Config().block_size);
}

TEST_CASE("facts of lines: the longest column, and words where hardly any is new on either side") {
  const Config pairs = request_of("seq2seq", "translate").config, labels = request_of("encoder", "classify").config,
               masked = request_of("encoder", "masked").config;
  const std::string few = lines_of_few_words(300, "\tle chat voit le chien");
  DataFacts facts = data_facts(corpus_of(few), pairs);
  REQUIRE(facts.bytes == std::ssize(few));
  REQUIRE(facts.lines == 300);
  REQUIRE(facts.longest_bytes == 21);
  REQUIRE(facts.longest_characters == 21);
  REQUIRE(facts.tokenizer == "word");

  std::string named = few;  // each of the last lines with a word of its own
  for (int i = 0; i < 40; ++i)
    named += "the cat sees the dog\tle chat voit " + std::string(static_cast<std::size_t>(2 + i), 'x') + "\n";
  REQUIRE(data_facts(corpus_of(named), pairs).tokenizer == "char");

  facts = data_facts(corpus_of("é\tabc\nab\tｶﾞ\n"), pairs);
  REQUIRE(facts.lines == 2);
  REQUIRE(facts.longest_bytes == 6);
  REQUIRE(facts.longest_characters == 3);
  REQUIRE(facts.tokenizer == "char");
  Config composed = pairs;
  set_field(composed, find_field("normalize"), "nfkc");
  REQUIRE(data_facts(corpus_of("é\tabc\nab\tｶﾞ\n"), composed).longest_bytes == 3);

  // A label is learned as a whole, and says nothing about tokens.
  facts = data_facts(corpus_of("ab\tpositive\nabc\tnegative\n"), labels);
  REQUIRE(facts.lines == 2);
  REQUIRE(facts.longest_bytes == 3);
  REQUIRE(data_facts(corpus_of(lines_of_few_words(300, "\tgood")), labels).tokenizer == "char");
  facts = data_facts(corpus_of("a plain text"), masked);
  REQUIRE(facts.bytes == 12);
  REQUIRE(facts.lines == 0);
  REQUIRE(facts.fewest_tokens.value() == 1);
  REQUIRE_FALSE(data_facts(corpus_of(std::string(200'000, 'a')), masked).fewest_tokens.has_value());
}

TEST_CASE("a step of lines is timed with as many tokens as they usually have") {
  struct Watch : Machine {
    StepTime time_step(const Config& c, const VocabSizes& vocab) override {
      block_size = c.block_size;
      return Machine::time_step(c, vocab);
    }
    std::int64_t block_size = 0;
  };
  std::string lines;  // sources of 4 tokens, and targets of 8 and 18
  for (int i = 0; i < 100; ++i) lines += std::string("abcd\t") + std::string(i % 2 == 0 ? 8 : 18, 'x') + "\n";
  PlanRequest request = request_of("seq2seq", "translate", {{"val_fraction", "0"}, {"batch_size", "10"}});
  const Corpus corpus = corpus_of(lines);
  request.config = choose_size(request, data_facts(corpus, request.config)).config;
  const std::unique_ptr<Task> task = make_task(request.config, corpus, {});
  Watch watch;
  REQUIRE(plan_length(request, *task, watch).config.max_steps > 0);
  REQUIRE(watch.block_size == 10);  // half of 4 + 13, and the end of a target
  request.memory = 1;
  REQUIRE_THROWS_WITH(plan_length(request, *task, watch),
                      ContainsSubstring("longest lines, which need a context of 64 tokens"));

  PlanRequest text = request_of("encoder", "masked", {{"block_size", "16"}});
  const std::unique_ptr<Task> windows = make_task(text.config, corpus, {});
  plan_length(text, *windows, watch);
  REQUIRE(watch.block_size == 16);
}

TEST_CASE("little data is learned in sixty steps, however often a step reads it") {
  const PlanRequest request = decided_request(1e6);
  Machine machine(1e8);
  for (const std::size_t characters : {150U, 300U}) {
    const Dataset data = dataset_of(seeded_text(characters, "abcdef"), request.config);
    const LanguageModelTask task(request.config, data);
    REQUIRE(10 / task.epochs(1) < 60);
    REQUIRE(plan_length(request, task, machine).config.max_steps == 60);
  }
}

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

TEST_CASE("the plan of a run whose model is decided has time and memory for its teachers") {
  const ThreadsScope scope(2);
  Machine machine(1e6);
  const PlanRequest request = decided_request(1e6);
  const Dataset data = dataset_of(seeded_text(4000, "abcdef"), request.config);
  const LanguageModelTask task(request.config, data);
  const double seconds = 300 * plan_length(request, task, machine).step.seconds;
  const auto planned = [&](const std::vector<std::string>& teachers) {
    PlanRequest taught = decided_request(seconds);
    taught.config.teacher = teachers;
    return plan_length(taught, task, machine);
  };
  const Plan alone = planned({}), own = planned({"@own:100"}), more = planned({"@own:150"});
  REQUIRE(own.step.seconds == alone.step.seconds);
  REQUIRE(own.seconds <= seconds);
  REQUIRE(own.seconds > 0.9 * seconds);
  // 50 steps fewer, each of which would have taken a third longer than those of a teacher; and evaluations.
  REQUIRE(static_cast<double>(own.config.max_steps - more.config.max_steps) == Approx(50 / 1.35).epsilon(0.2));
  REQUIRE(planned({"@counts"}).memory_bytes > alone.memory_bytes);
  REQUIRE_THROWS_WITH(planned({"@own:400"}), ContainsSubstring("minutes: the teachers alone take about"));
}

TEST_CASE("the plan of a run whose model is decided leaves time to count") {
  const ThreadsScope scope(2);
  Machine machine(1e9);
  PlanRequest request = decided_request(1);
  const Dataset data = dataset_of(seeded_text(400'000, "abcdef"), request.config);
  const LanguageModelTask task(request.config, data);
  const double counting = HeldOutExpectations::seconds_to_make(std::ssize(data.train), 6, 2);
  REQUIRE(counting > 1);
  request.seconds = 3 * counting;
  const Plan alone = plan_length(request, task, machine);
  request.config.teacher = {"@counts"};
  const Plan counts = plan_length(request, task, machine);
  REQUIRE(4 * counts.config.max_steps < 3 * alone.config.max_steps);
  REQUIRE(counts.seconds <= request.seconds);
  REQUIRE(counts.seconds > 0.9 * request.seconds);
  request.seconds = counting;
  REQUIRE_THROWS_WITH(plan_length(request, task, machine), ContainsSubstring("minutes: the teachers alone take about"));
}
