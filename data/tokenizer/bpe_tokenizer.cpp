#include "data/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <exception>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/io/error.h"
#include "data/tokenizer/bpe_trainer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/piece_map.h"

namespace maki {
namespace {

// The names under which known vocabularies have their end-of-text token, the most usual first.
constexpr std::string_view kEndNames[] = {kEndOfText, "<|end_of_text|>", "</s>"};

std::array<std::int32_t, 256> byte_ids(const TokenIndex& index) {
  std::array<std::int32_t, 256> ids{};
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    ids[static_cast<std::size_t>(byte)] = index.find(std::string_view(&text, 1));
    check<CorpusError>(ids[static_cast<std::size_t>(byte)] >= 0,
                       "tokenizer: byte-level BPE needs a token for each of the 256 bytes; there is none for 0x{:02X}; "
                       "train the tokenizer with the whole alphabet",
                       byte);
  }
  return ids;
}

std::string shown(std::string_view token) { return truncate_for_message(to_byte_characters(token)); }

}  // namespace

// Ids of the pieces that one thread has met, because most pieces of a text occur often.
class BpeTokenizer::Cache {
 public:
  explicit Cache(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Appends the ids of a piece, whose bytes must outlive the cache.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    constexpr std::size_t kMaxPieces = 1 << 17;  // bound the memory of a thread to some megabytes
    constexpr std::size_t kMaxPieceBytes = 128;  // longer pieces hardly occur again
    const bool full = pieces_.size() >= kMaxPieces && pieces_.find(piece) == nullptr;
    if (full || piece.size() > kMaxPieceBytes) return tokenizer_.encode_piece(piece, ids);
    Part& part = pieces_.at_or_insert(piece, {0, 0});
    if (part.count == 0) {
      const std::size_t begin = ids_.size();
      tokenizer_.encode_piece(piece, ids_);
      part = {begin, ids_.size() - begin};
    }
    const auto from = ids_.begin() + static_cast<std::ptrdiff_t>(part.begin);
    ids.insert(ids.end(), from, from + static_cast<std::ptrdiff_t>(part.count));
  }

