#include "data/mixing/token_traits.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utf8proc.h>

#include "data/mixing/context_table.h"

namespace maki {
namespace {

constexpr utf8proc_int32_t kNoCharacter = -1;

// Takes the first character off the bytes; of bytes that are not well-formed, all of them.
utf8proc_int32_t take_character(std::string_view& bytes) {
  utf8proc_int32_t point = kNoCharacter;
  const auto* const text = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  const utf8proc_ssize_t n = utf8proc_iterate(text, static_cast<utf8proc_ssize_t>(bytes.size()), &point);
  bytes.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : bytes.size());
  return n > 0 ? point : kNoCharacter;
}

CharacterKind kind_of(utf8proc_int32_t point) {
  if (point == kNoCharacter) return CharacterKind::letter;
  if (point == '\n') return CharacterKind::newline;
  if (point == ' ') return CharacterKind::space;
  if (point == ',' || point == 0x3001) return CharacterKind::comma;  // 、
  if (point == '.' || point == 0x3002) return CharacterKind::stop;   // 。
  const utf8proc_category_t category = utf8proc_category(point);
  if (category == UTF8PROC_CATEGORY_LU) return CharacterKind::upper;
  if (category == UTF8PROC_CATEGORY_LL) return CharacterKind::lower;
  if (point >= 0x3040 && point < 0x30A0) return CharacterKind::hiragana;
  if (point >= 0x30A0 && point < 0x3100) return CharacterKind::katakana;
  if (category == UTF8PROC_CATEGORY_CN || category > UTF8PROC_CATEGORY_NO) return CharacterKind::other;
  return category <= UTF8PROC_CATEGORY_LO ? CharacterKind::letter : CharacterKind::digit;
}

// Whether it is a letter, digit or mark of any script.
bool is_in_word(utf8proc_int32_t point) {
  if (point == kNoCharacter) return true;
  const utf8proc_category_t category = utf8proc_category(point);
  return category <= UTF8PROC_CATEGORY_NO && category != UTF8PROC_CATEGORY_CN;
}

TokenTraits traits_of(std::string_view bytes) {
  TokenTraits traits{.kind = CharacterKind::other,
                     .begins_in_word = false,
                     .ends_in_word = false,
                     .ends_line = bytes.ends_with('\n'),
                     .folded = 0};
  std::uint64_t all = 0;
  for (std::string_view rest = bytes; !rest.empty();) {
    const bool first = rest.size() == bytes.size();
    const std::string_view before = rest;
    const utf8proc_int32_t point = take_character(rest);
    traits.kind = kind_of(point);
    traits.ends_in_word = is_in_word(point);
    if (first) traits.begins_in_word = traits.ends_in_word;
    const auto byte = static_cast<std::uint8_t>(before.front());  // tells bytes apart that are no characters
    const utf8proc_int32_t lower = point == kNoCharacter ? -1 - byte : utf8proc_tolower(point);
    all = extend_hash(all, static_cast<std::uint64_t>(lower));
    if (traits.ends_in_word) traits.folded = extend_hash(traits.folded, static_cast<std::uint64_t>(lower));
  }
  if (traits.folded == 0) traits.folded = all;
  return traits;
}

}  // namespace

std::vector<TokenTraits> traits_of_tokens(const Tokenizer& tokenizer) {
  std::vector<TokenTraits> traits;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) traits.push_back(traits_of(tokenizer.bytes(id)));
  return traits;
}

std::vector<std::int32_t> ids_by_bytes(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, {}, [&](std::int32_t id) { return tokenizer.bytes(id); });
  return ids;
}

}  // namespace maki
