#include "data/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <functional>

#include "autograd/core/table.h"
#include "data/io/error.h"
#include "data/io/hash.h"
#include "data/io/utf8.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/word_tokenizer.h"

namespace maki {
namespace {

constexpr const TokenizerKind* kKinds[] = {&kCharTokenizer, &kByteTokenizer, &kWordTokenizer, &kBpeTokenizer};
constexpr Table kTokenizerKinds("tokenizer", kKinds);

}  // namespace

std::string Tokenizer::decode(TokenSpan ids) const {
  constexpr std::size_t kBlockTokens = 1 << 16;  // per read: few calls, 256 KiB of memory
  std::string text;
  for (std::size_t at = 0; at < ids.size(); at += kBlockTokens)
    for (const std::int32_t id : ids.ids(at, kBlockTokens)) text += bytes(id);
  return text;
}

std::vector<std::int32_t> Tokenizer::ends() const {
  if (!use_.ends.empty()) return use_.ends;
  const std::optional<std::int32_t> named = named_end();
  return named ? std::vector{*named} : std::vector<std::int32_t>();
}

std::optional<std::int32_t> Tokenizer::end_of_text() const {
  return use_.ends.empty() ? named_end() : std::optional(use_.ends.front());
}

void Tokenizer::set_use(const TokenUse& use) { use_ = parse_token_use(token_use_json(use), vocab_size()); }

std::string Tokenizer::save() const {
  if (use_ == TokenUse()) return save_encoding();
  return std::string(kUsedHeader) + token_use_json(use_) + '\n' + save_encoding();
}

std::vector<std::int32_t> Tokenizer::encode_normalized(std::string_view text, Normalization form,
                                                       bool /*specials*/) const {
  return encode(normalize(text, form));
}

void Tokenizer::encode(std::string_view text, Tokens& ids) const {
  constexpr std::size_t kBlockBytes = 1 << 12;  // of text: its ids stay in the level-1 cache until they are packed
  while (!text.empty()) {
    const std::size_t size = next_cut(text, std::min(kBlockBytes, text.size()));
    ids.append(encode(text.substr(0, size)));
    text.remove_prefix(size);
  }
}

void Tokenizer::encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                             const std::function<void()>& after) const {
  for (const std::string_view text : texts) {
    encode(text, ids);
    after();
  }
}

std::size_t Tokenizer::next_cut(std::string_view text, std::size_t at) const {
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

std::string Tokenizer::hash() const { return hash128_hex(save()); }

void check_token_id(std::int32_t id, std::int64_t vocab_size) {
  check<CorpusError>(id >= 0 && id < vocab_size, "tokenizer: ids must be in [0, {}); got {}", vocab_size, id);
}

std::string unknown_sentence(std::int64_t vocab_size, const std::map<char32_t, std::int64_t>& unknown) {
  constexpr std::size_t kMaxListedCharacters = 12;  // enough for a message
  std::vector<std::pair<char32_t, std::int64_t>> characters(unknown.begin(), unknown.end());
  std::ranges::stable_sort(characters, std::greater(), [](const auto& entry) { return entry.second; });
  std::string list;
  for (std::size_t i = 0; i < std::min(kMaxListedCharacters, characters.size()); ++i) {
    const auto& [c, count] = characters[i];
    list += (i == 0 ? "" : ", ") + describe_code_point(c) + (count > 1 ? fmt::format(" {} times", count) : "");
  }
  if (characters.size() > kMaxListedCharacters)
    list += fmt::format(" and {} more", characters.size() - kMaxListedCharacters);
  return fmt::format("tokenizer: the vocabulary of {} tokens lacks these characters: {}; leave them out", vocab_size,
                     list);
}

std::vector<std::string> tokenizer_names() { return kTokenizerKinds.names(); }

const TokenizerKind& tokenizer_kind(std::string_view name) { return kTokenizerKinds.row<CorpusError>(name); }

bool is_by_character(const Tokenizer& tokenizer) {
  return tokenizer_kind(tokenizer.kind()).vocabulary == Vocabulary::characters &&
         tokenizer.normalization() == Normalization::none;
}

std::string tokenizer_help() {
  std::vector<std::string> units;
  for (const TokenizerKind* const kind : kTokenizerKinds) units.push_back(fmt::format("per {}", kind->unit));
  return fmt::format("tokenizer: one token {}", fmt::join(units, ", "));
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, const TextToLearn& text,
                                          const TokenizerOptions& options) {
  const TokenizerKind& row = tokenizer_kind(kind);
  if (options.normalization == Normalization::none) return row.make(text, options);
  const auto normalized = [&](const TextToLearn::Pieces& pieces) {
    std::vector<std::string> texts;
    for (const std::string_view piece : pieces) texts.push_back(normalize(piece, options.normalization));
    return texts;
  };
  const auto views = [](const std::vector<std::string>& texts) {
    return TextToLearn::Pieces(texts.begin(), texts.end());
  };
  const std::vector<std::string> learned = normalized(text.learned), others = normalized(text.others);
  return std::make_unique<NormalizedTokenizer>(row.make({views(learned), views(others)}, options),
                                               options.normalization);
}

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved) {
  if (saved.starts_with(kUsedHeader)) {
    const std::string_view rest = saved.substr(kUsedHeader.size());
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view encoding = rest.substr(std::min(end + 1, rest.size()));
    check<CorpusError>(end > std::string_view("{}").size() && !encoding.starts_with(kUsedHeader),
                       "tokenizer: what is saved about the use of its tokens is damaged");
    std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(encoding);
    tokenizer->set_use(parse_token_use(rest.substr(0, end), tokenizer->vocab_size()));
    return tokenizer;
  }
  constexpr std::string_view kNormalized = NormalizedTokenizer::kHeader;
  if (saved.starts_with(kNormalized)) return NormalizedTokenizer::load(saved.substr(kNormalized.size()));
  const auto found =
      std::ranges::find_if(kTokenizerKinds, [&](const TokenizerKind* kind) { return saved.starts_with(kind->header); });
  check<CorpusError>(found != kTokenizerKinds.end(),
                     "tokenizer: the saved tokenizer has a kind or version that this version of maki does not know");
  return (*found)->load(saved.substr((*found)->header.size()));
}

}  // namespace maki
