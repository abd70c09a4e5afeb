#include "autograd/core/check.h"

namespace maki {

std::string truncate_for_message(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // never inside a character
  return fmt::format("{}… ({} bytes)", text.substr(0, end), text.size());
}

}  // namespace maki
