#include "data/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <pcre2.h>

#include "autograd/core/nearest.h"
#include "data/io/error.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// A rule as PCRE2 runs it and as a tokenizer.json writes it. In the former, \s stands only in classes, and quantifiers
// are possessive where what follows cannot match anyway, so that nothing is remembered for backtracking.
struct Rule {
  const char* name;
  bool cuts_at_spaces;  // whether a space begins a new piece after any character that is not white space
  const char *pcre, *expression;
};

constexpr Rule kRules[] = {
    {"gpt2", true, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|[\s]++\z|[\s]+(?![^\s])|[\s])",
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k", false,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|)"
     R"([\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
     R"(\s+(?!\S)|\s+)"},
    {"qwen2", false,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*+|)"
     R"([\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
     R"(\s+(?!\S)|\s+)"},
    {"o200k", false,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

// White space as Unicode defines it: PCRE2's own \s contains U+180E as well.
std::string with_unicode_space(std::string pattern) {
  constexpr std::string_view kSpace = R"(\t-\r\x{85}\p{Z})";
  for (std::size_t at = 0; (at = pattern.find("\\s", at)) != std::string::npos; at += kSpace.size())
    pattern.replace(at, 2, kSpace);
  return pattern;
}

const Rule* find_rule(std::string_view name) {
  const Rule* const found =
      std::ranges::find(kRules, name, [](const Rule& rule) { return std::string_view(rule.name); });
  return found == std::end(kRules) ? nullptr : found;
}

// Number of bytes of the space, line end, tab or ideographic space at the front of the text; 0 if it is anything else.
std::size_t space_size(std::string_view text) {
  if (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t') return 1;
  return text.starts_with("\u3000") ? 3 : 0;
}

// Whether a space after this text, which is not empty, certainly begins a new piece: see next_cut().
bool ends_piece(std::string_view text, bool cuts_at_spaces) {
  constexpr std::size_t kMaxContinuations = 3;  // bytes of a character of UTF-8 after its first
  std::size_t size = 1;
  while (size <= kMaxContinuations && size < text.size() && is_continuation(text[text.size() - size])) ++size;
  std::string_view last = text.substr(text.size() - size);
  if (well_formed_size(last) != last.size()) return true;  // bytes that are not UTF-8
  const char32_t c = next_code_point(last);
  if (cuts_at_spaces) return !is_white_space(c);
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= 0x3041 && c <= 0x3096) ||
         (c >= 0x30A1 && c <= 0x30FA) || (c >= 0x4E00 && c <= 0x9FFC) || (c >= 0xAC00 && c <= 0xD7A3);
}

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

struct PreTokenizer::Compiled {
  explicit Compiled(const Rule& rule) : cuts_at_spaces(rule.cuts_at_spaces) {
    const std::string pattern = with_unicode_space(rule.pcre);
    int error = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                         &at, nullptr);
    check(code != nullptr, "pre-tokenizer: PCRE2 must accept the expression of {}; it says {} at offset {}", rule.name,
          message_of(error), at);
    jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;  // else it is interpreted
  }
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  // Calls `piece` for the pieces of well-formed text.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
    const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr),
                                                                                   pcre2_match_data_free);
    if (data == nullptr) throw std::bad_alloc();
    const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
    for (std::size_t at = 0; at < text.size();) {
      const auto run = jit ? pcre2_jit_match : pcre2_match;
      int found = run(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), nullptr);
      if (found < 0)
        found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), nullptr);
      check<CorpusError>(found >= 0 && ends[0] == at && ends[1] > at,
                         "pre-tokenizer: PCRE2 must find a piece at byte {} of the text; it says {}", at,
                         found < 0 ? message_of(found) : "that it begins later");
      piece(text.substr(at, ends[1] - at));
      at = ends[1];
    }
  }

  pcre2_code* code = nullptr;
  bool cuts_at_spaces, jit = false;
};

PreTokenizer::PreTokenizer(const std::string& rule) : rule_(rule) {
  const Rule* const found = find_rule(rule);
  if (found == nullptr) throw CorpusError(unknown_name("pre-tokenizer", rule, rules()));
  compiled_ = std::make_unique<Compiled>(*found);
}
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  while (!text.empty()) {
    const std::size_t good = invalid_utf8(text).value_or(text.size());
    compiled_->split(text.substr(0, good), piece);
    text.remove_prefix(good);
    std::size_t bad = 0;
    while (bad < text.size() && well_formed_size(text.substr(bad)) == 0) ++bad;
    if (bad > 0) piece(text.substr(0, bad));
    text.remove_prefix(bad);
  }
}

std::size_t PreTokenizer::next_cut(std::string_view text, std::size_t at) const {
  for (at = std::max<std::size_t>(at, 1); at < text.size(); ++at) {
    if (space_size(text.substr(at)) > 0 && ends_piece(text.substr(0, at), compiled_->cuts_at_spaces)) return at;
  }
  return text.size();
}

std::vector<std::string> PreTokenizer::rules() {
  std::vector<std::string> names;
  for (const Rule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::string PreTokenizer::rule_of_expression(std::string_view expression) {
  for (const Rule& rule : kRules) {
    if (expression == rule.expression) return rule.name;
  }
  return "";
}

std::string PreTokenizer::expression_of_rule(const std::string& rule) { return find_rule(rule)->expression; }

}  // namespace maki
