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

/// Opens a model in the first format of model_formats.h that detects it. Throws CheckpointError, naming the file and
/// what is not supported.
ForeignModel open_foreign_model(const std::string& path);

}  // namespace maki
