// What files of other programs say about a byte-level BPE tokenizer, before it is checked and becomes one.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/normalization.h"
#include "data/tokenizer/token_list.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

struct VocabularyText {
  TokenList names;                       ///< of tokens, in GPT-2's characters for bytes
  std::vector<std::int32_t> ids;         ///< of these tokens
  TokenList merges;                      ///< the names of two tokens, with a space between them, in order of rank
  TokenList added;                       ///< the text of added tokens; they may be in `names` as well
  std::vector<AddedToken> added_tokens;  ///< of these texts
  /// Tokens that are neither bytes nor made by a merge nor added are special tokens, because encoding never gives them.
  /// Those that two other tokens make up must be in `roles`, or have the form <…> or […]: others mean that merges are
  /// missing. The names of tokens need not be in GPT-2's characters then.
  bool unreachable_are_special = false;
  std::set<std::string> roles;  ///< the texts of tokens that have a role
  std::string rule = "gpt2";    ///< of the pre-tokenizer
  Normalization normalization = Normalization::none;
  bool whole_pieces = false;
};

/// Reads the text of a vocab.json, an object of names and ids, into `vocabulary`. Throws CorpusError.
void read_vocab_json(std::string_view json, VocabularyText& vocabulary);
/// Reads the text of a merges.txt: the lines that are not empty, without a first line that begins with #version.
/// make_tokenizer() checks them.
void read_merges_text(std::string_view text, VocabularyText& vocabulary);
/// Reads the text of a tokenizer.json. Throws CorpusError, naming it, for anything that cannot be honoured.
void read_tokenizer_json(std::string_view json, VocabularyText& vocabulary);
/// The tokenizer of a .tiktoken file: lines of a token in base64 and its rank, in order of rank. What such a file does
/// not say, rule, special tokens and normalization, follows from the number of ranks for the vocabularies of GPT-2,
/// GPT-4, Llama 3, Qwen, GPT-4o and Llama 4; any other has the rule gpt2 and no special tokens. Throws CorpusError.
std::unique_ptr<Tokenizer> read_tiktoken(std::string_view text);

/// Throws CorpusError unless the ids are 0, 1, 2, … without gaps and the vocabulary is one of byte-level BPE. Consumes
/// the text.
std::unique_ptr<Tokenizer> make_tokenizer(VocabularyText vocabulary);

}  // namespace maki
