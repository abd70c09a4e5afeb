// How a model uses its vocabulary, beyond what the tokens stand for: at which tokens a text ends, with which one it
// begins, which one fills batches, and how a conversation is written. Models of other programs come with it, and are
// written with it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

struct TokenUse {
  std::vector<std::int32_t> ends = {};               ///< generation stops at each; the first ends a document
  std::optional<std::int32_t> begin = {}, pad = {};  ///< of the model; of a tokenizer alone they are in `roles`
  std::map<std::string, std::int32_t> roles =
      {};  ///< what the tokenizer calls them, such as eos_token; a row of kTokenRoles
  std::vector<std::int32_t> additional = {};               ///< other special tokens that the tokenizer lists
  std::map<std::string, std::string> chat_templates = {};  ///< by name, the usual one as "default"

  bool operator==(const TokenUse&) const = default;
};

/// The names of special tokens in the files of Hugging Face.
inline constexpr const char* kTokenRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                              "pad_token", "cls_token", "mask_token"};

/// The first line of the saved form of a tokenizer with a TokenUse, which the second line holds.
inline constexpr std::string_view kUsedHeader = "maki used tokenizer 1\n";

/// A line of JSON, without a newline, in canonical form.
std::string token_use_json(const TokenUse& use);
/// Throws CorpusError unless the text is what token_use_json() writes for a vocabulary of this size.
TokenUse parse_token_use(std::string_view json, std::int64_t vocab_size);

}  // namespace maki
