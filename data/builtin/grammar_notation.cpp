// Parses and validates the notation that is described in grammar.h.
#include <algorithm>
#include <bitset>
#include <set>
#include <utility>

#include "autograd/core/check.h"
#include "data/builtin/grammar.h"

namespace maki {
namespace {

constexpr std::size_t kMaxVariables = 64;  // more than any grammar here has; sets of them are bits
constexpr std::string_view kContinuationPrefix = "  ";

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

class Reader {
 public:
  Grammar read(std::string_view notation) {
    split_rules(notation);
    find_variables();
    for (std::size_t rule = 0; rule < raw_.size(); ++rule)
      for (const std::string& line : raw_[rule]) read_alternatives(grammar_.rules[rule], line);
    return std::move(grammar_);
  }

 private:
  void split_rules(std::string_view notation) {
    for (const std::string& line : split(notation, "\n")) {
      if (line.empty() || line[0] == '#') continue;
      if (line[0] == '[') {
        check(line.back() == ']', "grammar: a rule header must end with ]; got \"{}\"", line);
        const std::vector<std::string> header = split(std::string_view(line).substr(1, line.size() - 2), ": ");
        check(find_rule(header[0]) < 0, "grammar: rule {} is defined twice", header[0]);
        grammar_.rules.push_back(
            {header[0], header.size() > 1 ? split(header[1], " ") : std::vector<std::string>{""}, {}});
        raw_.emplace_back();
        continue;
      }
      check(!raw_.empty(), "grammar: a rule header must come before the first alternative; got \"{}\"", line);
      std::vector<std::string>& lines = raw_.back();
      if (line.starts_with(kContinuationPrefix)) {
        check(!lines.empty(), "grammar: there is no alternative to continue at \"{}\"", line);
        lines.back() += '\n' + line.substr(kContinuationPrefix.size());
      } else {
        lines.push_back(line);
      }
    }
    check(!raw_.empty(), "grammar: there are no rules");
    for (std::size_t rule = 0; rule < raw_.size(); ++rule)
      check(!raw_[rule].empty(), "grammar: rule {} has no alternatives", grammar_.rules[rule].name);
  }

  void find_variables() {
    for (const std::vector<std::string>& lines : raw_)
      for (const std::string& line : lines)
        for (std::size_t at = 0; (at = line.find('{', at)) != std::string::npos; ++at) {
          const std::string inside = line.substr(at + 1, line.find('}', at) - at - 1);
          const std::size_t equals = inside.find('=');
          if (equals == std::string::npos) continue;
          const std::string name = inside.substr(0, equals);
          const int rule = rule_named(split(inside.substr(equals + 1), ".")[0], line);
          check(find_rule(name) < 0, "grammar: {} is the name of both a rule and a variable", name);
          const int variable = find_variable(name);
          if (variable < 0) {
            grammar_.variables.push_back(name);
            rule_of_.push_back(rule);
          } else {
            check(rule_of_[static_cast<std::size_t>(variable)] == rule, "grammar: variable {} is drawn from two rules",
                  name);
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
    for (std::size_t i = 1; i < fields.size(); ++i)
      check(fields[i].find(" | ") == std::string::npos,
            "grammar: only the first field may list alternatives; got \"{}\"", line);
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
    check(!body.empty(), "grammar: there is an empty alternative in \"{}\"", line);
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
    const auto& names = rule.fields;
    const auto field = path.size() > 1 ? std::find(names.begin(), names.end(), path.back()) : names.begin();
    check(field != names.end(), "grammar: rule {} has no field {}; got {{{}}} in \"{}\"", rule.name, path.back(),
          inside, line);
    part.field = static_cast<int>(field - names.begin());
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
  std::vector<std::vector<std::string>> raw_;  // the lines of each rule, before references are resolved
  std::vector<int> rule_of_;                   // for each variable the rule that it is drawn from
};

// Follows every path from the root and checks that no rule contains itself, that every rule is reached, and that on
// each path a variable is drawn at most once, and before it is used.
class Validator {
 public:
  explicit Validator(const Grammar& grammar) : grammar_(grammar), reached_(grammar.rules.size()) {}

  void validate() {
    Drawn drawn;
    walk({GrammarPart::draw(0)}, drawn);
    for (std::size_t i = 0; i < reached_.size(); ++i)
      check(reached_[i], "grammar: rule {} is unreachable", grammar_.rules[i].name);
  }

 private:
  struct Drawn {
    std::bitset<kMaxVariables> surely, perhaps;  // variables drawn on every path, and on at least one
  };

  void walk(const GrammarBody& body, Drawn& drawn) {
    for (const GrammarPart& part : body) {
      if (part.rule < 0) continue;
      const auto index = static_cast<std::size_t>(part.rule);
      const GrammarRule& rule = grammar_.rules[index];
      const bool entered = inside_.emplace(part.rule, part.field).second;
      check(entered, "grammar: rule {} contains itself", rule.name);
      if (part.variable >= 0) {
        const auto variable = static_cast<std::size_t>(part.variable);
        const std::string& name = grammar_.variables[variable];
        check(!part.draws || !drawn.perhaps[variable], "grammar: variable {} is drawn twice, from rule {}", name,
              rule.name);
        check(part.draws || drawn.surely[variable], "grammar: variable {} is used before it is drawn from rule {}",
              name, rule.name);
        drawn.surely.set(variable);
        drawn.perhaps.set(variable);
      }
      reached_[index] = true;
      Drawn after{std::bitset<kMaxVariables>().set(), {}};
      for (const std::vector<GrammarBody>& fields : rule.alternatives) {
        Drawn own = drawn;
        walk(fields[static_cast<std::size_t>(part.field)], own);
        after.surely &= own.surely;
        after.perhaps |= own.perhaps;
      }
      drawn = after;
      inside_.erase({part.rule, part.field});
    }
  }

  const Grammar& grammar_;
  std::set<std::pair<int, int>> inside_;  // (rule, field)
  std::vector<char> reached_;
};

}  // namespace

Grammar parse_grammar(std::string_view notation) {
  Grammar grammar = Reader().read(notation);
  Validator(grammar).validate();
  return grammar;
}

}  // namespace maki
