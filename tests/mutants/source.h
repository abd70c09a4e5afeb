// What scripts/mutate.sh has to know about C++: tokens, and where functions are.
//
// Relies on clang-format: a binary operator has a space on both sides, so that `a < b` is a comparison, and `f<T>` and
// `const T* p` are not mistaken for one or for a product.
#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using Words = std::set<std::string_view>;

enum class Kind { word, number, text, symbol };

struct Token {
  Kind kind;
  std::string_view text;
  std::size_t begin, end;  // bytes of the source
  bool spaced = false;     // white space on both sides
  bool attached = false;   // no white space before it
  std::size_t mate = 0;    // of a bracket: its partner
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The tokens of a source, without comments and preprocessor lines.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  std::vector<Token> tokens() {
    while (skip_blank(), at_ < source_.size()) {
      const std::size_t begin = at_;
      const Kind kind = next();
      const auto blank = [&](std::size_t i) { return i >= source_.size() || source_[i] == ' ' || source_[i] == '\n'; };
      const bool before = begin == 0 || blank(begin - 1);
      tokens_.push_back({kind, source_.substr(begin, at_ - begin), begin, at_, before && blank(at_), !before});
    }
    match();
    return std::move(tokens_);
  }

 private:
  bool has(std::string_view words) const { return source_.substr(at_).starts_with(words); }
  void skip_past(std::string_view end) {
    at_ = std::min(source_.find(end, at_), source_.size() - end.size()) + end.size();
  }

  void skip_blank() {
    for (bool line_begins = at_ == 0; at_ < source_.size();) {
      if (std::isspace(static_cast<unsigned char>(source_[at_])) != 0) {
        line_begins |= source_[at_++] == '\n';
      } else if (has("//")) {
        skip_past("\n");
        line_begins = true;
      } else if (has("/*")) {
        skip_past("*/");
      } else if (line_begins && has("#")) {
        do skip_past("\n");
        while (source_[at_ - 2] == '\\');
      } else {
        return;
      }
    }
  }

  Kind next() {
    const char c = source_[at_];
    if (has("R\"")) {
      const std::size_t open = source_.find('(', at_);
      skip_past(")" + std::string(source_.substr(at_ + 2, open - at_ - 2)) + "\"");
      return Kind::text;
    }
    if (c == '"' || c == '\'') {
      for (++at_; at_ < source_.size() && source_[at_] != c; ++at_) at_ += source_[at_] == '\\' ? 1 : 0;
      ++at_;
      return Kind::text;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      for (; is_word(source_[at_]) || source_[at_] == '.' || source_[at_] == '\''; ++at_) {
        const bool exponent = !source_.substr(at_ - 1).starts_with("0x") && (has("e-") || has("e+"));
        at_ += exponent ? 1 : 0;
      }
      return Kind::number;
    }
    if (is_word(c)) {
      while (at_ < source_.size() && is_word(source_[at_])) ++at_;
      return Kind::word;
    }
    static const std::vector<std::string_view> kSymbols = {"<<=", "<=>", "...", "->", "::", "<<", "<=",
                                                           ">=",  "==",  "!=",  "&&", "||", "++", "--",
                                                           "+=",  "-=",  "*=",  "/=", "%="};
    const auto found = std::ranges::find_if(kSymbols, [&](std::string_view symbol) { return has(symbol); });
    at_ += found != kSymbols.end() ? found->size() : 1;
    return Kind::symbol;
  }

