// Directories of Hugging Face: config.json, generation_config.json, model.safetensors and the tokenizer.
#pragma once

#include <string>

#include "train/config/config.h"

namespace maki {

/// An activation that both GPT-2 here and `activation_function` of Hugging Face have, with its names here and there.
struct ActivationName {
  const char *activation, *stored;
};

/// Whether a configuration is exported as a model like Llama, not as GPT-2: if it has RMS norms or rotary positions. A
/// configuration with one of them alone is then rejected by require_llama().
bool is_like_llama(const Config& config);
/// Throws Error, with the reason, if a GPT-2 or Llama cannot express the configuration. `target` names the model and
/// the program in the message, such as "a Llama of transformers".
void require_gpt2(const Config& config, const std::string& target);
void require_llama(const Config& config, const std::string& target);

/// The text of config.json and generation_config.json. `end_of_text` is the id of the token that ends a text; −1: none.
std::string hugging_face_config(const Config& config, std::int64_t vocab_size, std::int64_t end_of_text);
std::string generation_config(std::int64_t end_of_text);

}  // namespace maki
