// The Japanese stories, in the notation of data/grammar.h.
#include "data/stories_text.h"

namespace maki {

const std::string_view kStoriesJapanese = R"(
[story]
むかしむかし、{home}に、{hero=child}という{beast}がすんでいました。{hero}は、毎日{play}。

[home]
山のふもと | 川のそば | 森のおく | 海の見える丘

[child]
ハナ | ユキ | ケンタ | ミドリ

[beast]
きつね | たぬき | うさぎ | くま

[play]
歌をうたっていました | 絵をかいていました | 花をそだてていました
)";

}  // namespace maki
