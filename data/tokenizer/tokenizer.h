// Tokenizers: text to token ids and back. Lossless: decode(encode(text)) == text for every text that can be encoded;
// with a tokenizer that normalizes text, it is the normalized text.
//
// Thread safety: tokenizers are immutable and may be used by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/normalization.h"
#include "data/tokenizer/token_use.h"
#include "data/tokenizer/tokens.h"

namespace maki {

struct BpeParts;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;  ///< the name of a TokenizerKind
  virtual std::int64_t vocab_size() const = 0;
  /// The ids of the tokens that end a text: those of use() or, if it names none, the special token that the vocabulary
  /// has for this, if it has one.
  std::vector<std::int32_t> ends() const;
  /// The first of these, which ends a document; none if the vocabulary has no such token.
  std::optional<std::int32_t> end_of_text() const;
  /// How text is normalized before it is encoded.
  virtual Normalization normalization() const { return Normalization::none; }
  /// The vocabulary and merges of byte-level BPE, with or without normalization; null for other kinds.
  virtual const BpeParts* bpe_parts() const { return nullptr; }
  /// How the model uses the tokens, as far as that was said.
  const TokenUse& use() const { return use_; }
  /// Throws CorpusError unless all ids are in [0, vocab_size). Call it before the tokenizer is shared.
  void set_use(const TokenUse& use);
  /// An upper bound on the number of tokens of a text, for reserving memory; usually close to it. A tokenizer that
  /// normalizes may exceed it, because the normalized text can be longer.
  virtual std::size_t token_bound(std::string_view text) const = 0;
  /// The characters of well-formed UTF-8 text that the vocabulary lacks, each with the number of its occurrences. Empty
  /// for tokenizers that can encode anything.
  virtual std::map<char32_t, std::int64_t> unknown(std::string_view) const { return {}; }
  /// The ids of a text. Throws CorpusError, naming the characters, if the vocabulary lacks some, or if a tokenizer that
  /// needs UTF-8 gets other bytes.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The ids of a text in which a written special token, such as <|endoftext|>, is that token, whereas encode() treats
  /// it as any other text. Throws what encode() throws.
  virtual std::vector<std::int32_t> encode_with_specials(std::string_view text) const { return encode(text); }
  /// The ids of a text that is normalized first, except for tokens that are found in it as it is; with `specials` as
  /// encode_with_specials() does, else as encode().
  virtual std::vector<std::int32_t> encode_normalized(std::string_view text, Normalization form, bool specials) const;
  /// Whether encode() finds added tokens in a text (AddedToken::always).
  virtual bool finds_added_tokens() const { return false; }
  /// The bytes of one id, valid as long as the tokenizer; of a special token its text. Throws CorpusError if the id is
  /// outside [0, vocab_size).
  virtual std::string_view bytes(std::int32_t id) const = 0;
  /// The concatenated bytes of the ids. Throws as bytes() does.
  std::string decode(TokenSpan ids) const;
  /// Appends the ids of a text to `ids`. Encodes block after block, so that a long text needs hardly any memory beyond
  /// that of `ids` (a tokenizer that normalizes holds the normalized text). Throws as encode(text) does; the ids of the
  /// blocks before then stay.
  virtual void encode(std::string_view text, Tokens& ids) const;
  /// Appends the ids of several texts, calling `after` at the end of each, also of an empty one.
  virtual void encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                            const std::function<void()>& after) const;
  /// The first position from `at` on where it is known that a text can be cut so that its two parts, encoded one after
  /// the other, have the ids of the whole; text.size() if there is none. Some tokenizers never give 0 for text that is
  /// not empty. The default is for tokenizers whose ids can be cut between any two characters. Requires:
  /// at <= text.size().
  virtual std::size_t next_cut(std::string_view text, std::size_t at) const;

  /// encode() and decode() for a line that stands alone, such as a sentence of a translation. A tokenizer of words
  /// treats it as if a space stood before it.
  virtual std::vector<std::int32_t> encode_line(std::string_view line) const { return encode(line); }
  virtual std::string decode_line(TokenSpan ids) const { return decode(ids); }

  /// Canonical bytes from which load_tokenizer() restores the same tokenizer.
  std::string save() const;
  /// Identifies the tokenizer: XXH3-128 of save(), in hexadecimal.
  std::string hash() const;
  /// Whether both give the same ids for every text. What use() says may differ.
  bool encodes_like(const Tokenizer& other) const { return save_encoding() == other.save_encoding(); }

 protected:
  /// The part of save() that use() has no part in.
  virtual std::string save_encoding() const = 0;
  virtual std::optional<std::int32_t> named_end() const { return {}; }

 private:
  TokenUse use_;
};

