// Grammars small enough to enumerate every derivation: the expectations against enumeration, the errors of the
// notation, and the two proofs of unambiguity on grammars that are ambiguous.
#include "data/builtin/grammar.h"

#include "autograd/core/check.h"
#include "tests/catch.h"
#include "tests/data/grammar_reading.h"

namespace maki {
namespace {

/// A derivation of a grammar: its text and its −ln p.
struct Derivation {
  std::string text;
  double nats;
};

void derive(const Grammar& grammar, Rest rest, DrawnValues& values, const Derivation& so_far,
            std::vector<Derivation>& all) {
  rest = Rest::skip_ended(rest);
  if (rest.ended()) return all.push_back(so_far);
  const GrammarPart& part = rest.front();
  const Rest after = rest.after_front();
  if (part.rule < 0) return derive(grammar, after, values, {so_far.text + part.text, so_far.nats}, all);
  const auto& alternatives = alternatives_of(grammar, part);
  const DrawnValues before = values;
  const std::size_t variable = static_cast<std::size_t>(part.variable);
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    if (!part.draws && before[variable] != i) continue;
    if (part.variable >= 0) values[variable] = i;
    const double nats = part.draws ? std::log(static_cast<double>(alternatives.size())) : 0;
    derive(grammar, {&alternatives[i][static_cast<std::size_t>(part.field)], 0, 0, &after}, values,
           {so_far.text, so_far.nats + nats}, all);
    values = before;
  }
}

std::vector<Derivation> all_derivations(const Grammar& grammar) {
  std::vector<Derivation> all;
  DrawnValues values(grammar.variables.size(), kNotDrawn);
  const GrammarBody root = {GrammarPart::draw(0)};
  derive(grammar, {&root}, values, {"", 0}, all);
  return all;
}

// Fields of different lengths, a field that draws, a field that uses its own and another variable, a rule drawn twice.
constexpr std::string_view kSmall = R"(
# who meets whom
[story]
{hero=child.name} met {other=animal}. {end}
There was {other=animal}. {hero=child.name} saw {other.it}, and {other.it} saw {hero.him}.
  {hero.tells}
  {end}

[child: name him tells]
Mia | Olivia / her / @ sang {song}
Tom / him / He said {other.it} was {size}, {size} and {hero.him}

[animal: name it]
a fox | an owl / it
two mice / them

[song]
la | lala, {size} | oh {other.it}

[size]
big | tiny

[end]
The end. | {hero.him} and {hero.name}!
)";

TEST_CASE("the expectations of a grammar are the means over all its derivations") {
  const Grammar grammar = parse_grammar(kSmall);
  const std::vector<Derivation> all = all_derivations(grammar);
  double probability = 0, nats = 0, characters = 0;
  for (const Derivation& one : all) {
    const double p = std::exp(-one.nats);
    probability += p;
    nats += p * one.nats;
    characters += p * static_cast<double>(one.text.size());
  }
  CHECK(all.size() == 3 * 3 * 2 + 3 * (4 + 4 + 4) * 2);
  CHECK(probability == Approx(1).epsilon(1e-12));
  const GrammarExpectation mean = expectation(grammar);
  CHECK(mean.nats == Approx(nats).epsilon(1e-12));
  CHECK(mean.characters == Approx(characters).epsilon(1e-12));
}

TEST_CASE("every derivation of an unambiguous grammar is recovered from its text, with its probability") {
  const Grammar grammar = parse_grammar(kSmall);
  const Undecided undecided_draws = undecided(grammar);
  CHECK(undecided_draws.compared == 1 + 3 + 3 + 3 + 1 + 1);
  CHECK(undecided_draws.pairs ==
        std::vector<std::string>{"song.: la / lala,  (0, 1)"});  // " la" is never followed by "la,"
  for (const Derivation& one : all_derivations(grammar)) {
    const Readings readings(grammar, one.text);
    CHECK(readings.count == 1);
    CHECK(readings.nats == Approx(one.nats).epsilon(1e-12));
  }
  CHECK(Readings(grammar, "Mia met a fox. The end").count == 0);
  CHECK(Readings(grammar, "Mia met a fox. him and Mia!").count == 0);  // Mia is her
}

