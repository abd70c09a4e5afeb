#include "data/text/invisible.h"

#include <fmt/format.h>

#include "data/io/shell_quote.h"
#include "data/io/utf8.h"

namespace maki {

void InvisibleCharacters::begin_text() {
  ++texts_;
  at_start_ = true;
  after_cr_ = false;
}

void InvisibleCharacters::add(std::string_view part) {
  if (part.empty()) return;
  if (at_start_ && part.starts_with(kByteOrderMark)) ++marks_;
  at_start_ = false;
  if (after_cr_ && part.starts_with('\n')) ++ends_;
  for (std::size_t at = 0; (at = part.find("\r\n", at)) != std::string_view::npos; at += 2) ++ends_;
  after_cr_ = part.ends_with('\r');
}

void InvisibleCharacters::describe(std::vector<std::string>& notes, bool lines, const std::string& encoding) const {
  if (marks_ > 0)
    notes.push_back(fmt::format("{} of {} texts begin with a byte-order mark (U+FEFF), which is kept", marks_, texts_));
  if (ends_ == 0 || lines) return;
  const std::string remove =
      encoding.empty() ? "tr -d '\\r' < FILE > FILE.new"
                       : fmt::format("iconv -f {} -t UTF-8 FILE | tr -d '\\r' > FILE.new", shell_quote(encoding));
  notes.push_back(
      fmt::format("{} lines end with CR and LF, and both are part of the text; to remove every CR: {}", ends_, remove));
}

}  // namespace maki
