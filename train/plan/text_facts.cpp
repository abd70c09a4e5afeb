#include "train/plan/text_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "data/dataset/document_sequences.h"
#include "data/dataset/token_file.h"
#include "data/ngram/ngram_model.h"
#include "data/text/utf8.h"
#include "data/tokenizer/word_tokenizer.h"

namespace maki {
namespace {

std::int64_t token_count(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens(tokenizer.vocab_size());
  tokenizer.encode(text, tokens);
  return static_cast<std::int64_t>(tokens.size());
}

// Of the sequences of kMaxCountedNgram characters that end in the last tenth of the text, the share that does not occur
// before it. Sequences with the same place in a table of 8 MB count as one, which makes the share a few hundredths
// smaller; of a long text, only the end is read.
double new_ngram_share(std::string_view text) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20, kPlaces = std::size_t{1} << 26;
  text.remove_prefix(text.size() - std::min(text.size(), kMostBytes));
  while (!text.empty() && is_continuation(text.front())) text.remove_prefix(1);
  std::vector<bool> seen(kPlaces);
  std::array<std::uint64_t, kMaxCountedNgram> last{};  // characters; a ring
  std::size_t fresh = 0, all = 0, read = 0;
  for (std::string_view rest = text; !rest.empty();) {
    last[read++ % last.size()] = next_code_point(rest);
    if (read < last.size()) continue;
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < last.size(); ++i)
      hash = (hash + last[(read + i) % last.size()] + 1) * 0x9E3779B97F4A7C15;
    std::vector<bool>::reference place = seen[(hash >> 32) % kPlaces];
    if (rest.size() > text.size() / 10) {
      place = true;
    } else {
      ++all;
      fresh += place ? 0 : 1;
    }
  }
  return all == 0 ? 1 : static_cast<double>(fresh) / static_cast<double>(all);
}

// In tokens.
std::vector<std::int64_t> document_lengths(const TokenFile& file) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> lengths;
  for (const TokenSpan& part : {file.train, file.val}) {
    if (part.size() < 2) continue;
    const DocumentSequences documents(part, file.tokenizer->end_of_text(), kLongest);
    for (std::int64_t i = 0; i < documents.count(); ++i) lengths.push_back(documents[i].length);
  }
  return lengths;
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

double used_share(const TextFacts& text, std::int64_t tokens, std::int64_t block_size) {
  std::int64_t all = 0, sequences = 0;
  for (const std::int64_t length : text.documents) all += length;
  if (all == 0) return 1;
  const auto length = static_cast<double>(block_size);
  const double per_unit = static_cast<double>(tokens) / static_cast<double>(all);
  for (const std::int64_t units : text.documents) {
    const double needed = std::ceil(static_cast<double>(units) * per_unit / length);
    sequences += std::max<std::int64_t>(1, static_cast<std::int64_t>(needed));
  }
  return std::min(1.0, static_cast<double>(tokens) / (static_cast<double>(sequences) * length));
}

TextFacts text_facts(const Corpus& corpus, const Tokenizer* tokenizer, bool documents) {
  if (corpus.prepared) {
    TextFacts facts = prepared_facts(*corpus.prepared);
    if (documents && corpus.prepared->tokenizer) facts.documents = document_lengths(*corpus.prepared);
    return facts;
  }
  constexpr std::size_t kCodePoints = 0x110000;
  std::vector<bool> seen(kCodePoints);
  std::string_view rest = corpus.text;
  while (!rest.empty()) seen[next_code_point(rest)] = true;
  TextFacts facts{.bytes = static_cast<std::int64_t>(corpus.text.size()),
                  .characters = corpus.characters,
                  .distinct = std::ranges::count(seen, true)};
  if (documents && !corpus.documents.empty()) {
    for (const std::string_view text : document_texts(corpus)) facts.documents.push_back(count_code_points(text));
  }
  std::unique_ptr<Tokenizer> words;
  if (tokenizer == nullptr) {
    facts.new_words = new_word_share(corpus.text);
    facts.new_ngrams = new_ngram_share(corpus.text);
    if (facts.new_words <= kFewNewWords) tokenizer = (words = make_tokenizer("word", corpus.text)).get();
  }
  if (tokenizer != nullptr) {
    facts.tokens = token_count(*tokenizer, corpus.text);
    facts.vocabulary = tokenizer->vocab_size();
  }
  return facts;
}

}  // namespace maki