/// The text of a new vocabulary, in any number of pieces, which must outlive this.
struct TextToLearn {
  using Pieces = std::vector<std::string_view>;
  TextToLearn(Pieces learned_from, Pieces must_be_encodable)
      : learned(std::move(learned_from)), others(std::move(must_be_encodable)) {}
  TextToLearn(std::string_view text) : learned{text} {}
  TextToLearn(const std::string& text) : learned{text} {}
  TextToLearn(const char* text) : learned{text} {}

  Pieces learned;  ///< words, or frequent sequences of bytes, are learned from it
  /// Validation text: its characters are in the vocabulary, because they must be encodable, but nothing else is learned
  /// from it.
  Pieces others;
};

/// What a new tokenizer is like.
struct TokenizerOptions {
  std::int64_t vocab_size = 1024;  ///< the largest size of the vocabulary, for kinds with a limit
  Normalization normalization = Normalization::none;
};

/// What the tokens of a vocabulary are.
enum class Vocabulary : std::uint8_t {
  bytes,       ///< all 256, whatever the text
  characters,  ///< those that occur in the text
  learned      ///< what is frequent in the text
};

/// A kind of tokenizer: a row of the table in tokenizer.cpp.
struct TokenizerKind {
  const char* name;
  const char* unit;    ///< what one token stands for, as the help says it: "character"
  const char* plural;  ///< of several tokens: "characters"
  Vocabulary vocabulary;
  /// The first line of the saved form, which names the kind and the version.
  std::string_view header;
  /// Creates a tokenizer with the vocabulary of a text.
  std::unique_ptr<Tokenizer> (*make)(const TextToLearn& text, const TokenizerOptions& options);
  /// Restores a tokenizer from the bytes that follow the header. Throws CorpusError if they are damaged.
  std::unique_ptr<Tokenizer> (*load)(std::string_view saved);
  bool has_limit = false;     ///< whether TokenizerOptions::vocab_size limits the vocabulary
  bool spaced_words = false;  ///< whether the first token of a word includes the space before it
};

std::vector<std::string> tokenizer_names();
/// The row of this name. Throws CorpusError, which suggests the nearest name, if there is none.
const TokenizerKind& tokenizer_kind(std::string_view name);
/// Whether each token is one character of the text, which is encoded as it is.
bool is_by_character(const Tokenizer& tokenizer);
/// A line of help: what one token stands for in each kind.
std::string tokenizer_help();
/// A new tokenizer of a kind, with the vocabulary of a text, which is not needed afterwards. Throws CorpusError for a
/// kind that does not exist, and for options that it does not allow. Requires: the text is well-formed UTF-8.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, const TextToLearn& text,
                                          const TokenizerOptions& options = {});
/// Restores a tokenizer from the bytes of save(). Throws CorpusError for any other bytes.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved);

/// The error message for characters that a vocabulary of this size lacks. Lists at most 12, the most frequent first.
std::string unknown_sentence(std::int64_t vocab_size, const std::map<char32_t, std::int64_t>& unknown);

/// Throws CorpusError unless 0 <= id < vocab_size.
void check_token_id(std::int32_t id, std::int64_t vocab_size);

}  // namespace maki
