// The kinds of models that can be trained: the values of the training field `model`. Adding one touches its own file
// and the table in models.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/models/gpt.h"
#include "train/config/config.h"

namespace maki {

std::vector<std::string> model_names();

/// The model that a configuration describes, with this vocabulary; its parameters are created below `scope`. Throws
/// Error if the configuration is not valid for this kind of model.
std::unique_ptr<Model> make_model(const Config& config, std::int64_t vocab_size, const Scope& scope);

/// The field `attention` or, if it is empty, what that means: elu for `linear`, else softmax.
std::string attention_of(const Config& config);

/// The options of a `gpt` that a configuration describes.
GptConfig gpt_config(const Config& config, std::int64_t vocab_size);

}  // namespace maki
