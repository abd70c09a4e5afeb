// Models of maki in the files of other programs.
#pragma once

#include <string>
#include <vector>

#include "train/loop/loaded_model.h"

namespace maki {

struct ExportOptions {
  std::string out;                ///< a directory for hf and maki, else a file
  std::string gguf_type = "f32";  ///< of the matrices in a GGUF file: f32, f16, q8_0
  bool gelu_as_tanh = false;      ///< for programs that know the tanh form of GELU alone
};

/// A format to export to: a row of the table in export_model.cpp.
struct ExportFormat {
  const char *name, *help;
  /// Writes the files and returns their paths.
  std::vector<std::string> (*write)(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);
};

std::vector<std::string> export_format_names();
/// A line of help: what each format is.
std::string export_format_help();
/// Writes a model; adapters are merged into its weights. Throws Error, which suggests the nearest name, for a format that does not exist; if the path is occupied; or if the
/// format cannot express the model, with the reason. Throws CheckpointError if a file cannot be written.
std::vector<std::string> export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                                      FileSystem& fs = posix_file_system());

/// Each format in a file of its own.
std::vector<std::string> write_hugging_face(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);
std::vector<std::string> write_llm_c(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);
std::vector<std::string> write_gguf(const LoadedModel& model, const ExportOptions& options, FileSystem& fs);

/// Throws Error unless `activation` is the tanh form of GELU, or the exact one may stand for it.
void require_gelu_tanh(const std::string& activation, const ExportOptions& options, const std::string& target);
/// Whether each id stands for one character, and text is encoded as it is.
bool is_plain_char_tokenizer(const Tokenizer& tokenizer);
/// Replaces path with the text and appends it to `written`.
void write_text(FileSystem& fs, const std::string& path, std::string_view text, std::vector<std::string>& written);

}  // namespace maki
