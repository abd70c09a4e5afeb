// The files of the folder page, which are embedded when maki is built.
#pragma once

#include <string_view>

namespace maki {

extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace maki
