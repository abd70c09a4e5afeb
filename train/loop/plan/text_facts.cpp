#include "train/loop/plan/text_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "data/dataset/document_sequences.h"
#include "data/dataset/token_file.h"
#include "data/io/utf8.h"
#include "data/ngram/ngram_model.h"
#include "data/tokenizer/word_tokenizer.h"

namespace maki {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{4} << 20;  // read of a long text: enough for shares and for byte pairs

// The end of a text of more than kSampleBytes.
std::string_view sample_of(std::string_view text) {
  text.remove_prefix(text.size() - std::min(text.size(), kSampleBytes));
  while (!text.empty() && is_continuation(text.front())) text.remove_prefix(1);
  return text;
}

std::int64_t token_count(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens(tokenizer.vocab_size());
  tokenizer.encode(text, tokens);
  return static_cast<std::int64_t>(tokens.size());
}

// Of the sequences of kMaxCountedNgram characters that end in the last tenth of the text, the share that does not occur
// before it. Sequences with the same place in a table of 8 MB count as one, which makes the share a few hundredths
// smaller; of a long text, only the end is read.
double new_ngram_share(std::string_view text) {
  constexpr std::size_t kHashPlaces = std::size_t{1} << 26;  // bits, 8 MB; 16 for each byte of a sample
  text = sample_of(text);
  std::vector<bool> seen(kHashPlaces);
  std::array<std::uint64_t, kMaxCountedNgram> last{};  // characters; a ring
  std::size_t fresh = 0, all = 0, read = 0;
  for (std::string_view rest = text; !rest.empty();) {
    last[read++ % last.size()] = next_code_point(rest);
    if (read < last.size()) continue;
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < last.size(); ++i)
      hash = (hash + last[(read + i) % last.size()] + 1) * 0x9E3779B97F4A7C15;
    std::vector<bool>::reference place = seen[(hash >> 32) % kHashPlaces];
    if (rest.size() > text.size() / 10) {
      place = true;
    } else {
      ++all;
      fresh += place ? 0 : 1;
    }
  }
  return all == 0 ? 1 : static_cast<double>(fresh) / static_cast<double>(all);
}

// How many of the characters with these counts make up 98 % of all.
std::int64_t frequent_characters(std::vector<std::int64_t> counts) {
  constexpr double kFrequentShare = 0.98;  // the other characters hardly matter to the loss
  std::ranges::sort(counts, std::greater());
  const auto all = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  double covered = 0;
  const auto first_rare = std::ranges::find_if(counts, [&](std::int64_t count) {
    const bool enough = covered >= kFrequentShare * all;
    covered += static_cast<double>(count);
    return enough;
  });
  return first_rare - counts.begin();
}

// The size of the vocabulary of byte pairs, or 0 if characters are better tokens. Nats per character on a prior, after
// the arithmetic of 1,000 steps with characters (docs/learning.md):
//   text                         characters   512     1,024   4,096
//   @stories-ja, 200,000         1.087                1.087   1.133
//   tinyshakespeare, 500 kB      1.596        1.595 (384)
//   tinyshakespeare, 1.1 MB      1.452        1.437   1.446
//   Unicode's collation table    1.427        1.436   1.316
//   quotations, 2.6 MB           1.495        1.444   1.446
//   Python, 4.7 MB               1.158        1.105   1.111   1.129
//   Japanese manual pages        1.972                1.977
std::int64_t byte_pairs(const TextFacts& text) {
  // Of the Japanese manual pages, 402 characters make up 98 %; of English manuals with names and some translations, 67
  // and 96.
  constexpr std::int64_t kManyFrequent = 200;
  // In shorter texts, characters are as good; from twice as many on, a larger vocabulary is better.
  constexpr std::int64_t kLongCharacters = 1'000'000, kTwiceAsLong = 2 * kLongCharacters;
  if (text.characters < kLongCharacters) return 0;
  if (text.new_ngrams <= kFewNewNgrams) return 4096;
  if (text.frequent > kManyFrequent) return 0;
  return text.characters < kTwiceAsLong ? 512 : 1024;
}

