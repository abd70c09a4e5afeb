#include "train/plan/text_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "data/dataset/token_file.h"
#include "data/text/utf8.h"
#include "data/tokenizer/word_tokenizer.h"

namespace maki {
namespace {

std::int64_t token_count(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens(tokenizer.vocab_size());
  tokenizer.encode(text, tokens);
  return static_cast<std::int64_t>(tokens.size());
}

// Of a corpus that was prepared, which has its tokenizer.
TextFacts prepared_facts(const TokenFile& file) {
  const TokenFileFacts& facts = file.facts;
  return {.bytes = facts.bytes,
          .characters = facts.characters,
          .distinct = facts.vocab_size,  // matters only if characters are the tokens
          .tokens = facts.train_tokens + facts.val_tokens,
          .vocabulary = facts.vocab_size};
}

}  // namespace

TextFacts text_facts(const Corpus& corpus, const Tokenizer* tokenizer) {
  if (corpus.prepared) return prepared_facts(*corpus.prepared);
  constexpr std::size_t kCodePoints = 0x110000;
  std::vector<bool> seen(kCodePoints);
  std::string_view rest = corpus.text;
  while (!rest.empty()) seen[next_code_point(rest)] = true;
  TextFacts facts{.bytes = static_cast<std::int64_t>(corpus.text.size()),
                  .characters = corpus.characters,
                  .distinct = std::ranges::count(seen, true)};
  std::unique_ptr<Tokenizer> words;
  if (tokenizer == nullptr) {
    facts.new_words = new_word_share(corpus.text);
    if (facts.new_words <= kFewNewWords) tokenizer = (words = make_tokenizer("word", corpus.text)).get();
  }
  if (tokenizer != nullptr) {
    facts.tokens = token_count(*tokenizer, corpus.text);
    facts.vocabulary = tokenizer->vocab_size();
  }
  return facts;
}

}  // namespace maki