  // Finds the partners of brackets; those of a template are the ones without spaces.
  void match() {
    std::vector<std::size_t> open;
    const auto is = [&](std::size_t i, std::string_view text) { return tokens_[i].text == text; };
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool follows_name = i > 0 && tokens_[i - 1].kind == Kind::word && !is(i - 1, "operator");
      if (is(i, "(") || is(i, "[") || is(i, "{") || (is(i, "<") && !tokens_[i].spaced && follows_name)) {
        open.push_back(i);
      } else if (is(i, ")") || is(i, "]") || is(i, "}") || (is(i, ">") && !tokens_[i].spaced)) {
        if (!is(i, ">")) {
          while (!open.empty() && is(open.back(), "<")) open.pop_back();
        }
        if (open.empty() || is(open.back(), "<") != is(i, ">")) continue;
        tokens_[i].mate = open.back();
        tokens_[open.back()].mate = i;
        open.pop_back();
      }
    }
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

struct Function {
  std::string name;
  std::size_t begin, end;  // its braces
  bool returns_nothing;
};

// Finds the functions with a body in namespaces and classes. Lambdas are part of the function around them.
class FunctionFinder {
 public:
  explicit FunctionFinder(const std::vector<Token>& tokens) : tokens_(tokens) { walk(0, tokens.size(), ""); }
  const std::vector<Function>& functions() const { return functions_; }

 private:
  bool is(std::size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].text == text; }

  void walk(std::size_t begin, std::size_t end, const std::string& scope) {
    std::size_t head = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (is(i, "(") || is(i, "[") || (is(i, "<") && tokens_[i].mate > i)) {
        if (is(i, "<") && is(head, "template") && i == head + 1) head = tokens_[i].mate + 1;
        i = std::max(i, tokens_[i].mate);
      } else if (is(i, ";") || (is(i, ":") && Words{"public", "private", "protected"}.contains(tokens_[i - 1].text))) {
        head = i + 1;
      } else if (is(i, "{")) {
        if (open_brace(head, i, scope)) head = tokens_[i].mate + 1;
        i = tokens_[i].mate;
      }
    }
  }

  // Whether the declaration ends with the brace that this one opens.
  bool open_brace(std::size_t head, std::size_t brace, const std::string& scope) {
    std::size_t parameters = head;
    while (parameters < brace && !is(parameters, "(")) {
      parameters =
          is(parameters, "<") && tokens_[parameters].mate > parameters ? tokens_[parameters].mate + 1 : parameters + 1;
    }
    if (parameters == brace) {
      if (is(head, "namespace")) walk(brace + 1, tokens_[brace].mate, scope);
      if (is(head, "class") || is(head, "struct")) {
        walk(brace + 1, tokens_[brace].mate, scope + std::string(tokens_[head + 1].text) + "::");
        return false;
      }
      return is(head, "namespace");
    }
    if (!ends_signature(parameters, brace)) return false;
    std::size_t name = parameters - 1;
    std::string full;
    if (is(name, "operator")) full = "operator()";  // the parameters are the second pair of parentheses
    while (full.empty() && tokens_[name].kind == Kind::symbol && name > head) --name;
    if (full.empty()) full = tokens_[name].text;
    while (name > head + 1 && is(name - 1, "::")) full = std::string(tokens_[name -= 2].text) + "::" + full;
    functions_.push_back({scope + full, brace, tokens_[brace].mate, name > head && is(name - 1, "void")});
    return true;
  }

  // Whether the brace opens a body, and neither an initial value nor a member in the initializers of a constructor.
  bool ends_signature(std::size_t parameters, std::size_t brace) const {
    const Token& last = tokens_[brace - 1];
    const auto has = [&](std::string_view text) {
      return std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(parameters),
                         tokens_.begin() + static_cast<std::ptrdiff_t>(brace),
                         [&](const Token& t) { return t.text == text; });
    };
    for (std::size_t i = parameters; i > 0 && !is(i, ";") && !is(i, "}") && !is(i, "{"); --i) {
      if (is(i, "=") && tokens_[i].spaced) return false;
    }
    if (last.text == ")" || last.text == "}" || has("->") || has("requires")) return true;
    return Words{"const", "noexcept", "override", "final", "HWY_ATTR"}.contains(last.text);
  }

  const std::vector<Token>& tokens_;
  std::vector<Function> functions_;
};
