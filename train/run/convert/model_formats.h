// Models in the files of other programs. Each format is a row of the table in model_formats.cpp, which export, import,
// their help and their messages are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/io/output.h"
#include "train/run/convert/foreign_model.h"
#include "train/run/loaded_model.h"

namespace maki {

struct ExportOptions {
  OutputPath out;                 ///< a directory for hf and maki, else a file
  std::string gguf_type = "f32";  ///< of the matrices in a GGUF file: f32, f16, q8_0
  /// Write a model with the exact GELU for a program that computes only the tanh form, whose outputs then differ a
  /// little. Without this, such an export is an error.
  bool gelu_as_tanh = false;
};

/// A row of the table in model_formats.cpp, which stands in the file of the format.
struct ModelFormat {
  const char *name, *help;
  bool is_directory = false;     ///< what it writes
  bool has_number_type = false;  ///< whether it takes ExportOptions::gguf_type
  bool is_tanh = false;  ///< whether its program computes the tanh form of GELU alone: ExportOptions::gelu_as_tanh
  /// Writes the files and returns their paths; of a run, that of its checkpoint alone. Requires: the model has no
  /// adapters.
  std::vector<std::string> (*write)(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);
  const char* reads = nullptr;  ///< what import opens, as its help says it; null: it opens nothing of this format
  bool (*detect)(const std::string& path) = nullptr;  ///< whether a path that no row before detects is of this format
  ForeignModel (*open)(const std::string& path) = nullptr;  ///< throws CheckpointError
};

std::vector<std::string> export_format_names();
/// The names of those with a property, in alphabetical order, with `between` between them.
std::string formats_with(bool ModelFormat::*property, std::string_view between = " and ");
/// Lines of help: what each format is, and what import opens.
std::string export_format_help();
std::string import_format_help();
/// Writes a model; adapters are merged into its weights. Throws Error for a format that does not exist, with the
/// nearest name; for an option that the format does not have; if the path is not free (output.h); or if the format
/// cannot express the model, with the reason. Throws CheckpointError if a file cannot be written. After an error, or a
/// signal that ends the program, no file remains that was begun.
std::vector<std::string> export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                                      FileSystem& fs = posix_file_system());

/// Throws Error unless `activation` is the tanh form of GELU, or the exact one and options.gelu_as_tanh is set.
void require_gelu_tanh(const std::string& activation, const ExportOptions& options, const std::string& target);
/// Writes a new file and appends its path to `written`. Throws what write_output() throws.
void write_text(FileSystem& fs, const std::string& path, std::string_view text, std::vector<std::string>& written);
/// The output with the saved tokenizer of the model as its companion.
OutputPath with_tokenizer(OutputPath out, const LoadedModel& model);
}  // namespace maki
