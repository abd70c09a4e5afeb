// Lists the small faults that can be made in the functions of C++ sources, for scripts/mutate.sh:
//
//   mutants SEED FILE…
//
// One line per fault, tab-separated: rank, file, line, function, operator, offset and length of the bytes to replace,
// their replacement, and the changed line. The rank is a hash of the seed and of what the fault is, not of where it
// stands: the faults of lowest rank are a uniform sample, which changes little when the sources change.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "source.h"

namespace {

class Mutator {
 public:
  Mutator(std::string file, std::string source, std::string seed)
      : file_(std::move(file)),
        seed_(std::move(seed)),
        source_(std::move(source)),
        tokens_(Tokenizer(source_).tokens()) {}

  void list() {
    const FunctionFinder finder(tokens_);
    for (const Function& function : finder.functions()) {
      function_ = &function;
      if (function.returns_nothing) insert("return", function.begin, " return;");
      for (std::size_t i = function.begin + 1; i < function.end; ++i) i = mutate(i);
    }
  }

 private:
  const Token& at(std::size_t i) const { return tokens_[i]; }
  bool is(std::size_t i, std::string_view text) const { return at(i).text == text; }
  bool is_one_of(std::size_t i, const Words& words) const { return words.contains(at(i).text); }

  // Makes the faults that begin at a token; returns the last token that was dealt with.
  std::size_t mutate(std::size_t i) {
    if (is(i, "static_assert")) return at(i + 1).mate;
    if (is_cost(i)) return find(i + 1, {",", ";"}) - 1;
    if (is(i, "asm") || (is(i, "[") && is(i + 1, "["))) return enclosing_end(i + 1);
    // What is asked for ahead of time changes no result.
    if ((is(i, "hwy") && is(i + 2, "Prefetch")) || is(i, "__builtin_prefetch")) return enclosing_end(i);
    if (at(i).kind == Kind::text && is_message(i)) return enclosing_end(i) - 1;
    replace_symbol(i);
    logic(i);
    condition(i);
    operand(i);
    constant(i);
    arguments(i);
    statement(i);
    result(i);
    return i;
  }

  // Whether the text and the arguments after it are for people.
  bool is_message(std::size_t i) const {
    static const Words kPrint = {"check", "check_text", "fail",   "format",  "logic_error",
                                 "print", "refuse",     "reject", "require", "to_stderr"};
    if (!is_one_of(i - 1, {"(", ","})) return false;
    const std::size_t open = at(enclosing_end(i)).mate;
    if (open == 0) return false;
    std::size_t callee = open - 1;
    if (is(callee, ">")) callee = at(callee).mate - 1;
    return is_one_of(callee, kPrint);
  }

  // Whether what follows is the work of a piece of a parallel loop: it decides which thread does what, and no result.
  bool is_cost(std::size_t i) const {
    if (is(i, "work") && is(i + 1, "=")) return true;
    if (!is(i, ",")) return false;
    std::size_t open = i - 1;
    while (!is_one_of(open, {",", "(", "[", "{", ";"})) open = before_brackets(open) - 1;
    return is(open, "(") && is_one_of(open - 1, {"parallel_for", "parallel_ranges"});
  }

  // The first of these tokens that is not inside further brackets.
  std::size_t find(std::size_t i, const Words& words) const {
    while (!is_one_of(i, words)) i = std::max(i, at(i).mate) + 1;
    return i;
  }
  std::size_t enclosing_end(std::size_t i) const { return find(i, {")", "]", "}", ";"}); }
  std::size_t before_brackets(std::size_t i) const { return at(i).mate > 0 ? std::min(i, at(i).mate) : i; }

  void replace_symbol(std::size_t i) {
    static const std::map<std::string_view, std::pair<const char*, const char*>> kBinary = {
        {"<", {"comparison", "<="}}, {"<=", {"comparison", "<"}},  {">", {"comparison", ">="}},
        {">=", {"comparison", ">"}}, {"==", {"comparison", "!="}}, {"!=", {"comparison", "=="}},
        {"+", {"sign", "-"}},        {"-", {"sign", "+"}},         {"+=", {"sign", "-="}},
        {"-=", {"sign", "+="}}};
    static const std::map<std::string_view, const char*> kBounds = {
        {"min", "max"}, {"max", "min"}, {"Min", "Max"},         {"Max", "Min"},
        {"Add", "Sub"}, {"Sub", "Add"}, {"MulAdd", "NegMulAdd"}};
    if (const auto found = kBinary.find(at(i).text); found != kBinary.end() && at(i).spaced) {
      if (at(i - 1).kind != Kind::text && at(i + 1).kind != Kind::text)
        replace(found->second.first, i, i + 1, found->second.second);
    }
    const bool qualified = is(i - 1, "::") && is_one_of(i - 2, {"std", "hn", "ranges"});
    if (const auto found = kBounds.find(at(i).text); found != kBounds.end() && qualified) {
      replace(std::islower(at(i).text[0]) != 0 ? "bound" : "sign", i, i + 1, found->second);
    }
    const bool prefix = !at(i).spaced && at(i + 1).attached && !is_one_of(i - 1, {")", "]"});
    if (is(i, "-") && prefix) replace("sign", i, i + 1, "");
    if (is(i, "!") && prefix) replace("condition", i, i + 1, "");
  }

