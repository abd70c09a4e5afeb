// A probabilistic context-free grammar with memory, in which texts and their exact entropy come from the same rules.
//
// Notation (data/stories_en.cpp is an example):
//   # a comment
//   [weather]                    a rule: every line below it is one alternative, and all are equally likely
//   It was raining. | It was hot.     " | " separates short alternatives that share a line
//   [child: name he]             a rule with several fields, separated by " / ": the alternatives that share a line
//   Mia | Ella / she             share the fields behind it; @ in those stands for the first field
//   {weather}                    draws an alternative and puts its text here
//   {hero=child.name}            draws a child, remembers it as `hero`, and puts its name here
//   {hero.he}                    a field of the child remembered: costs no further choice
// A reference that names no field means the first. A line that begins with two blanks continues the alternative above
// it on a new line of text. The first rule is the root. No field of a rule may contain itself. A variable is always
// drawn from the same rule, once, before it is used.
//
// Entropy: a derivation is a list of independent choices, each uniform over the n alternatives of a rule, so its
// information is the sum of their ln n. Where no two derivations give the same text (the tests prove it), that is the
// text's information too. Numbers of independent texts in a row have, by the renewal theorem, E[information] /
// E[characters] nats a character (Cover and Thomas, "Elements of Information Theory", chapter 4).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/philox.h"

namespace maki {

/// Literal text (rule < 0), or one field of an alternative of a rule: drawn anew, drawn and remembered, or remembered.
struct GrammarPart {
  std::string text;
  std::size_t characters = 0;  ///< code points of `text`
  int rule = -1;
  int field = 0;
  int variable = -1;  ///< the one that remembers the alternative; none: -1
  bool draws = false;

  static GrammarPart draw(int rule) {
    GrammarPart part;
    part.rule = rule;
    part.draws = true;
    return part;
  }
  bool operator==(const GrammarPart&) const = default;
};

using GrammarBody = std::vector<GrammarPart>;

struct GrammarRule {
  std::string name;
  std::vector<std::string> fields;                     ///< at least one; a plain rule has one without a name
  std::vector<std::vector<GrammarBody>> alternatives;  ///< [alternative][field]
};

struct Grammar {
  std::vector<GrammarRule> rules;  ///< the first is the root
  std::vector<std::string> variables;
};

/// What one text of a grammar has on average.
struct GrammarExpectation {
  double nats = 0;
  double characters = 0;
};

/// Reads the notation. Throws Error with the line for what it cannot read, and with the name for an unknown or empty
/// rule, a rule that contains itself, and a variable that is used before it is drawn, drawn twice or of two rules.
Grammar parse_grammar(std::string_view notation);

/// Appends the text that `stream` draws; the k-th choice reads index k of the stream. Returns its code points.
std::size_t tell(const Grammar& grammar, const RandomStream& stream, std::string& text);

/// The exact expectations over all texts, by one walk over the rules.
GrammarExpectation expectation(const Grammar& grammar);

}  // namespace maki
