// The grammars of the built-in stories, in the notation of data/builtin/grammar.h: stories_en.txt and
// stories_ja.txt, embedded by cmake/MakiEmbed.cmake.
#pragma once

#include <string_view>

namespace maki {

extern const std::string_view kStoriesEnglish;
extern const std::string_view kStoriesJapanese;

}  // namespace maki
