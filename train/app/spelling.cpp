#include "train/app/spelling.h"

#include <algorithm>

#include "train/app/progress.h"

namespace maki {
namespace {

std::vector<std::string>& keys() {
  static std::vector<std::string> names;
  return names;
}

bool is_setting(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, fits);
}

}  // namespace

void spell_as_keys(std::vector<std::string> settings) { keys() = std::move(settings); }

std::string spelled(std::string_view message) {
  std::string text;
  for (std::size_t open = 0; (open = message.find('`')) != std::string_view::npos;) {
    const std::size_t close = message.find('`', open + 1);
    const std::string name(close == std::string_view::npos ? "" : message.substr(open + 1, close - open - 1));
    if (!is_setting(name)) {  // a backquote of a path or of another text
      text += message.substr(0, open + 1);
      message.remove_prefix(open + 1);
      continue;
    }
    std::string option = "--" + name;
    std::ranges::replace(option, '_', '-');
    text.append(message.substr(0, open)).append(std::ranges::find(keys(), name) == keys().end() ? option : name);
    message.remove_prefix(close + 1);
  }
  return text.append(message);
}

void print_messages(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) to_stderr("{}\n", spelled(message));
}

}  // namespace maki
