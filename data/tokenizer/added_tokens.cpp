#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <utf8proc.h>

#include "data/io/utf8.h"
#include "data/tokenizer/pre_tokenizer.h"

namespace maki {
namespace {

// Whether \w of Unicode regular expressions matches: letters, marks, decimal digits, connectors and joiners.
bool is_word_character(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200C || c == 0x200D;
  }
}

// The last character of a text; empty if the text is, or does not end with well-formed UTF-8.
std::string_view last_character(std::string_view text) {
  constexpr std::size_t kMaxContinuations = 3;  // bytes of a character of UTF-8 after its first
  std::size_t size = 1;
  while (size <= kMaxContinuations && size < text.size() && is_continuation(text[text.size() - size])) ++size;
  const std::string_view last = text.substr(text.size() - std::min(size, text.size()));
  return !last.empty() && well_formed_size(last) == last.size() ? last : std::string_view();
}

std::string_view first_character(std::string_view text) {
  return text.empty() ? text : text.substr(0, well_formed_size(text));
}

bool is_word(std::string_view character) { return !character.empty() && is_word_character(next_code_point(character)); }
bool is_any_space(std::string_view character) {
  return !character.empty() && is_white_space(next_code_point(character));
}

// The bytes of the white space at the end and at the beginning of a text.
std::size_t trailing_space(std::string_view text) {
  std::size_t size = 0;
  for (std::string_view last; is_any_space(last = last_character(text.substr(0, text.size() - size)));)
    size += last.size();
  return size;
}
std::size_t leading_space(std::string_view text) {
  std::size_t size = 0;
  for (std::string_view first; is_any_space(first = first_character(text.substr(size)));) size += first.size();
  return size;
}

bool has_space(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::max<std::size_t>(1, first_character(text).size()))) {
    if (is_any_space(first_character(text))) return true;
  }
  return false;
}

// Whether a cut may divide this text of a token, or hide what decides whether the token is found: the white space to
// its right, or the word character before a token that begins where the cut is. Those that are not always found matter
// as well, because no other token is found inside them.
bool may_span_cut(const AddedToken& token, std::string_view text) {
  const std::size_t leading = leading_space(text);
  const bool looks_beyond = token.rstrip || (token.single_word && leading > 0);
  return (token.always && looks_beyond) || has_space(text.substr(leading));
}

}  // namespace

bool is_added(std::span<const AddedToken> added, std::int32_t id) {
  return std::ranges::binary_search(added, id, {}, &AddedToken::id);
}

AddedTokens::AddedTokens(std::span<const AddedToken> added, const TokenList& tokens) {
  for (const AddedToken& token : added) {
    const std::string_view text = tokens[static_cast<std::size_t>(token.id)];
    any_always_ = any_always_ || token.always;
    const auto add = [&](Finder& finder, const std::string& form) {
      finder.add(form, token);
      may_span_cuts_ = may_span_cuts_ || may_span_cut(token, form);
    };
    for (std::size_t form = 0; token.normalized && form < kNormalizations; ++form)
      add(in_normalized_[form], normalize(text, static_cast<Normalization>(form)));
    if (!token.normalized) add(in_text_, std::string(text));
  }
}

void AddedTokens::Finder::add(const std::string& text, const AddedToken& token) {
  if (text.empty()) return;  // a token that normalization removes
  begins[static_cast<unsigned char>(text[0])] = true;
  sizes.insert(text.size());
  AddedToken& found = by_text.emplace(text, token).first->second;
  if (token.id < found.id) found = token;  // the same normal form
}

const AddedTokens::Finder::ByText::value_type* AddedTokens::Finder::longest_at(std::string_view text) const {
  if (!begins[static_cast<unsigned char>(text[0])]) return nullptr;
  for (const std::size_t size : sizes) {
    const auto found = size <= text.size() ? by_text.find(text.substr(0, size)) : by_text.end();
    if (found != by_text.end()) return &*found;
  }
  return nullptr;
}

void AddedTokens::Finder::split(std::string_view text, bool specials, const OnText& on_text,
                                const OnToken& on_token) const {
  std::size_t done = 0;  // the end of the last token that was found, with the white space that it includes
  for (std::size_t at = 0; at < text.size();) {
    const auto* const found = longest_at(text.substr(at));
    if (found == nullptr) {
      ++at;
      continue;
    }
    const auto& [pattern, token] = *found;
    std::size_t begin = at, end = at + pattern.size();
    at = end;
    if (begin < done || (!specials && !token.always)) continue;
    const bool in_word = is_word(last_character(text.substr(0, begin))) || is_word(first_character(text.substr(end)));
    if (token.single_word && in_word) continue;
    if (token.lstrip) begin -= trailing_space(text.substr(0, begin));
    if (token.rstrip) end += leading_space(text.substr(end));
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

void AddedTokens::split(std::string_view text, Normalization form, bool specials, const OnText& on_text,
                        const OnToken& on_token) const {
  const Finder& normal = in_normalized_[static_cast<std::size_t>(form)];
  const auto split_normal = [&](std::string_view part) {
    if (form == Normalization::none) return normal.split(part, specials, on_text, on_token);
    normal.split(normalize(part, form), specials, on_text, on_token);
  };
  in_text_.split(text, specials, split_normal, on_token);
}

}  // namespace maki
