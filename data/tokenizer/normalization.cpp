#include "data/tokenizer/normalization.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <utf8proc.h>

#include "autograd/core/nearest.h"
#include "data/io/error.h"
#include "data/io/printable.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

constexpr std::array<const char*, kNormalizations> kNames = {"none", "nfc", "nfkc"};

int compatibility(Normalization form) { return form == Normalization::nfkc ? UTF8PROC_COMPAT : 0; }

void append_normalized(std::string& normalized, std::string_view text, Normalization form) {
  const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | compatibility(form);
  utf8proc_uint8_t* mapped = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  check<CorpusError>(size >= 0, "normalize: utf8proc must accept the text; it says {}", utf8proc_errmsg(size));
  normalized.append(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
}

// The first position from `at` on where the parts of well-formed text can be normalized independently: before an ASCII
// character, which is never combined with what precedes it.
std::size_t next_boundary(std::string_view text, std::size_t at) {
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) ++at;
  return at;
}

// Whether a character may be combined with what precedes it, or be put before it: it is, or its decomposition begins
// with, a mark or a vowel or final consonant of Hangul. Half-width katakana have such marks as well (U+FF9E, U+FF9F).
bool may_combine(char32_t c, Normalization form) {
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | compatibility(form);
  std::array<utf8proc_int32_t, 32> parts = {};  // no character has more than 18
  utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), std::ssize(parts),
                          static_cast<utf8proc_option_t>(options), nullptr);
  const utf8proc_int32_t first = parts[0];
  const utf8proc_category_t category = utf8proc_category(first);
  const bool hangul = (first >= 0x1161 && first <= 0x1175) || (first >= 0x11A8 && first <= 0x11C2);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || hangul;
}

}  // namespace

std::vector<std::string> normalization_names() { return {kNames.begin(), kNames.end()}; }

Normalization parse_normalization(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) throw CorpusError(unknown_name("normalize", name, normalization_names()));
  return static_cast<Normalization>(found - kNames.begin());
}

std::string to_string(Normalization form) { return kNames[static_cast<std::size_t>(form)]; }

std::string normalize(std::string_view text, Normalization form) {
  if (form == Normalization::none) return std::string(text);
  constexpr std::size_t kBlockBytes = 1 << 16;  // at a time: the decomposed text takes several times as much
  std::string normalized;
  while (!text.empty()) {
    std::string_view good = text.substr(0, invalid_utf8(text).value_or(text.size()));
    text.remove_prefix(good.size());
    while (!good.empty()) {
      const std::size_t size = next_boundary(good, std::min(kBlockBytes, good.size()));
      append_normalized(normalized, good.substr(0, size), form);
      good.remove_prefix(size);
    }
    while (!text.empty() && well_formed_size(text) == 0) {
      normalized += text[0];
      text.remove_prefix(1);
    }
  }
  return normalized;
}

std::size_t next_normal_cut(std::string_view text, std::size_t at, Normalization form) {
  if (form == Normalization::none || at == 0) return at;
  for (std::string_view rest = text.substr(at); !rest.empty(); at = text.size() - rest.size()) {
    if (!may_combine(next_code_point(rest), form)) return at;
  }
  return at;
}

}  // namespace maki
