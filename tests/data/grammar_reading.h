// Two proofs that a grammar is unambiguous, so that the information in a text is that of its only derivation:
// - Readings finds every derivation of one text by trying all alternatives everywhere.
// - undecided() finds draws whose alternatives the following text does not distinguish. Without any, every text has
//   exactly one derivation.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "data/builtin/grammar.h"

namespace maki {

constexpr std::size_t kNotDrawn = static_cast<std::size_t>(-1);
using DrawnValues = std::vector<std::size_t>;

/// The rest of a derivation: the parts of `body` from `at` on (without the first `offset` bytes), then `next`.
struct Rest {
  const GrammarBody* body;
  std::size_t at = 0;
  std::size_t offset = 0;
  const Rest* next = nullptr;

  static Rest skip_ended(Rest rest) {
    while (rest.at == rest.body->size() && rest.next) rest = *rest.next;
    return rest;
  }
  bool ended() const { return at == body->size(); }
  const GrammarPart& front() const { return (*body)[at]; }
  Rest after_front() const { return {body, at + 1, 0, next}; }
};

inline const std::vector<std::vector<GrammarBody>>& alternatives_of(const Grammar& grammar, const GrammarPart& part) {
  return grammar.rules[static_cast<std::size_t>(part.rule)].alternatives;
}

/// All derivations of one text.
class Readings {
 public:
  std::size_t count = 0;
  double nats = 0;  ///< −ln p of the last one found

  Readings(const Grammar& grammar, std::string_view text)
      : grammar_(grammar), text_(text), values_(grammar.variables.size(), kNotDrawn) {
    for (const std::vector<GrammarBody>& fields : grammar.rules[0].alternatives)
      read({&fields[0]}, 0, std::log(static_cast<double>(grammar.rules[0].alternatives.size())));
  }

 private:
  void read(Rest rest, std::size_t at, double sum) {
    rest = Rest::skip_ended(rest);
    if (rest.ended()) {
      if (at != text_.size()) return;
      ++count;
      nats = sum;
      return;
    }
    const GrammarPart& part = rest.front();
    const Rest after = rest.after_front();
    if (part.rule < 0) {
      if (text_.substr(at).starts_with(part.text)) read(after, at + part.text.size(), sum);
      return;
    }
    const auto& alternatives = alternatives_of(grammar_, part);
    std::size_t none = kNotDrawn;
    std::size_t& value = part.variable < 0 ? none : values_[static_cast<std::size_t>(part.variable)];
    const std::size_t before = value;
    if (part.draws) sum += std::log(static_cast<double>(alternatives.size()));
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      if (!part.draws && i != before) continue;
      value = i;
      read({&alternatives[i][static_cast<std::size_t>(part.field)], 0, 0, &after}, at, sum);
    }
    value = before;
  }

  const Grammar& grammar_;
  std::string_view text_;
  DrawnValues values_;
};

/// Decides whether two continuations always differ before either ends, whatever is drawn in them.
class Distinguisher {
 public:
  explicit Distinguisher(const Grammar& grammar) : grammar_(grammar), a_(grammar.variables.size(), kNotDrawn), b_(a_) {}

  bool apart(Rest a, Rest b) {
    a = Rest::skip_ended(a);
    b = Rest::skip_ended(b);
    if (a.ended() || b.ended()) return false;
    const GrammarPart &front_a = a.front(), &front_b = b.front();
    // If both draw from the same rule, they either draw different alternatives, which the check of that rule
    // distinguishes, or they continue after the same text with the same values.
    if (front_a.rule >= 0 && front_a == front_b && remembered(a_, front_a) == remembered(b_, front_b))
      return apart(a.after_front(), b.after_front());
    // Expands the one with fewer alternatives first: a rule that leads to others often leads to the rule of the other
    // one.
    if (front_a.rule >= 0 && (front_b.rule < 0 || ways(front_a) <= ways(front_b))) return apart_for_all(a, a_, b, b_);
    if (front_b.rule >= 0) return apart_for_all(b, b_, a, a_);
    const std::string_view text_a = std::string_view(front_a.text).substr(a.offset);
    const std::string_view text_b = std::string_view(front_b.text).substr(b.offset);
    const std::size_t shared = std::min(text_a.size(), text_b.size());
    if (text_a.substr(0, shared) != text_b.substr(0, shared)) return true;
    return apart(forward(a, text_a.size(), shared), forward(b, text_b.size(), shared));
  }