  // With parentheses where compilers ask for them.
  void logic(std::size_t i) {
    static const Words kBefore = {"(", "[", "{", ",", ";", "=", "?", ":", "||", "return", "<"};
    static const Words kAfter = {")", "]", "}", ",", ";", "?", ":", "||", ">"};
    if (!is_one_of(i, {"&&", "||"}) || !at(i).spaced) return;
    const auto compares = [&](std::size_t j) { return is_one_of(j, {"<", ">"}) && at(j).spaced; };
    std::size_t begin = before_brackets(i - 1), end = find(i + 1, kAfter);
    while (!is_one_of(begin - 1, kBefore) || compares(begin - 1)) begin = before_brackets(begin - 1);
    while (compares(end)) end = find(end + 1, kAfter);
    const std::string left = text(begin, i), right = text(i + 1, end);
    replace("logic", begin, end, is(i, "&&") ? "(" + left + ") || (" + right + ")" : "(" + left + " && " + right + ")");
  }

  void condition(std::size_t i) {
    if (is(i, "?") && at(i).spaced) {
      std::size_t colon = find(i + 1, {":"});
      while (!at(colon).spaced) colon = find(colon + 1, {":"});
      const std::size_t end = find(colon + 1, {")", "]", "}", ";", ",", ":"});
      replace("condition", i + 1, end, text(colon + 1, end) + " : " + text(i + 1, colon));
    }
    if (!is(i, "if") || !is(i + 1, "(")) return;
    const std::size_t end = at(i + 1).mate;
    const std::size_t initial = find(i + 2, {";", ")"});
    const std::size_t begin = initial < end ? initial + 1 : i + 2;
    if (find(begin, {"=", ")"}) < end) return;  // a declaration
    replace("condition", begin, end, "!(" + text(begin, end) + ")");
  }

  // Drops a factor or a summand.
  void operand(std::size_t i) {
    if (!is_one_of(i, {"+", "-", "*", "/", "%"}) || !at(i).spaced) return;
    const bool sum = is_one_of(i, {"+", "-"});
    std::size_t begin = operand_begin(i - 1), end = operand_end(i + 1);
    while (sum && is_one_of(end, {"*", "/", "%"}) && at(end).spaced) end = operand_end(end + 1);
    while (sum && is_one_of(begin - 1, {"*", "/", "%"}) && at(begin - 1).spaced) begin = operand_begin(begin - 2);
    if (at(begin).kind == Kind::text || at(end - 1).kind == Kind::text || end <= i + 1) return;
    replace("operand", begin, end, text(begin, i));
    if (is_one_of(i, {"+", "*"})) replace("operand", begin, end, text(i + 1, end));
  }

  // The token after the expression of names, calls, members and subscripts that begins here.
  std::size_t operand_end(std::size_t i) const {
    while (is_one_of(i, {"!", "-", "*", "&", "++", "--"}) && at(i + 1).attached) ++i;
    if (at(i).kind == Kind::symbol && !is(i, "(")) return i;
    i = std::max(i, at(i).mate) + 1;
    for (;;) {
      if (is_one_of(i, {"::", ".", "->"})) {
        i += 2;
      } else if (is_one_of(i, {"(", "[", "{", "<"}) && at(i).attached && at(i).mate > i) {
        i = at(i).mate + 1;
      } else {
        return is_one_of(i, {"++", "--"}) && at(i).attached ? i + 1 : i;
      }
    }
  }

  std::size_t operand_begin(std::size_t i) const {
    for (;;) {
      if (at(i).mate < i && at(i).mate > 0) i = at(i).mate;
      const bool bracket = is_one_of(i, {"(", "[", "{", "<"});
      if (is_one_of(i - 1, {"::", ".", "->"})) {
        i -= 2;
      } else if (bracket && at(i).attached && (at(i - 1).kind == Kind::word || is_one_of(i - 1, {")", "]", ">"}))) {
        --i;
      } else {
        return i;
      }
    }
  }

  // Makes a number or an index larger by one.
  void constant(std::size_t i) {
    if (at(i).kind == Kind::number) replace("constant", i, i + 1, "(" + std::string(at(i).text) + " + 1)");
    const bool subscript =
        is(i, "[") && at(i).attached && (at(i - 1).kind == Kind::word || is_one_of(i - 1, {")", "]"}));
    if (subscript && !is(i + 1, "]") && at(i + 1).kind != Kind::text) insert("index", at(i).mate - 1, " + 1");
  }

