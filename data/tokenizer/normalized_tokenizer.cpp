#include "data/tokenizer/normalized_tokenizer.h"

#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/unknown_characters.h"

namespace maki {
namespace {

// Whether the last character of a text is its own normal form, and no white space.
bool ends_in_stable_character(std::string_view text, Normalization form) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  const std::string_view character = text.substr(begin);
  std::string_view rest = character;
  return !is_white_space(next_code_point(rest)) && normalize(character, form) == character;
}

}  // namespace

std::unique_ptr<Tokenizer> NormalizedTokenizer::load(std::string_view saved) {
  const std::size_t end = std::min(saved.find('\n'), saved.size());
  const Normalization form = parse_normalization(saved.substr(0, end));
  const std::string_view rest = saved.substr(std::min(end + 1, saved.size()));
  // Refused before they are read: headers that are nested without limit would exhaust the stack.
  const bool nested = rest.starts_with(kHeader) || rest.starts_with(kUsedHeader);
  check<CorpusError>(form != Normalization::none && !nested, "tokenizer: the saved normalization is damaged");
  return std::make_unique<NormalizedTokenizer>(load_tokenizer(rest), form);
}

std::string NormalizedTokenizer::save_encoding() const {
  return std::string(kHeader) + to_string(form_) + '\n' + inner_->save();
}

// In normalized text, every character is its own normal form, so these are the inner tokenizer's.
std::map<char32_t, std::int64_t> NormalizedTokenizer::unknown(std::string_view text) const {
  std::map<char32_t, std::int64_t> lacking = inner_->unknown(normalize(text, form_)), written;
  if (lacking.empty()) return {};
  while (!text.empty()) ++written[next_code_point(text)];
  return as_written(std::move(lacking), written, form_);
}

std::vector<std::int32_t> NormalizedTokenizer::encode(std::string_view text) const {
  return inner_->encode_normalized(text, form_, /*specials=*/false);
}

void NormalizedTokenizer::encode(std::string_view text, Tokens& ids) const {
  if (inner_->finds_added_tokens()) return Tokenizer::encode(text, ids);
  inner_->encode(normalize(text, form_), ids);
}

void NormalizedTokenizer::encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                                       const std::function<void()>& after) const {
  if (inner_->finds_added_tokens()) return Tokenizer::encode_texts(texts, ids, after);
  // Texts are collected up to this size, so that many short ones are encoded together: 64 parts of BpeTokenizer.
  constexpr std::size_t kPartBytes = 1 << 22;
  std::vector<std::string> normalized;
  std::size_t bytes = 0;
  const auto encode_normalized = [&] {
    inner_->encode_texts(std::vector<std::string_view>(normalized.begin(), normalized.end()), ids, after);
    normalized.clear();
    bytes = 0;
  };
  for (const std::string_view text : texts) {
    bytes += normalized.emplace_back(normalize(text, form_)).size();
    if (bytes >= kPartBytes) encode_normalized();
  }
  encode_normalized();
}

std::vector<std::int32_t> NormalizedTokenizer::encode_with_specials(std::string_view text) const {
  return inner_->encode_normalized(text, form_, /*specials=*/true);
}

std::vector<std::int32_t> NormalizedTokenizer::encode_line(std::string_view line) const {
  if (inner_->finds_added_tokens()) return encode(line);
  return inner_->encode_line(normalize(line, form_));
}

// A text may be normalized in two parts if the second begins with ASCII, with which nothing before it combines. Here
// this is a space or newline, after a character that stays what it is, unless a token that is found in the text may
// stand there. From one cut of the inner tokenizer to the next, because it may look at all of the text to find one.
std::size_t NormalizedTokenizer::next_cut(std::string_view text, std::size_t at) const {
  for (at = std::max<std::size_t>(at, 1); at < text.size(); ++at) {
    at = inner_->next_cut(text, at);
    if (at < text.size() && (text[at] == ' ' || text[at] == '\n') &&
        ends_in_stable_character(text.substr(0, at), form_))
      return at;
  }
  return text.size();
}

std::unique_ptr<Tokenizer> with_normalization(std::unique_ptr<Tokenizer> inner, Normalization form) {
  if (form == Normalization::none) return inner;
  return std::make_unique<NormalizedTokenizer>(std::move(inner), form);
}

}  // namespace maki
