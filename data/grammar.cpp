// Reading the notation of grammar.h, telling a text, and the expectation of its information and length.
#include "data/grammar.h"

#include <algorithm>
#include <bitset>
#include <cmath>

#include "autograd/core/check.h"

namespace maki {
namespace {

constexpr std::size_t kMaxVariables = 64;
constexpr std::string_view kNextLine = "  ";

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = text.find(separator, at);
    pieces.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? end : end + separator.size();
  }
  return pieces;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// The lines that stand under one header, before references are resolved.
struct RawRule {
  std::vector<std::string> lines;
};

class Reader {
 public:
  Grammar read(std::string_view notation) {
    split_rules(notation);
    find_variables();
    for (std::size_t rule = 0; rule < raw_.size(); ++rule)
      for (const std::string& line : raw_[rule].lines) read_alternatives(grammar_.rules[rule], line);
    return std::move(grammar_);
  }

 private:
  void split_rules(std::string_view notation) {
    for (const std::string& line : split(notation, "\n")) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] == '[') {
        check(line.back() == ']', "grammar: a header ends with ]; got \"{}\"", line);
        const std::vector<std::string> header = split(std::string_view(line).substr(1, line.size() - 2), ": ");
        check(find_rule(header[0]) < 0, "grammar: rule {} stands here twice", header[0]);
        grammar_.rules.push_back(
            {header[0], header.size() > 1 ? split(header[1], " ") : std::vector<std::string>{""}, {}});
        raw_.emplace_back();
        continue;
      }
      check(!raw_.empty(), "grammar: a header comes before the first alternative; got \"{}\"", line);
      std::vector<std::string>& lines = raw_.back().lines;
      if (line.starts_with(kNextLine)) {
        check(!lines.empty(), "grammar: nothing to continue at \"{}\"", line);
        lines.back() += '\n' + line.substr(kNextLine.size());
      } else {
        lines.push_back(line);
      }
    }
    check(!raw_.empty(), "grammar: it has no rules");
    for (std::size_t rule = 0; rule < raw_.size(); ++rule)
      check(!raw_[rule].lines.empty(), "grammar: rule {} has no alternatives", grammar_.rules[rule].name);
  }

  void find_variables() {
    for (const RawRule& raw : raw_)
      for (const std::string& line : raw.lines)
        for (std::size_t at = 0; (at = line.find('{', at)) != std::string::npos; ++at) {
          const std::string inside = line.substr(at + 1, line.find('}', at) - at - 1);
          const std::size_t equals = inside.find('=');
          if (equals == std::string::npos) continue;
          const std::string name = inside.substr(0, equals);
          const int rule = rule_named(split(inside.substr(equals + 1), ".")[0], line);
          check(find_rule(name) < 0, "grammar: {} is the name of a rule and of a variable", name);
          const int variable = find_variable(name);
          if (variable < 0) {
            grammar_.variables.push_back(name);
            rule_of_.push_back(rule);
          } else {
            check(rule_of_[static_cast<std::size_t>(variable)] == rule, "grammar: {} is drawn from two rules", name);
          }
        }
    check(grammar_.variables.size() <= kMaxVariables, "grammar: at most {} variables; got {}", kMaxVariables,
          grammar_.variables.size());
  }

  void read_alternatives(GrammarRule& rule, const std::string& line) const {
    std::vector<std::string> fields = {line};
    if (rule.fields.size() > 1) fields = split(line, " / ");
    check(fields.size() == rule.fields.size(), "grammar: rule {} has {} fields; got {} in \"{}\"", rule.name,
          rule.fields.size(), fields.size(), line);
    for (const std::string& first : split(fields[0], " | ")) {
      std::vector<GrammarBody> alternative = {read_body(first, line)};
      for (std::size_t i = 1; i < fields.size(); ++i)
        alternative.push_back(read_body(replace_all(fields[i], "@", first), line));
      rule.alternatives.push_back(std::move(alternative));
    }
  }

  GrammarBody read_body(const std::string& text, const std::string& line) const {
    GrammarBody body;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '{') {
        GrammarPart literal;
        literal.text = text.substr(at, text.find('{', at) - at);
        check(literal.text.find('}') == std::string::npos, "grammar: }} without {{ in \"{}\"", line);
        literal.characters = code_points(literal.text);
        at += literal.text.size();
        body.push_back(std::move(literal));
      } else {
        const std::size_t end = text.find('}', at);
        check(end != std::string::npos, "grammar: {{ without }} in \"{}\"", line);
        body.push_back(read_reference(text.substr(at + 1, end - at - 1), line));
        at = end + 1;
      }
    }
    check(!body.empty(), "grammar: an empty alternative in \"{}\"", line);
    return body;
  }

  GrammarPart read_reference(const std::string& inside, const std::string& line) const {
    const std::size_t equals = inside.find('=');
    const std::vector<std::string> path = split(equals == std::string::npos ? inside : inside.substr(equals + 1), ".");
    GrammarPart part;
    part.variable = find_variable(equals == std::string::npos ? path[0] : inside.substr(0, equals));
    part.draws = equals != std::string::npos || part.variable < 0;
    part.rule = part.draws ? rule_named(path[0], line) : rule_of_[static_cast<std::size_t>(part.variable)];
    const GrammarRule& rule = grammar_.rules[static_cast<std::size_t>(part.rule)];
    const auto field = std::find(rule.fields.begin(), rule.fields.end(), path.size() > 1 ? path[1] : "");
    check(field != rule.fields.end(), "grammar: rule {} has no field \"{}\"; got {{{}}} in \"{}\"", rule.name,
          path.size() > 1 ? path[1] : "", inside, line);
    part.field = static_cast<int>(field - rule.fields.begin());
    return part;
  }

  int find_rule(const std::string& name) const {
    for (std::size_t i = 0; i < grammar_.rules.size(); ++i)
      if (grammar_.rules[i].name == name) return static_cast<int>(i);
    return -1;
  }

  int rule_named(const std::string& name, const std::string& line) const {
    const int rule = find_rule(name);
    check(rule >= 0, "grammar: there is no rule or variable {}; got \"{}\"", name, line);
    return rule;
  }

  int find_variable(const std::string& name) const {
    const auto found = std::find(grammar_.variables.begin(), grammar_.variables.end(), name);
    return found == grammar_.variables.end() ? -1 : static_cast<int>(found - grammar_.variables.begin());
  }

  Grammar grammar_;
  std::vector<RawRule> raw_;
  std::vector<int> rule_of_;  // of each variable
};

