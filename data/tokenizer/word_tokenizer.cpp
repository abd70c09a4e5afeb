#include "data/tokenizer/word_tokenizer.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "data/io/error.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

bool is_space(std::string_view text) { return std::string_view(" \t\n\r\v\f").find(text[0]) != std::string_view::npos; }

// Removes from the front of the text, and returns, a word with the space before it, a word without one, or a single
// character of white space that does not belong to a word. A word is a run of characters that are not white space.
std::string_view next_piece(std::string_view& text) {
  std::size_t size = 1;
  const bool spaced = text[0] == ' ' && text.size() > 1 && !is_space(text.substr(1));
  if (spaced || !is_space(text)) {
    while (size < text.size() && !is_space(text.substr(size))) ++size;
  }
  const std::string_view piece = text.substr(0, size);
  text.remove_prefix(size);
  return piece;
}

bool is_one_character(std::string_view piece) { return well_formed_size(piece) == piece.size(); }

std::unique_ptr<Tokenizer> make_word(const TextToLearn& text, const TokenizerOptions& /*options*/) {
  return std::make_unique<WordTokenizer>(text);
}

// The saved form: the number of bytes of the characters, as a decimal number and a newline; the characters, in
// ascending order; and the words, in byte order, each followed by a newline.
std::unique_ptr<Tokenizer> load_word(std::string_view saved) {
  const auto require = [](bool good) { check<CorpusError>(good, "tokenizer: the saved vocabulary is damaged"); };
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(saved.data(), saved.data() + saved.size(), size);
  const auto head = static_cast<std::size_t>(end - saved.data()) + 1;
  require(error == std::errc() && head <= saved.size() && saved[head - 1] == '\n' && size <= saved.size() - head);
  require(!invalid_utf8(saved));
  const std::string_view characters = saved.substr(head, size);
  require(!invalid_utf8(characters));
  TokenList words;
  for (std::string_view left = saved.substr(head + size); !left.empty();) {
    const std::size_t at = left.find('\n');
    require(at != std::string_view::npos && at > 0);
    words.add(left.substr(0, at));
    left.remove_prefix(at + 1);
  }
  auto tokenizer = std::make_unique<WordTokenizer>(characters, std::move(words));
  require(tokenizer->save().substr(kWordTokenizer.header.size()) == saved);
  return tokenizer;
}

TokenList frequent_words(const TextToLearn::Pieces& text) {
  // A word that occurs once would get an embedding that one example trains; and if every word of the training text were
  // a token, the characters, which must spell unknown words, would never be trained.
  constexpr std::int64_t kMinCount = 2;
  std::unordered_map<std::string_view, std::int64_t> counts;
  for (std::string_view rest : text) {
    while (!rest.empty()) ++counts[next_piece(rest)];
  }
  std::vector<std::string_view> sorted;
  for (const auto& [word, count] : counts) {
    if (count >= kMinCount && !is_one_character(word)) sorted.push_back(word);
  }
  std::ranges::sort(sorted);
  TokenList words;
  for (const std::string_view word : sorted) words.add(word);
  return words;
}

}  // namespace

constinit const TokenizerKind kWordTokenizer = {
    "word", "word between spaces", "words", Vocabulary::learned, "maki word tokenizer 1\n", make_word, load_word,
    false,  /*spaced_words=*/true};

double new_word_share(std::string_view text) {
  constexpr std::size_t kMaxReadBytes = std::size_t{4} << 20;  // enough words for a share, read in little time
  constexpr std::int64_t kMinWords = 100;                      // of fewer, a share says nothing
  std::size_t size = std::min(kMaxReadBytes, text.size());
  while (size < text.size() && size > 0 && is_continuation(text[size])) --size;
  std::string_view rest = text.substr(0, size);
  std::unordered_set<std::string_view> known;
  std::int64_t words = 0, unknown = 0;
  while (!rest.empty()) {
    const bool last_tenth = rest.size() <= size / 10;
    const std::string_view piece = next_piece(rest);
    if (!last_tenth) known.insert(piece);
    if (!last_tenth || is_space(piece.substr(piece.size() - 1))) continue;
    ++words;
    if (!known.contains(piece)) ++unknown;
  }
  return words < kMinWords ? 1 : static_cast<double>(unknown) / static_cast<double>(words);
}

WordTokenizer::WordTokenizer(const TextToLearn& text)
    : characters_(text), words_(frequent_words(text.learned)), index_(words_) {}

WordTokenizer::WordTokenizer(std::string_view characters, TokenList words)
    : characters_(characters), words_(std::move(words)), index_(words_) {
  check<CorpusError>(!characters.empty(), "tokenizer: the saved vocabulary is damaged");
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::string_view left = words_[i];
    const bool whole = !left.empty() && next_piece(left) == words_[i] && !is_one_character(words_[i]);
    check<CorpusError>(whole && characters_.unknown(words_[i]).empty() && (i == 0 || words_[i - 1] < words_[i]),
                       "tokenizer: the saved vocabulary is damaged");
  }
}

std::size_t WordTokenizer::token_bound(std::string_view text) const { return characters_.token_bound(text); }

std::vector<std::int32_t> WordTokenizer::encode(std::string_view text) const {
  const auto bad = invalid_utf8(text);
  check<CorpusError>(!bad, "tokenizer: the text must be UTF-8; byte {} is not; convert it, as iconv does",
                     bad.value_or(0));
  std::vector<std::int32_t> ids;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view piece = next_piece(left);
    if (const std::int32_t word = index_.find(piece); word >= 0) {
      ids.push_back(static_cast<std::int32_t>(characters_.vocab_size()) + word);
      continue;
    }
    if (!characters_.unknown(piece).empty()) throw CorpusError(unknown_sentence(vocab_size(), unknown(text)));
    const std::vector<std::int32_t> spelled = characters_.encode(piece);
    ids.insert(ids.end(), spelled.begin(), spelled.end());
  }
  return ids;
}

std::string_view WordTokenizer::bytes(std::int32_t id) const {
  check_token_id(id, vocab_size());
  const std::int64_t word = id - characters_.vocab_size();
  return word < 0 ? characters_.bytes(id) : words_[static_cast<std::size_t>(word)];
}

std::string WordTokenizer::save_encoding() const {
  const std::string characters = characters_.save().substr(kCharTokenizer.header.size());
  std::string saved = fmt::format("{}{}\n{}", kWordTokenizer.header, characters.size(), characters);
  for (std::size_t i = 0; i < words_.size(); ++i) saved.append(words_[i]) += '\n';
  return saved;
}

std::vector<std::int32_t> WordTokenizer::encode_line(std::string_view line) const {
  return encode(fmt::format(" {}", line));
}

std::string WordTokenizer::decode_line(TokenSpan ids) const {
  std::string line = decode(ids);
  if (line.starts_with(' ')) line.erase(0, 1);
  return line;
}

std::size_t WordTokenizer::next_cut(std::string_view text, std::size_t at) const {
  while (at < text.size() && !is_space(text.substr(at))) ++at;
  return at;
}

}  // namespace maki
