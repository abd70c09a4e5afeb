// What lies beside a vocabulary in a directory of Hugging Face: tokenizer_config.json, special_tokens_map.json,
// added_tokens.json, chat_template.jinja and additional_chat_templates/NAME.jinja.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/tokenizer/token_use.h"
#include "data/tokenizer/vocabulary_text.h"

namespace maki {

/// The names of these files.
std::vector<std::string> files_beside_vocabulary();

/// Adds the tokens of tokenizer_config.json (added_tokens_decoder) and added_tokens.json that the vocabulary does not
/// list as added, and the texts that have a role. Those of added_tokens.json are special if a role names them. Throws
/// CorpusError, naming the file, also if a space is to be put before texts.
void add_tokens_beside(const std::filesystem::path& folder, VocabularyText& vocabulary);

/// The roles of special tokens and the chat templates; the token with the role eos_token ends a text. Throws
/// CorpusError, naming the file, if a role names a token that the vocabulary lacks.
TokenUse read_token_use(const std::filesystem::path& folder, const Tokenizer& tokenizer);

/// tokenizer.use() as other programs need it: with the ends of a text, and the roles that follow from it. If nothing
/// was said, the token that ends a text also begins it and fills batches. Batches can be filled if a text has an end.
TokenUse complete_use(const Tokenizer& tokenizer);
/// The texts of tokenizer_config.json and special_tokens_map.json for a tokenizer, of whose sequences the model reads
/// at most `context` tokens.
std::string tokenizer_config_json(const Tokenizer& tokenizer, std::int64_t context);
std::string special_tokens_map_json(const Tokenizer& tokenizer);

}  // namespace maki
