#include "train/plan/text_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "data/text/utf8.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

TextFacts text_facts(const Corpus& corpus, const std::string& tokenizer) {
  constexpr std::size_t kCodePoints = 0x110000;
  std::vector<bool> seen(kCodePoints);
  std::string_view rest = corpus.text;
  while (!rest.empty()) seen[next_code_point(rest)] = true;
  TextFacts facts{.bytes = static_cast<std::int64_t>(corpus.text.size()),
                  .characters = corpus.characters,
                  .distinct = std::ranges::count(seen, true)};
  if (!tokenizer.empty() && tokenizer != "char" && tokenizer != "byte") {
    const auto made = make_tokenizer(tokenizer, corpus.text);
    facts.tokens = static_cast<std::int64_t>(made->token_bound(corpus.text));
    facts.vocabulary = made->vocab_size();
  }
  return facts;
}

}  // namespace maki
