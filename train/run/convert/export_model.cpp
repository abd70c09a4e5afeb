#include "train/run/convert/export_model.h"

#include "autograd/core/table.h"
#include "data/io/file.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/import_run.h"
#include "train/run/convert/safetensors.h"
#include "train/run/convert/weights.h"

namespace maki {
namespace {

NumberType own_type(const ParameterStore& store) {
  return store.dtype() == DType::float64 ? NumberType::f64 : NumberType::f32;
}

// Any model, under maki's own names.
std::vector<std::string> write_own(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const OutputPath out = with_tokenizer(options.out, model);
  write_safetensors(fs, out, collect_weights(model.store, own_names(model.store), {.type = own_type(model.store)}));
  return {out.companion_path(), out.path};
}

// A run with one checkpoint, without moments.
std::vector<std::string> write_maki(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  LoadedModel copy(model, MergeAdapters());
  return {write_model_run(copy.state, copy.store, options.out, fs)};
}

constexpr ExportFormat kFormats[] = {
    {"hf", "a directory for Hugging Face transformers", true, false, false, write_hugging_face},
    {"safetensors", "one file with maki's own names, for any model", false, false, false, write_own},
    {"llm.c", "a checkpoint of llm.c", false, false, true, write_llm_c},
    {"gguf", "a file for llama.cpp", false, true, true, write_gguf},
    {"maki", "a run with one checkpoint that has no state of the optimizer, for any model", true, false, false,
     write_maki},
};
constexpr Table kExportFormats("format", kFormats);

}  // namespace

std::vector<std::string> export_format_names() { return kExportFormats.names(); }

std::string export_format_help() { return kExportFormats.help(); }

std::vector<std::string> export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                                      FileSystem& fs) {
  const ExportFormat& row = kExportFormats.row(format);
  check(row.has_number_type || options.gguf_type == ExportOptions().gguf_type,
        "gguf_type: applies to `format` gguf; got {}", format);
  check(!options.gelu_as_tanh || row.is_tanh,
        "gelu_as_tanh: applies to `format` gguf and llm.c, whose programs know one form of GELU; got {}", format);
  if (row.is_directory) {
    require_directory_place(options.out);
  } else {
    require_file_place(options.out);
  }
  if (model.state.config.lora_rank == 0) return row.write(model, options, fs);
  return row.write(LoadedModel(model, MergeAdapters()), options, fs);
}

void require_gelu_tanh(Activation activation, const ExportOptions& options, const std::string& target) {
  if (activation == Activation::gelu_tanh) return;
  check(activation == Activation::gelu, "export: {} needs activation = gelu_tanh; the model has {}", target,
        to_string(activation));
  check(
      options.gelu_as_tanh,
      "export: {} computes the tanh form of GELU, and the model has the exact one (activation = gelu); accept outputs "
      "that differ a little with `gelu_as_tanh`",
      target);
}

void write_text(FileSystem& fs, const std::string& path, std::string_view text, std::vector<std::string>& written) {
  write_output(fs, path, {text_bytes(text)});
  written.push_back(path);
}

OutputPath with_tokenizer(OutputPath out, const LoadedModel& model) {
  out.companion = {fmt::format(".{}", kOwnTokenizerFile), model.state.tokenizer};
  return out;
}

}  // namespace maki
