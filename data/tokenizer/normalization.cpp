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

constexpr std::array kNames = {"none", "nfc", "nfkc"};

void append_normalized(std::string& normalized, std::string_view text, Normalization form) {
  const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | (form == Normalization::nfkc ? UTF8PROC_COMPAT : 0);
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

}  // namespace maki
