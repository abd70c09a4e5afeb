// Models in the files of other programs. Each format is a row of the table in model_formats.cpp, which export, import,
// their help and their messages are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/table.h"
#include "data/io/output.h"
#include "train/run/convert/weights.h"
#include "train/run/loaded_model.h"

namespace maki {

struct ExportOptions {
  OutputPath out;              ///< a directory for hf and maki, else a file
  std::string gguf_type = {};  ///< of the matrices in a GGUF file: f32, f16, q8_0; empty: f32
  /// Write a model with the exact GELU for a program that computes only the tanh form, whose outputs then differ a
  /// little. Without this, such an export is an error.
  bool gelu_as_tanh = false;
};

/// What an export has written.
struct Exported {
  std::vector<std::string> files;       ///< their paths; of a run, that of its checkpoint alone
  std::vector<std::string> notes = {};  ///< messages for a user: what of the model is not in them, or not as it was
};

/// A model of another program, opened but not loaded: what maki has to know to make a run of it.
struct ForeignModel {
  std::string path;             ///< of the directory or file that was opened
  Config config;                ///< its model fields are those of the model
  std::int64_t vocab_size = 0;  ///< rows of the token embedding, which may include padding
  TokenUse use;                 ///< its ends, begin and pad, as far as the files name them
  std::vector<NamePair> names;
  ReadingRules rules;
  StoredTensors stored;
};

/// A row of the table in model_formats.cpp, which stands in the file of the format.
struct ModelFormat {
  const char *name, *help;
  /// Requires: the model has no adapters.
  Exported (*write)(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);
  bool is_directory = false;     ///< what it writes
  bool keeps_float64 = false;    ///< whether weights of float64 are not rounded to float32
  bool is_tanh = false;          ///< whether its program computes the tanh form of GELU alone: gelu_as_tanh
  bool has_number_type = false;  ///< whether it takes ExportOptions::gguf_type
  const char* reads = nullptr;   ///< what import opens, as its help says it; null: it opens nothing of this format
  bool (*detect)(const std::string& path) = nullptr;  ///< whether a path that no row before detects is of this format
  ForeignModel (*open)(const std::string& path) = nullptr;  ///< throws CheckpointError
};

/// The rows, with their names and their help.
const Table<const ModelFormat*>& model_formats();
/// The names of those with a property, in alphabetical order, with `between` between them.
std::string formats_with(bool ModelFormat::*property, std::string_view between = " and ");
/// What import opens, in a line of help.
std::string import_format_help();
/// Writes a model; adapters are merged into its weights. Throws Error for a format that does not exist, with the
/// nearest name; for an option that the format does not have; if the path is not free (output.h); or if the format
/// cannot express the model, with the reason. Throws CheckpointError if a file cannot be written. After an error, or a
/// signal that ends the program, no file remains that was begun.
Exported export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                      FileSystem& fs = posix_file_system());

/// Opens a model in the first format that detects it. Throws Error for a run of maki and for an adapter of PEFT;
/// CheckpointError, naming the file and what is not supported.
ForeignModel open_foreign_model(const std::string& path);

/// Throws Error unless `activation` is the tanh form of GELU, or the exact one and options.gelu_as_tanh is set.
void require_gelu_tanh(Activation activation, const ExportOptions& options, const std::string& target);
/// Writes a new file and appends its path to `written`. Throws what write_output() throws.
void write_text(FileSystem& fs, const std::string& path, std::string_view text, std::vector<std::string>& written);
/// The output with the saved tokenizer of the model as its companion.
OutputPath with_tokenizer(OutputPath out, const LoadedModel& model);

}  // namespace maki