  // Swaps neighbouring arguments of a call.
  void arguments(std::size_t i) {
    static const Words kSymmetric = {"min", "max", "Min", "Max", "Add", "Mul", "swap", "if", "for", "while", "switch"};
    static const Words kSymmetricFactors = {"MulAdd", "MulSub", "NegMulAdd"};  // the first two arguments
    const bool call = is(i, "(") && at(i).attached && (at(i - 1).kind == Kind::word || is(i - 1, ">"));
    if (!call || is_one_of(i - 1, kSymmetric)) return;
    std::vector<std::size_t> ends = {i};  // the tokens around the arguments
    for (std::size_t j = i + 1; j <= at(i).mate; j = j == at(i).mate ? j + 1 : std::max(j, at(j).mate) + 1) {
      if (at(j).kind == Kind::text) break;
      if (is(j, ",") || j == at(i).mate) ends.push_back(j);
    }
    for (std::size_t k = is_one_of(i - 1, kSymmetricFactors) ? 1 : 0; k + 2 < ends.size(); ++k) {
      const std::string first = text(ends[k] + 1, ends[k + 1]), second = text(ends[k + 1] + 1, ends[k + 2]);
      if (first == second || (first + second).find('{') != std::string::npos) continue;
      replace("arguments", ends[k] + 1, ends[k + 2], second + ", " + first);
    }
  }

  // Drops a call or an assignment, or what follows `else`.
  void statement(std::size_t i) {
    if (is(i, "else") && !is(i + 1, "if")) {
      const std::size_t end = is(i + 1, "{") ? at(i + 1).mate : enclosing_end(i + 1);
      replace("else", i, end + 1, "");
    }
    static const Words kKeywords = {"return", "throw", "delete",   "case", "default",
                                    "using",  "break", "continue", "goto"};
    if (!is_one_of(i - 1, {"{", "}", ";", ")", "else", ":"}) || (is(i - 1, ":") && at(i - 1).spaced) ||
        at(i).attached || is_one_of(i, kKeywords))
      return;
    if (at(i).kind != Kind::word && !is(i, "*")) return;
    const std::size_t end = operand_end(i);
    const bool call = is(end, ";") && is(end - 1, ")");
    const bool assignment = is_one_of(end, {"=", "+=", "-=", "*=", "/=", "|", "&"}) && at(end).spaced;
    if (call || assignment) replace("statement", i, enclosing_end(end) + 1, "{}");
  }

  void result(std::size_t i) {
    if (!is(i, "return")) return;
    const std::size_t end = enclosing_end(i);
    const std::string value = text(i + 1, end);
    if (value == "false") return replace("return", i + 1, end, "true");
    if (value.empty() || Words{"*this", "{}", "0", "nullptr", "std::nullopt"}.contains(value)) return;
    replace("return", i + 1, end, "{}");
  }

  // Source of the tokens begin … end − 1, on one line.
  std::string text(std::size_t begin, std::size_t end) const {
    if (begin >= end) return "";
    std::string result;
    for (const char c : source_.substr(at(begin).begin, at(end - 1).end - at(begin).begin)) {
      const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
      if (!blank) result += c;
      if (blank && !result.ends_with(' ')) result += ' ';
    }
    return result;
  }

  void replace(const char* name, std::size_t begin, std::size_t end, const std::string& by) {
    report(name, at(begin).begin, at(end - 1).end, by);
  }
  void insert(const char* name, std::size_t after, const std::string& words) {
    report(name, at(after).end, at(after).end, words);
  }

  void report(const char* name, std::size_t begin, std::size_t end, const std::string& by) {
    if (source_.substr(begin, end - begin).find("//") != std::string::npos) return;
    const std::size_t line = source_.rfind('\n', begin - 1) + 1;
    std::string changed = source_.substr(line, begin - line) + by + source_.substr(end, source_.find('\n', end) - end);
    changed.erase(0, changed.find_first_not_of(' '));
    const std::string what = file_ + '\t' + function_->name + '\t' + name + '\t' + changed;
    std::printf("%016llx\t%s\t%td\t%s\t%s\t%zu\t%zu\t%s\t%s\n", rank(what), file_.c_str(),
                std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1,
                function_->name.c_str(), name, begin, end - begin, changed.empty() ? "-" : changed.c_str(), by.c_str());
  }

  // FNV-1a, and the finalizer of SplitMix64. Faults that would look alike differ by their number.
  unsigned long long rank(const std::string& what) {
    std::uint64_t hash = 14695981039346656037U;
    for (const char c : seed_ + '\t' + what + '\t' + std::to_string(seen_[what]++)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9U;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBU;
    return hash ^ (hash >> 31);
  }

  std::string file_, seed_, source_;
  std::vector<Token> tokens_;
  const Function* function_ = nullptr;
  std::map<std::string, int> seen_;
};

}  // namespace

int main(int count, char** values) {
  for (int i = 2; i < count; ++i) {
    std::ifstream file(values[i], std::ios::binary);
    Mutator(values[i], {std::istreambuf_iterator<char>(file), {}}, values[1]).list();
  }
}
