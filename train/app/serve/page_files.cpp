#include "train/app/serve/page_files.h"

namespace maki {

std::optional<PageFile> page_file(std::string_view path) {
  if (path == "/") return PageFile{"text/html; charset=utf-8", "<!doctype html><title>maki</title>\n"};
  return std::nullopt;
}

}  // namespace maki
