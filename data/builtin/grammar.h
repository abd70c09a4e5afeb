// A probabilistic context-free grammar with memory. Texts are generated, and their exact entropy is computed, from the
// same rules.
//
// Notation (data/builtin/stories_en.txt is an example):
//   # a comment
//   [weather]                    a rule: every line below it is one alternative; all are equally likely
//   It was raining. | It was hot.     " | " separates short alternatives on one line
//   [child: name he]             a rule with two fields, which its lines separate by " / "; all alternatives on a line
//   Mia | Ella / she             share the fields after the first, in which @ stands for the first field
//   {weather}                    draws an alternative and inserts its text
//   {hero=child.name}            draws a child, remembers it as `hero`, and inserts its name
//   {hero.he}                    inserts another field of the remembered child, without a further choice
// A reference without a field means the first one. A line that begins with two spaces continues the alternative above
// it on a new line of text; empty lines mean nothing. The first rule is the root. No field of a rule may contain
// itself. In every text, a variable is drawn at most once, before it is used, and always from the same rule.
//
// Entropy: a derivation is a sequence of independent choices, each uniform over the n alternatives of a rule, so its
// information is the sum of their ln n. If no two derivations give the same text (which the tests prove), this is also
// the information of the text. By the renewal theorem, a sequence of independent texts has E[information] /
// E[characters] nats per character (Cover and Thomas, "Elements of Information Theory", chapter 4).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/philox.h"

namespace maki {

/// A part of an alternative: literal text (rule < 0), or a reference to a field of an alternative of a rule. The
/// alternative is drawn, or drawn and remembered in a variable, or taken from a variable.
struct GrammarPart {
  std::string text;
  std::size_t characters = 0;  ///< code points of `text`
  int rule = -1;
  int field = 0;
  int variable = -1;   ///< the variable that remembers the alternative, or -1
  bool draws = false;  ///< whether an alternative is drawn here

  /// A reference that draws from a rule and inserts its first field.
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
  std::vector<std::string> fields;                     ///< at least one; a plain rule has one with an empty name
  std::vector<std::vector<GrammarBody>> alternatives;  ///< [alternative][field]
};

struct Grammar {
  std::vector<GrammarRule> rules;  ///< the first is the root
  std::vector<std::string> variables;
};

/// Expected values over the texts of a grammar.
struct GrammarExpectation {
  double nats = 0;        ///< information
  double characters = 0;  ///< length in code points
};

/// Parses the notation. Throws Error, quoting the line, for a syntax error and, with the name, for a rule that is
/// unknown, defined twice, empty, unreachable or contains itself, for a field that its rule lacks, and for a variable
/// that is used before it is drawn, drawn twice, drawn from two rules or named like a rule; and for more than 64
/// variables.
Grammar parse_grammar(std::string_view notation);

/// Generates a text and appends it to `text`; the k-th choice uses RandomStream::below() at index k. Returns the number
/// of code points appended.
std::size_t derive_text(const Grammar& grammar, const RandomStream& stream, std::string& text);

/// The exact expected values, computed by one traversal of the rules.
GrammarExpectation expectation(const Grammar& grammar);

}  // namespace maki