 private:
  struct Part {
    std::size_t begin, count;  // of ids_
  };
  const BpeTokenizer& tokenizer_;
  PieceMap<Part> pieces_;
  std::vector<std::int32_t> ids_;
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : parts_(std::move(parts)), pre_tokenizer_(parts_.rule), index_(parts_.tokens), encoder_(byte_ids(index_)) {
  check_tokens();
  add_merges();
  added_ = AddedTokens(parts_.added, parts_.tokens);
  for (const std::string_view name : kEndNames) {
    const std::int32_t id = index_.find(name);
    if (named_end_ || id < 0 || !is_added(parts_.added, id)) continue;
    named_end_ = id;
  }
}

// Here and below, check() would spend most of the time on descriptions of valid tokens.
void BpeTokenizer::check_tokens() {
  check<CorpusError>(vocab_size() <= kMaxBpeVocabulary, "tokenizer: a vocabulary may have at most {} tokens; got {}",
                     kMaxBpeVocabulary, vocab_size());
  for (std::size_t id = 0; id < parts_.tokens.size(); ++id) {
    const std::string_view token = parts_.tokens[id];
    check<CorpusError>(!token.empty(), "tokenizer: no token may be empty; token {} is", id);
    const std::int32_t first = index_.find(token);
    if (first != static_cast<std::int32_t>(id))
      fail<CorpusError>("tokenizer: tokens must be distinct; {} and {} are both {}", first, id, shown(token));
  }
  const std::vector<AddedToken>& added = parts_.added;
  check<CorpusError>(std::ranges::adjacent_find(added, std::greater_equal<>(), &AddedToken::id) == added.end(),
                     "tokenizer: the ids of special tokens must be ascending");
  for (const AddedToken& token : added) {
    check_token_id(token.id, vocab_size());
    const std::string_view text = parts_.tokens[static_cast<std::size_t>(token.id)];
    check<CorpusError>(text.size() > 1, "tokenizer: a special token must have two bytes or more; token {} is {}",
                       token.id, shown(text));
  }
}

void BpeTokenizer::add_merges() {
  encoder_.reserve(parts_.merges.size());
  std::string bytes;
  for (std::size_t rank = 0; rank < parts_.merges.size(); ++rank) {
    const BpeMerge& merge = parts_.merges[rank];
    for (const std::int32_t id : {merge.left, merge.right, merge.merged}) {
      check_token_id(id, vocab_size());
      if (is_added(parts_.added, id))
        fail<CorpusError>(
            "tokenizer: no merge may contain an added token; merge {} contains {}, which is added with the id {}; "
            "remove it from the added tokens",
            rank, truncate_for_message(this->bytes(id)), id);
    }
    bytes.assign(this->bytes(merge.left)).append(this->bytes(merge.right));
    if (this->bytes(merge.merged) != bytes)
      fail<CorpusError>("tokenizer: merge {} must make {}; it makes {}", rank, shown(bytes),
                        shown(this->bytes(merge.merged)));
    if (!encoder_.add(merge))
      fail<CorpusError>("tokenizer: merge {} repeats an earlier one: {} and {}", rank, shown(this->bytes(merge.left)),
                        shown(this->bytes(merge.right)));
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
  constexpr std::size_t kMaxPieceBytes = (std::size_t{1} << 31) - 1;  // the encoder counts them as int32
  check<CorpusError>(piece.size() <= kMaxPieceBytes,
                     "tokenizer: a run of letters, digits or spaces may have at most {} bytes; got {}", kMaxPieceBytes,
                     piece.size());
  if (parts_.whole_pieces) {
    const std::int32_t id = index_.find(piece);
    if (id >= 0 && !is_added(parts_.added, id)) return ids.push_back(id);
  }
  encoder_.encode(piece, ids);
}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text) const {
  return encode_normalized(text, Normalization::none, /*specials=*/false);
}

void BpeTokenizer::encode(std::string_view text, Tokens& ids) const {
  encode_texts({&text, 1}, ids, [] {});
}

// Appends the ids of a part of a text, which must outlive the cache.
void BpeTokenizer::encode_part(std::string_view part, Cache& cache, std::vector<std::int32_t>& ids) const {
  const auto encode_ordinary = [&](std::string_view ordinary) {
    pre_tokenizer_.split(ordinary, [&](std::string_view piece) { cache.encode(piece, ids); });
  };
  if (!added_.any_always()) return encode_ordinary(part);
  added_.split(part, Normalization::none, /*specials=*/false, encode_ordinary,
               [&](std::int32_t id) { ids.push_back(id); });
}

void BpeTokenizer::encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                                const std::function<void()>& after) const {
  constexpr std::size_t kPartBytes = 1 << 16;  // of text, which a thread encodes at a time: some milliseconds of work
  constexpr std::size_t kPartsPerThread = 16;  // between two barriers: all threads finish at about the same time
  const std::size_t batch = kPartsPerThread * static_cast<std::size_t>(threads());
  std::vector<Cache> caches(static_cast<std::size_t>(threads()), Cache(*this));
  std::vector<std::string_view> parts;
  std::vector<bool> is_last;  // of each part, in its text
  std::vector<std::vector<std::int32_t>> encoded(batch);
  std::vector<std::exception_ptr> errors(batch);
  std::string_view text;
  for (std::size_t next = 0; next < texts.size() || !text.empty();) {
    for (parts.clear(), is_last.clear(); parts.size() < batch && (next < texts.size() || !text.empty());) {
      if (text.empty()) text = texts[next++];
      parts.push_back(text.substr(0, next_cut(text, std::min(kPartBytes, text.size()))));
      text.remove_prefix(parts.back().size());
      is_last.push_back(text.empty());
    }
    parallel_for(std::ssize(parts), kMinParallelWork, [&](std::int64_t part, std::int64_t worker) {
      const auto i = static_cast<std::size_t>(part);
      encoded[i].clear();
      try {
        encode_part(parts[i], caches[static_cast<std::size_t>(worker)], encoded[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (errors[i]) std::rethrow_exception(errors[i]);
      ids.append(encoded[i]);
      if (is_last[i]) after();
    }
  }
}

std::vector<std::int32_t> BpeTokenizer::encode_with_specials(std::string_view text) const {
  return encode_normalized(text, Normalization::none, /*specials=*/true);
}

std::vector<std::int32_t> BpeTokenizer::encode_normalized(std::string_view text, Normalization form,
                                                          bool specials) const {
  std::vector<std::int32_t> ids;
  const auto encode_ordinary = [&](std::string_view ordinary) {
    pre_tokenizer_.split(ordinary, [&](std::string_view piece) { encode_piece(piece, ids); });
  };
  if (specials || added_.any_always()) {
    added_.split(text, form, specials, encode_ordinary, [&](std::int32_t id) { ids.push_back(id); });
  } else if (form == Normalization::none) {
    encode_ordinary(text);
  } else {
    encode_ordinary(normalize(text, form));
  }
  return ids;
}

std::string_view BpeTokenizer::bytes(std::int32_t id) const {
  check_token_id(id, vocab_size());
  return parts_.tokens[static_cast<std::size_t>(id)];
}

std::size_t BpeTokenizer::next_cut(std::string_view text, std::size_t at) const {
  return added_.may_span_cuts() ? text.size() : pre_tokenizer_.next_cut(text, at);
}

BpeParts learn_bpe(const TextToLearn& text, std::int64_t vocab_size) {
  check<CorpusError>(vocab_size >= kMinBpeVocabulary && vocab_size <= kMaxBpeVocabulary,
                     "vocab_size: must be in [{}, {}] for byte-level BPE, which has 256 bytes and {}; got {}",
                     kMinBpeVocabulary, kMaxBpeVocabulary, kEndOfText, vocab_size);
  BpeParts parts;
  for (const std::uint8_t byte : bytes_by_character()) {
    const char text_of_byte = static_cast<char>(byte);
    parts.tokens.add(std::string_view(&text_of_byte, 1));
  }
  parts.merges = train_bpe(count_pieces(text.learned, PreTokenizer(parts.rule)), vocab_size - 1);
  for (const BpeMerge& merge : parts.merges) {
    if (merge.merged != static_cast<std::int32_t>(parts.tokens.size())) continue;  // a token that existed already
    std::string bytes(parts.tokens[static_cast<std::size_t>(merge.left)]);
    parts.tokens.add(bytes.append(parts.tokens[static_cast<std::size_t>(merge.right)]));
  }
  parts.added = {{.id = static_cast<std::int32_t>(parts.tokens.size())}};
  parts.tokens.add(kEndOfText);
  return parts;
}

}  // namespace maki
