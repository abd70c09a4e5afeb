#include "data/tokenizer/char_tokenizer.h"

#include <algorithm>
#include <functional>

#include "data/io/error.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

std::unique_ptr<Tokenizer> make_char(const TextToLearn& text, const TokenizerOptions& /*options*/) {
  return std::make_unique<CharTokenizer>(text);
}

// The saved form is the characters of the vocabulary in ascending order, as UTF-8.
std::unique_ptr<Tokenizer> load_char(std::string_view saved) {
  check<CorpusError>(!saved.empty() && !invalid_utf8(saved), "tokenizer: the saved vocabulary is damaged");
  auto tokenizer = std::make_unique<CharTokenizer>(saved);
  check<CorpusError>(tokenizer->save().substr(kCharTokenizer.header.size()) == saved,
                     "tokenizer: the saved vocabulary is not in ascending order");
  return tokenizer;
}

}  // namespace

constinit const TokenizerKind kCharTokenizer = {
    "char", "character", "characters", Vocabulary::characters, "maki char tokenizer 1\n", make_char, load_char};

CharTokenizer::CharTokenizer(const TextToLearn& text) {
  for (const TextToLearn::Pieces& pieces : {std::cref(text.learned), std::cref(text.others)}) {
    for (std::string_view rest : pieces) {
      while (!rest.empty()) {
        const char32_t c = next_code_point(rest);
        if (c >= ids_.size()) ids_.resize(c + 1, -1);
        ids_[c] = 0;
      }
    }
  }
  for (char32_t c = 0; c < ids_.size(); ++c) {
    if (ids_[c] < 0) continue;
    ids_[c] = static_cast<std::int32_t>(ends_.size());
    append_utf8(characters_, c);
    ends_.push_back(static_cast<std::uint32_t>(characters_.size()));
  }
}

std::size_t CharTokenizer::token_bound(std::string_view text) const {
  return static_cast<std::size_t>(count_code_points(text));
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  const auto bad = invalid_utf8(text);
  check<CorpusError>(!bad, "tokenizer: the text must be UTF-8; byte {} is not; convert it, as iconv does",
                     bad.value_or(0));
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(count_code_points(text)));
  for (std::string_view left = text; !left.empty();) {
    const std::int32_t id = id_of(next_code_point(left));
    if (id < 0) throw CorpusError(unknown_sentence(vocab_size(), unknown(text)));
    ids.push_back(id);
  }
  return ids;
}

std::map<char32_t, std::int64_t> CharTokenizer::unknown(std::string_view text) const {
  std::map<char32_t, std::int64_t> counts;
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    if (id_of(c) < 0) ++counts[c];
  }
  return counts;
}

std::string_view CharTokenizer::bytes(std::int32_t id) const {
  check_token_id(id, vocab_size());
  const auto i = static_cast<std::size_t>(id);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(characters_).substr(begin, ends_[i] - begin);
}

std::string CharTokenizer::save_encoding() const { return std::string(kCharTokenizer.header) + characters_; }

}  // namespace maki
