// A run directory made of a model of another program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/io/output.h"
#include "data/tokenizer/tokenizer.h"
#include "train/run/checkpoint.h"
#include "train/run/convert/model_formats.h"

namespace maki {

/// The tokenizer of a model: a copy of `given` or, if that is null, the one that lies beside the model. Its use() is
/// that of the model. Throws CorpusError if there is none, if it has more ids than the model, or over 1023 fewer (the
/// others are padding of the vocabulary), or if the model names one of these others as an end, beginning or pad token.
std::unique_ptr<Tokenizer> tokenizer_for(const ForeignModel& model, const Tokenizer* given = nullptr);

struct Imported {
  Config config;
  /// The number of the tokenizer's ids; that of the parameters; and that of the rows of the embedding in the file that
  /// no token has, which are left out.
  std::int64_t vocab_size = 0, parameters = 0, padding = 0;
};
/// Writes a run directory with one checkpoint, of step 0. It has no text and no state of an optimizer: it generates, is
/// evaluated on any text, and is trained with --init-from. Throws Error if the configuration is not valid or `out` is
/// not free (require_directory_place()), CheckpointError if the run cannot be written, and what check_weights() and
/// load_weights() throw; what was created is then removed.
Imported import_run(const ForeignModel& model, const Tokenizer& tokenizer, const OutputPath& out);

/// Writes a run directory with one checkpoint of a model of maki, in the same form. `loaded` is the state of its
/// checkpoint, and `store` its weights, which have no adapters. Returns the path of the checkpoint. Throws as above,
/// except for what concerns the weights of a file.
std::string write_model_run(const CheckpointState& loaded, const Model& model, ParameterStore& store,
                            const OutputPath& out, FileSystem& fs = posix_file_system());

}  // namespace maki
