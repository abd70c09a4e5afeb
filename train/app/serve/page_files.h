// The files of the page, which are part of the program.
#pragma once

#include <optional>
#include <string_view>

namespace maki {

struct PageFile {
  const char* type;  ///< such as "text/css; charset=utf-8"
  std::string_view content;
};

/// The file at a path such as "/", "/style.css" or "/page.js"; none for any other path.
std::optional<PageFile> page_file(std::string_view path);

}  // namespace maki
