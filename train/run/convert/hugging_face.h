// Directories of Hugging Face: config.json, generation_config.json, model.safetensors and the tokenizer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/tokenizer/token_use.h"
#include "train/run/config/config.h"
#include "train/run/convert/model_formats.h"

namespace maki {

/// Whether a configuration is exported as a model like Llama, not as GPT-2: if it has RMS norms or rotary positions. A
/// configuration with one of them alone is then rejected by require_llama().
bool is_like_llama(const Config& config);
/// Throws Error, with the reason, if a GPT-2 or Llama cannot express the configuration. `target` names the model and
/// the program in the message, such as "a Llama of transformers".
void require_gpt2(const Config& config, const std::string& target);
void require_llama(const Config& config, const std::string& target);

/// What to do with weights that only Python can read.
inline constexpr const char* kSaveAsSafetensors =
    "load it with transformers and save it with save_pretrained(), which writes safetensors";
/// Opens a directory with config.json and model.safetensors (or the shards that model.safetensors.index.json lists) of
/// GPT-2 or a model like Llama. Throws CheckpointError, naming the file and what is not supported.
ForeignModel open_hugging_face(const std::string& directory);
/// The names of the parameters of a GPT-2 or Llama.
std::vector<NamePair> hugging_face_names(const Config& config);

/// The tokens that begin and end a text and fill batches, as generation_config.json or else config.json names them; the
/// former takes precedence, as in transformers. Throws CheckpointError.
TokenUse read_use(const std::string& directory);
/// Adds the members of both files for these tokens.
void put_use(nlohmann::ordered_json& object, const TokenUse& use);

/// The text of config.json and generation_config.json. `use` says which tokens begin and end a text and fill batches.
std::string hugging_face_config(const Config& config, std::int64_t vocab_size, const TokenUse& use);
std::string generation_config(const TokenUse& use);

}  // namespace maki
