#include "data/tokenizer/vocabulary_text.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/normalized_tokenizer.h"

namespace maki {
namespace {

// Where each id is described: an index into names, or behind them into added.
std::vector<std::int64_t> sources_by_id(const VocabularyText& text) {
  const TokenIndex names(text.names);
  const auto count = static_cast<std::int64_t>(text.names.size());
  std::vector<std::pair<std::int32_t, std::int64_t>> sources;
  for (std::int64_t i = 0; i < count; ++i) sources.emplace_back(text.ids[static_cast<std::size_t>(i)], i);
  for (std::size_t i = 0; i < text.added.size(); ++i) {
    const std::int32_t named = names.find(text.added[i]), id = text.added_tokens[i].id;
    check<CorpusError>(named < 0 || text.ids[static_cast<std::size_t>(named)] == id,
                       "tokenizer: the special token {} must have one id; it has {} and {}",
                       truncate_for_message(text.added[i]), id,
                       named < 0 ? id : text.ids[static_cast<std::size_t>(named)]);
    if (named >= 0) {
      sources[static_cast<std::size_t>(named)].second = count + static_cast<std::int64_t>(i);
    } else {
      sources.emplace_back(id, count + static_cast<std::int64_t>(i));
    }
  }
  std::ranges::sort(sources);
  std::vector<std::int64_t> by_id;
  for (const auto& [id, source] : sources) {
    const auto next = static_cast<std::int32_t>(by_id.size());
    check<CorpusError>(id == next, "tokenizer: {} tokens must have the ids 0 to {}, each once; id {} is {}",
                       sources.size(), sources.size() - 1, std::min(id, next), id < next ? "repeated" : "missing");
    by_id.push_back(source);
  }
  return by_id;
}

std::string bytes_named(std::string_view name) {
  const auto bytes = from_byte_characters(name);
  check<CorpusError>(bytes && !bytes->empty(),
                     "tokenizer: the tokens of byte-level BPE consist of characters that stand for bytes; {} does not",
                     truncate_for_message(name));
  return *bytes;
}

std::int32_t find_named(const TokenIndex& index, std::string_view name, std::string_view merge) {
  const auto bytes = from_byte_characters(name);
  const std::int32_t id = bytes ? index.find(*bytes) : -1;
  check<CorpusError>(id >= 0, "tokenizer: a merge must name tokens of the vocabulary; {} in {} is none",
                     truncate_for_message(name), truncate_for_message(merge));
  return id;
}

std::vector<BpeMerge> merges_of(const TokenList& names, const TokenList& tokens) {
  const TokenIndex index(tokens);
  std::vector<BpeMerge> merges;
  merges.reserve(names.size());
  std::string bytes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view merge = names[i];
    const std::size_t space = merge.find(' ');
    check<CorpusError>(space != std::string_view::npos && merge.find(' ', space + 1) == std::string_view::npos,
                       "tokenizer: a merge must be two tokens with a space between them; got {}",
                       truncate_for_message(merge));
    const std::int32_t left = find_named(index, merge.substr(0, space), merge),
                       right = find_named(index, merge.substr(space + 1), merge);
    bytes.assign(tokens[static_cast<std::size_t>(left)]).append(tokens[static_cast<std::size_t>(right)]);
    merges.push_back({left, right, index.find(bytes)});
    check<CorpusError>(merges.back().merged >= 0, "tokenizer: the vocabulary lacks the token that the merge {} makes",
                       truncate_for_message(merge));
  }
  return merges;
}

bool has_special_form(std::string_view text) {
  const auto within = [&](char first, char last) { return text.starts_with(first) && text.ends_with(last); };
  return text.size() > 2 && (within('<', '>') || within('[', ']'));
}

// Whether two tokens of the vocabulary make up this one, as they make up each that was learned: if no merge makes it,
// its merge is missing. Of words that were added, such as `madeupword0000`, this is hardly ever true.
bool is_made_of_two(std::string_view token, const TokenIndex& tokens) {
  constexpr std::size_t kLongest = 256;  // in bytes: learned tokens are shorter, and all pairs of parts are looked up
  if (token.size() > kLongest) return false;
  for (std::size_t at = 1; at < token.size(); ++at) {
    if (tokens.find(token.substr(0, at)) >= 0 && tokens.find(token.substr(at)) >= 0) return true;
  }
  return false;
}

// Adds the tokens of two bytes or more that no merge makes, and throws for one whose merge is missing. A role names a
// token by its bytes or by its characters.
void add_unreachable(BpeParts& parts, const std::set<std::string>& roles) {
  std::vector<bool> made(parts.tokens.size());
  for (const BpeMerge& merge : parts.merges) made[static_cast<std::size_t>(merge.merged)] = true;
  for (const AddedToken& token : parts.added) made[static_cast<std::size_t>(token.id)] = true;
  const TokenIndex index(parts.tokens);
  for (std::size_t id = 0; id < made.size(); ++id) {
    const std::string_view token = parts.tokens[id];
    if (made[id] || token.size() < 2) continue;
    const std::string name = to_byte_characters(token);
    const bool is_special = has_special_form(token) || roles.contains(name) || roles.contains(std::string(token));
    check<CorpusError>(is_special || !is_made_of_two(token, index),
                       "tokenizer: merges.txt (or vocab.bpe) must make every token that two others make up and that is "
                       "not special; it does not make {}; get the whole file, or name the token in added_tokens.json",
                       truncate_for_message(name));
    parts.added.push_back({.id = static_cast<std::int32_t>(id)});
  }
  std::ranges::sort(parts.added, {}, &AddedToken::id);
}

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(VocabularyText text) {
  BpeParts parts;
  parts.rule = text.rule;
  parts.whole_pieces = text.whole_pieces;
  const auto names = static_cast<std::int64_t>(text.names.size());
  for (const std::int64_t source : sources_by_id(text)) {
    if (source >= names) {
      const auto i = static_cast<std::size_t>(source - names);
      parts.added.push_back(text.added_tokens[i]);
      parts.tokens.add(text.added[i]);
      continue;
    }
    const std::string_view name = text.names[static_cast<std::size_t>(source)];
    const bool free_text = text.unreachable_are_special && !from_byte_characters(name);
    parts.tokens.add(free_text ? std::string(name) : bytes_named(name));
  }
  parts.merges = merges_of(text.merges, parts.tokens);
  if (text.unreachable_are_special) add_unreachable(parts, text.roles);
  const Normalization form = text.normalization;
  text = {};
  return with_normalization(std::make_unique<BpeTokenizer>(std::move(parts)), form);
}

}  // namespace maki