// The root as a part to be drawn, so that its own choice counts like every other.
GrammarBody root() {
  GrammarPart part;
  part.rule = 0;
  part.draws = true;
  return {part};
}

/// Follows every path from the root: no rule inside itself, every variable drawn once and before its first use.
class Validator {
 public:
  explicit Validator(const Grammar& grammar) : grammar_(grammar), inside_(grammar.rules.size()), reached_(inside_) {}

  void validate() {
    Drawn drawn;
    walk(root(), drawn);
    for (std::size_t i = 0; i < reached_.size(); ++i)
      check(reached_[i], "grammar: nothing leads to rule {}", grammar_.rules[i].name);
  }

 private:
  struct Drawn {
    std::bitset<kMaxVariables> surely, perhaps;
  };

  void walk(const GrammarBody& body, Drawn& drawn) {
    for (const GrammarPart& part : body) {
      if (part.rule < 0) continue;
      const auto index = static_cast<std::size_t>(part.rule);
      const GrammarRule& rule = grammar_.rules[index];
      check(!inside_[index], "grammar: rule {} contains itself", rule.name);
      if (part.variable >= 0) {
        const auto variable = static_cast<std::size_t>(part.variable);
        const std::string& name = grammar_.variables[variable];
        check(!part.draws || !drawn.perhaps[variable], "grammar: {} is drawn twice, in rule {}", name, rule.name);
        check(part.draws || drawn.surely[variable], "grammar: {} is used before it is drawn, for {}", name, rule.name);
        drawn.surely.set(variable);
        drawn.perhaps.set(variable);
      }
      inside_[index] = reached_[index] = true;
      Drawn after{std::bitset<kMaxVariables>().set(), {}};
      for (const std::vector<GrammarBody>& fields : rule.alternatives) {
        Drawn own = drawn;
        walk(fields[static_cast<std::size_t>(part.field)], own);
        after.surely &= own.surely;
        after.perhaps |= own.perhaps;
      }
      drawn = after;
      inside_[index] = false;
    }
  }

  const Grammar& grammar_;
  std::vector<char> inside_, reached_;
};

const std::vector<GrammarBody>& alternative_of(const Grammar& grammar, const GrammarPart& part, std::size_t index) {
  return grammar.rules[static_cast<std::size_t>(part.rule)].alternatives[index];
}

constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
using Values = std::vector<std::size_t>;  // the alternative that each variable remembers

struct Teller {
  const Grammar& grammar;
  const RandomStream& stream;
  std::string& text;
  Values values = Values(grammar.variables.size(), kUnknown);
  std::uint64_t choices = 0;
  std::size_t characters = 0;

  void tell(const GrammarBody& body) {
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
      tell(alternative_of(grammar, part, index)[static_cast<std::size_t>(part.field)]);
    }
  }
};

// Over a body both are sums over its parts, for expectations add whatever depends on what:
//   E[literal]     = (0, its length)
//   E[draw of R]   = (ln n, 0) + Σ_i E[alternative i] / n
//   E[use of v]    = Σ_i E[alternative i | v = i] / n
// The last line holds because every choice is independent of every other: reaching a use says nothing about the value,
// unless it lies within a field of v itself, where `values` knows it.
GrammarExpectation expect(const Grammar& grammar, const GrammarBody& body, Values& values) {
  GrammarExpectation sum;
  for (const GrammarPart& part : body) {
    sum.characters += static_cast<double>(part.characters);
    if (part.rule < 0) continue;
    std::size_t none = kUnknown;
    std::size_t& value = part.variable < 0 ? none : values[static_cast<std::size_t>(part.variable)];
    const std::size_t known = value, all = grammar.rules[static_cast<std::size_t>(part.rule)].alternatives.size();
    const std::size_t first = known == kUnknown ? 0 : known, count = known == kUnknown ? all : 1;
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

Grammar parse_grammar(std::string_view notation) {
  Grammar grammar = Reader().read(notation);
  Validator(grammar).validate();
  return grammar;
}

std::size_t tell(const Grammar& grammar, const RandomStream& stream, std::string& text) {
  Teller teller{grammar, stream, text};
  teller.tell(root());
  return teller.characters;
}

GrammarExpectation expectation(const Grammar& grammar) {
  Values values(grammar.variables.size(), kUnknown);
  return expect(grammar, root(), values);
}

}  // namespace maki