TEST_CASE("a story is a derivation, a function of the random stream only, drawn with its probability") {
  const Grammar grammar = parse_grammar("[a]\n{x=letter}{letter}{x}\n[letter]\nあ | b | c\n");
  std::vector<int> counts(9);
  for (std::uint64_t k = 0; k < 900; ++k) {
    std::string text = "before ", again;
    const std::size_t characters = derive_text(grammar, RandomStream(1, RandomPurpose::test, k), text);
    derive_text(grammar, RandomStream(1, RandomPurpose::test, k), again);
    CHECK(text == "before " + again);
    CHECK(characters == 3);
    const std::vector<Derivation> all = all_derivations(grammar);
    for (std::size_t i = 0; i < all.size(); ++i) counts[i] += all[i].text == again;
  }
  for (const int count : counts) CHECK(std::abs(count - 100) < 40);  // four standard deviations
}

TEST_CASE("both proofs detect an ambiguous grammar") {
  const Grammar same_text = parse_grammar("[a]\n{b}{c}\n[b]\nx | xy\n[c]\ny | z | yz\n");
  CHECK(Readings(same_text, "xyz").count == 2);
  CHECK(Readings(same_text, "xz").count == 1);
  CHECK(undecided(same_text).pairs.size() == 2);  // x / xy, y / yz

  const Grammar twice = parse_grammar("[a]\n{b}.\n{c}.\n[b]\nred | blue\n[c]\ngreen | blue\n");
  CHECK(Readings(twice, "blue.").count == 2);
  CHECK(undecided(twice).pairs.size() == 1);

  // The field that is drawn does not show which value was drawn.
  const Grammar hidden = parse_grammar("[a]\n{who=child.he} ran.\n[child: name he]\nTom | Ben / he\nMia / she\n");
  CHECK(Readings(hidden, "he ran.").count == 2);
  CHECK(undecided(hidden).pairs.size() == 1);

  // The two continuations share the values drawn before, or each draws its own.
  const Grammar own = parse_grammar("[a]\n{b}\n[b]\n{x=c}.\n{y=c}.\n[c]\n1 | 2\n");
  CHECK(Readings(own, "1.").count == 2);
  CHECK(undecided(own).pairs.size() == 1);
  const Grammar shared = parse_grammar("[a]\n{x=c}{b}\n[b]\n{x}.\n{x.not}.\n[c: name not]\n1 / 2\n2 / 1\n");
  CHECK(undecided(shared).pairs.empty());
  CHECK(Readings(shared, "12.").count == 1);
}

TEST_CASE("the errors of the notation name the rule") {
  const auto refuses = [](std::string_view notation, const std::string& sentence) {
    INFO(notation);
    REQUIRE_THROWS_AS(parse_grammar(notation), Error);
    try {
      parse_grammar(notation);
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring(sentence));
    }
  };
  refuses("", "no rules");
  refuses("# only this\n", "no rules");
  refuses("text\n", "header must come before");
  refuses("[a\nx\n", "must end with ]");
  refuses("[a]\n", "rule a has no alternatives");
  refuses("[a]\nx\n[a]\ny\n", "rule a is defined twice");
  refuses("[a]\n  x\n", "no alternative to continue");
  refuses("[a]\n{b}\n", "no rule or variable b");
  refuses("[a]\n{x=b}\n", "no rule or variable b");
  refuses("[a]\n{b.c}\n[b: d e]\n1 / 2\n", "rule b has no field c");
  refuses("[a]\n{b.d}\n[b: d e]\n1 / 2 / 3\n", "rule b has 2 fields; got 3");
  refuses("[a]\n{b.d}\n[b: d e]\n1 / 2 | 3\n", "only the first field may list");
  refuses("[a]\n{b\n[b]\n1\n", "{ without }");
  refuses("[a]\nb}\n", "} without {");
  refuses("[a]\nx |  | y\n", "an empty alternative");
  refuses("[a]\n{b}\n[b]\n{c}\n[c]\nx{b}\n", "rule b contains itself");
  refuses("[a]\nx\n[b]\ny\n", "rule b is unreachable");
  refuses("[a]\n{b=b}\n[b]\ny\n", "b is the name of both a rule and a variable");
  refuses("[a]\n{x=b}{x=c}\n[b]\ny\n[c]\nz\n", "x is drawn from two rules");
  refuses("[a]\n{x=b}{x=b}\n[b]\ny\n", "x is drawn twice");
  refuses("[a]\n{x}{x=b}\n[b]\ny\n", "x is used before it is drawn");
  refuses("[a]\n{c}{x}\n[b]\ny\n[c]\n{x=b}\nelse\n", "x is used before it is drawn");
}

}  // namespace
}  // namespace maki