void count_words(TextFacts& facts, const SplitText& text) {
  const auto tokenizer = make_tokenizer("word", TextToLearn(text.train, text.val));
  for (const auto& pieces : {text.train, text.val}) {
    for (const std::string_view piece : pieces) facts.tokens += token_count(*tokenizer, piece);
  }
  facts.vocabulary = tokenizer->vocab_size();
}

// Of a long text, they are learned only from its end.
void count_byte_pairs(TextFacts& facts, std::string_view text) {
  const std::string_view sample = sample_of(text);
  const auto tokenizer = make_tokenizer("bpe", sample, {.vocab_size = byte_pairs(facts)});
  const double scale = static_cast<double>(text.size()) / static_cast<double>(std::max<std::size_t>(1, sample.size()));
  facts.tokens = std::llround(scale * static_cast<double>(token_count(*tokenizer, sample)));
  facts.vocabulary = tokenizer->vocab_size();
}

// Characters that hardly ever repeat cannot be learned; bytes always repeat. Words are better tokens only where few are
// new: after a minute, @stories has 0.27 nats per character instead of 0.51, tinyshakespeare 1.63 instead of 1.50. Of a
// short text, counting knows as much of characters as of words: 1.24 on 50,000 characters of @stories; on 200,000 it
// has 0.94 and 0.76.
void choose_tokenizer(TextFacts& facts, const Corpus& corpus, double val_fraction) {
  constexpr std::int64_t kMinOccurrences = 4;               // of a character on average, to be learned
  constexpr std::int64_t kMinCharactersForWords = 100'000;  // between those two texts
  if (facts.new_words <= kFewNewWords && facts.characters >= kMinCharactersForWords) {
    facts.tokenizer = "word";
    count_words(facts, split_text(corpus, val_fraction));
  } else if (facts.distinct > kByteValues && facts.characters < kMinOccurrences * facts.distinct) {
    facts.tokenizer = "byte";
  } else if (byte_pairs(facts) > 0) {
    facts.tokenizer = "bpe";
    count_byte_pairs(facts, corpus.text);
  }
}

// In tokens.
std::vector<std::int64_t> document_lengths(const TokenFile& file) {
  constexpr std::int64_t kUncut = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int64_t> lengths;
  for (const TokenSpan& part : {file.train, file.val}) {
    if (part.size() < 2) continue;
    const DocumentSequences documents(part, file.tokenizer->end_of_text(), kUncut);
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

TextFacts text_facts(const Corpus& corpus, const Tokenizer* tokenizer, bool documents, double val_fraction) {
  if (corpus.prepared) {
    TextFacts facts = prepared_facts(*corpus.prepared);
    if (documents && corpus.prepared->tokenizer) facts.documents = document_lengths(*corpus.prepared);
    return facts;
  }
  constexpr std::size_t kCodePoints = 0x110000;  // of Unicode
  std::vector<std::int64_t> counts(kCodePoints);
  std::string_view rest = corpus.text;
  while (!rest.empty()) ++counts[next_code_point(rest)];
  std::erase(counts, 0);
  TextFacts facts{.bytes = static_cast<std::int64_t>(corpus.text.size()),
                  .characters = corpus.characters,
                  .distinct = std::ssize(counts),
                  .frequent = frequent_characters(counts)};
  if (documents && !corpus.documents.empty()) {
    for (const std::string_view text : document_texts(corpus)) facts.documents.push_back(count_code_points(text));
  }
  if (tokenizer != nullptr) {
    facts.tokenizer = tokenizer->kind();
    facts.tokens = token_count(*tokenizer, corpus.text);
    facts.vocabulary = tokenizer->vocab_size();
    return facts;
  }
  facts.new_words = new_word_share(corpus.text);
  facts.new_ngrams = new_ngram_share(corpus.text);
  choose_tokenizer(facts, corpus, val_fraction);
  return facts;
}

}  // namespace maki
