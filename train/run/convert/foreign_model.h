// A model of another program, opened but not loaded: what maki has to know to make a run of it.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/token_use.h"
#include "train/run/config/config.h"
#include "train/run/convert/weights.h"

namespace maki {

struct ForeignModel {
  std::string path;             ///< of the directory or file that was opened
  Config config;                ///< its model fields are those of the model
  std::int64_t vocab_size = 0;  ///< rows of the token embedding, which may include padding
  TokenUse use;                 ///< its ends, begin and pad, as far as the files name them
  std::vector<NamePair> names;
  ReadingRules rules;
  StoredTensors stored;
};

/// Opens a directory with config.json and model.safetensors (or the shards that model.safetensors.index.json lists) of
/// GPT-2 or a model like Llama. Throws CheckpointError, naming the file and what is not supported.
ForeignModel open_hugging_face(const std::string& directory);
/// Opens a checkpoint of llm.c: version 3 (float32) or 5 (bfloat16). Throws CheckpointError.
ForeignModel open_llm_c(const std::string& path);
/// Opens a directory as one of Hugging Face, and a file as a checkpoint of llm.c. Throws CheckpointError as these do,
/// and for a path that ends in .safetensors, which does not say what model it is.
ForeignModel open_foreign_model(const std::string& path);

}  // namespace maki
