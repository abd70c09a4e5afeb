#include "train/app/serve/page_files.h"

#include "train/app/serve/page_text.h"

namespace maki {

std::optional<PageFile> page_file(std::string_view path) {
  if (path == "/") return PageFile{"text/html; charset=utf-8", kPageHtml};
  if (path == "/style.css") return PageFile{"text/css; charset=utf-8", kPageStyle};
  if (path == "/page.js") return PageFile{"text/javascript; charset=utf-8", kPageScript};
  return std::nullopt;
}

}  // namespace maki
