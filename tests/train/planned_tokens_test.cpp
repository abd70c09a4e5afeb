// What a plan chooses for texts of different kinds and lengths: tokens, contexts and rates.
#include <algorithm>
#include <map>

#include "tests/catch.h"
#include "tests/train/made_up_machine.h"
#include "train/loop/plan/plan.h"
#include "train/loop/plan/shapes.h"
#include "train/run/config/models.h"

using namespace maki;
using namespace maki::tests;

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
