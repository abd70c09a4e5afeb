// A run directory made of a model of another program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "train/convert/foreign_model.h"
#include "train/run/checkpoint.h"

namespace maki {

/// The name of the file in which an exported model carries a tokenizer that other programs cannot express: the bytes of
/// Tokenizer::save(). Beside a file F it is F.maki-tokenizer.
inline constexpr const char* kOwnTokenizerFile = "maki-tokenizer";

/// The tokenizer of a model: `given` ("byte", or a path for read_tokenizer()) or, if that is empty, the one that lies
/// beside the model. Throws CorpusError if there is none, or it has more ids than the model.
std::unique_ptr<Tokenizer> tokenizer_for(const ForeignModel& model, const std::string& given);

struct Imported {
  Config config;
  std::int64_t vocab_size = 0, parameters = 0, padding = 0;  ///< rows of the embedding that no token has
};
/// Writes a run directory with one checkpoint, of step 0. It has no text and no state of an optimizer: it generates, is
/// evaluated on any text, and is trained with --init-from. Throws what RunClaim and load_weights() throw; a directory
/// that was created is then removed.
Imported import_run(const ForeignModel& model, const Tokenizer& tokenizer, const std::string& out);


/// Writes a run directory with one checkpoint of a model of maki, in the same form. `model` is the state of its
/// checkpoint, and `store` its weights, which have no adapters. Returns the path of the checkpoint. Throws as above.
std::string write_model_run(const CheckpointState& model, ParameterStore& store, const std::string& out,
                            FileSystem& fs = posix_file_system());

}  // namespace maki
