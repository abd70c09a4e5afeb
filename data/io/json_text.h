// JSON of any size that others wrote, read event by event.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace maki {

/// Passes the events of a JSON text to the reader. The parser would take a zero byte for the end of the text and drop
/// what follows; here it is an error at this byte, like any other byte that JSON does not allow there.
template <class Json>
void read_json_text(std::string_view text, nlohmann::json_sax<Json>& reader) {
  const std::size_t zero = text.find('\0');
  if (zero == std::string_view::npos) {
    Json::sax_parse(text.begin(), text.end(), &reader);
    return;
  }
  std::string beginning(text.substr(0, zero));
  beginning += '\1';  // no JSON text contains it either
  Json::sax_parse(beginning.begin(), beginning.end(), &reader);
}

}  // namespace maki