 private:
  static Rest forward(const Rest& rest, std::size_t left, std::size_t shared) {
    return left == shared ? rest.after_front() : Rest{rest.body, rest.at, rest.offset + shared, rest.next};
  }

  std::size_t ways(const GrammarPart& part) const { return alternatives_of(grammar_, part).size(); }

  static std::size_t remembered(const DrawnValues& values, const GrammarPart& part) {
    return part.variable < 0 || part.draws ? kNotDrawn : values[static_cast<std::size_t>(part.variable)];
  }

  // A variable that was drawn before the two continuations parted has the same value in both. One drawn later belongs
  // to one continuation.
  bool apart_for_all(const Rest& a, DrawnValues& values_a, const Rest& b, DrawnValues& values_b) {
    const GrammarPart& part = a.front();
    const Rest after = a.after_front();
    const auto& alternatives = alternatives_of(grammar_, part);
    const std::size_t known = remembered(values_a, part);
    std::size_t none = kNotDrawn;
    const auto variable = static_cast<std::size_t>(part.variable);
    std::size_t& value_a = part.variable < 0 ? none : values_a[variable];
    std::size_t& value_b = part.variable < 0 || part.draws || known != kNotDrawn ? none : values_b[variable];
    const std::size_t before_a = value_a, before_b = value_b;
    bool all = true;
    for (std::size_t i = 0; i < alternatives.size() && all; ++i) {
      if (known != kNotDrawn && known != i) continue;
      value_a = value_b = i;
      const Rest inside{&alternatives[i][static_cast<std::size_t>(part.field)], 0, 0, &after};
      all = &values_a == &a_ ? apart(inside, b) : apart(b, inside);
    }
    value_a = before_a;
    value_b = before_b;
    return all;
  }

  const Grammar& grammar_;
  DrawnValues a_, b_;
};

/// "rule.field: one alternative / another" for every pair that a reader could confuse, and the number of pairs
/// compared.
struct Undecided {
  std::vector<std::string> pairs;
  std::size_t compared = 0;
};

inline Undecided undecided(const Grammar& grammar) {
  std::vector<std::vector<char>> drawn;
  for (const GrammarRule& rule : grammar.rules) drawn.emplace_back(rule.fields.size());
  drawn[0][0] = true;
  for (const GrammarRule& rule : grammar.rules)
    for (const auto& fields : rule.alternatives)
      for (const GrammarBody& body : fields)
        for (const GrammarPart& part : body)
          if (part.draws) drawn[static_cast<std::size_t>(part.rule)][static_cast<std::size_t>(part.field)] = true;
  Undecided result;
  for (std::size_t r = 0; r < grammar.rules.size(); ++r)
    for (std::size_t f = 0; f < drawn[r].size(); ++f) {
      const auto& alternatives = grammar.rules[r].alternatives;
      for (std::size_t j = 0; drawn[r][f] && j < alternatives.size(); ++j)
        for (std::size_t i = 0; i < j; ++i, ++result.compared)
          if (!Distinguisher(grammar).apart({&alternatives[i][f]}, {&alternatives[j][f]}))
            result.pairs.push_back(grammar.rules[r].name + "." + grammar.rules[r].fields[f] + ": " +
                                   alternatives[i][f][0].text + " / " + alternatives[j][f][0].text + " (" +
                                   std::to_string(i) + ", " + std::to_string(j) + ")");
    }
  return result;
}

}  // namespace maki
