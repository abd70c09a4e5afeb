// Generates texts of a grammar and computes the expected values of their information and length.
#include "data/builtin/grammar.h"

#include <cmath>

namespace maki {
namespace {

const std::vector<GrammarBody>& alternative_of(const Grammar& grammar, const GrammarPart& part, std::size_t index) {
  return grammar.rules[static_cast<std::size_t>(part.rule)].alternatives[index];
}

constexpr std::size_t kNotDrawn = static_cast<std::size_t>(-1);
using Values = std::vector<std::size_t>;  // for each variable the alternative that it remembers, or kNotDrawn

struct Derivation {
  const Grammar& grammar;
  const RandomStream& stream;
  std::string& text;
  Values values = Values(grammar.variables.size(), kNotDrawn);
  std::uint64_t choices = 0;
  std::size_t characters = 0;

  void derive(const GrammarBody& body) {
    for (const GrammarPart& part : body) {
      if (part.rule < 0) {
        text += part.text;
        characters += part.characters;
        continue;
      }
      const std::size_t count = grammar.rules[static_cast<std::size_t>(part.rule)].alternatives.size();
      const std::size_t index = part.draws ? static_cast<std::size_t>(stream.below(choices++, count))
                                           : values[static_cast<std::size_t>(part.variable)];
      if (part.variable >= 0) values[static_cast<std::size_t>(part.variable)] = index;
      derive(alternative_of(grammar, part, index)[static_cast<std::size_t>(part.field)]);
    }
  }
};

// The expectations (nats, characters) of a body are the sums over its parts, because expectations are additive even if
// the parts depend on each other:
//   E[literal]     = (0, its length)
//   E[draw of R]   = (ln n, 0) + Σ_i E[alternative i] / n
//   E[use of v]    = Σ_i E[alternative i | v = i] / n
// The last line holds because all choices are independent, so that reaching a use says nothing about the value of v.
// The exception is a use inside a field of v itself: there `values` holds the alternative.
GrammarExpectation expect(const Grammar& grammar, const GrammarBody& body, Values& values) {
  GrammarExpectation sum;
  for (const GrammarPart& part : body) {
    sum.characters += static_cast<double>(part.characters);
    if (part.rule < 0) continue;
    std::size_t none = kNotDrawn;
    std::size_t& value = part.variable < 0 ? none : values[static_cast<std::size_t>(part.variable)];
    const std::size_t known = value, all = grammar.rules[static_cast<std::size_t>(part.rule)].alternatives.size();
    const std::size_t first = known == kNotDrawn ? 0 : known, count = known == kNotDrawn ? all : 1;
    if (part.draws) sum.nats += std::log(static_cast<double>(count));
    for (std::size_t i = first; i < first + count; ++i) {
      value = i;
      const GrammarExpectation e =
          expect(grammar, alternative_of(grammar, part, i)[static_cast<std::size_t>(part.field)], values);
      sum.nats += e.nats / static_cast<double>(count);
      sum.characters += e.characters / static_cast<double>(count);
    }
    value = known;
  }
  return sum;
}

}  // namespace

std::size_t derive_text(const Grammar& grammar, const RandomStream& stream, std::string& text) {
  Derivation derivation{grammar, stream, text};
  derivation.derive({GrammarPart::draw(0)});
  return derivation.characters;
}

GrammarExpectation expectation(const Grammar& grammar) {
  Values values(grammar.variables.size(), kNotDrawn);
  return expect(grammar, {GrammarPart::draw(0)}, values);
}

}  // namespace maki
