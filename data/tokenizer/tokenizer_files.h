// Tokenizers in the files of other programs: tokenizer.json (Hugging Face), vocab.json with merges.txt (GPT-2) and
// .tiktoken files, all of byte-level BPE. docs/formats.md describes what of each format is honoured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The name of the file in which an exported model or exported tokens carry a tokenizer that other programs cannot
/// express: the bytes of Tokenizer::save(). Beside a model in one file F it is F.maki-tokenizer.
inline constexpr const char* kOwnTokenizerFile = "maki-tokenizer";

/// Reads a tokenizer from a tokenizer.json (or another name that ends with .json), a vocab.json or merges.txt with the
/// other beside it (OpenAI: encoder.json and vocab.bpe), a .tiktoken file (Llama 3: tokenizer.model), a file with the
/// bytes of Tokenizer::save(), a token file of maki, the meta.pkl of nanoGPT, or a directory. Of a directory it reads
/// the first that there is of maki-tokenizer (saved bytes), tokenizer.json, vocab.json, encoder.json, tokenizer.model
/// and the only .tiktoken file. With tokenizer.json and vocab.json goes what lies beside them (tokenizer_config.h).
/// Throws CorpusError, naming the path, if a file cannot be read, is no regular file, is damaged, is above 1 GiB, or
/// asks for something that byte-level BPE here does not do; and if a directory has a maki-tokenizer and a
/// tokenizer.json that say different things, or bytes or BPE and a tokenizer.json that cannot be read.
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);
/// What read_tokenizer() may read: the path, and the files beside it, whether they are there or not.
std::vector<std::string> files_of_tokenizer(const std::string& path);
/// The tokenizer that the text of a tokenizer.json describes. Throws as read_tokenizer() does, without a path.
std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view json);

/// Whether the tokens are bytes or byte-level BPE, which other programs know.
bool is_byte_level(const Tokenizer& tokenizer);
/// The text of a tokenizer.json. Throws CorpusError unless is_byte_level().
std::string tokenizer_json(const Tokenizer& tokenizer);
/// The member `normalizer` of a tokenizer.json, for a tokenizer of any kind.
std::string normalizer_json(const Tokenizer& tokenizer);

/// The vocabulary of a tokenizer that is_byte_level(), in the characters with which GPT-2 writes bytes.
struct BpeVocabulary {
  std::vector<std::string> tokens;  ///< by id; added tokens as they are
  std::vector<std::string> merges;  ///< two tokens with a space between them, in order of rank
  std::vector<AddedToken> added;    ///< in ascending order of their ids
  std::string rule = "gpt2";        ///< of the pre-tokenizer
  bool whole_pieces = false;        ///< BpeParts::whole_pieces
};
/// Throws CorpusError unless is_byte_level().
BpeVocabulary bpe_vocabulary(const Tokenizer& tokenizer);

}  // namespace maki
