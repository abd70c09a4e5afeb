#include "train/run/convert/model_formats.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/hugging_face.h"
#include "train/run/convert/import_run.h"
#include "train/run/convert/safetensors.h"
#include "train/run/convert/weights.h"
#include "train/run/run_directory.h"

namespace maki {

// Each in its own file.
extern const ModelFormat kHuggingFace, kLlmC, kGguf;

namespace {

NumberType own_type(const ParameterStore& store) {
  return store.dtype() == DType::float64 ? NumberType::f64 : NumberType::f32;
}

// What a model computes with that is neither a weight nor the tokenizer of what it writes.
std::vector<std::string> other_parts(const CheckpointState& state) {
  std::vector<std::string> parts;
  if (!state.ngram_counts.empty()) parts.emplace_back("the n-gram counts of its prior");
  if (!state.source_tokenizer.empty()) parts.emplace_back("the vocabulary of its sources");
  if (!state.labels.empty()) parts.emplace_back("the labels of its classes");
  return parts;
}

// The weights of any model, under maki's own names.
Exported write_own(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const OutputPath out = with_tokenizer(options.out, model);
  write_safetensors(fs, out, collect_weights(model.store, own_names(model.store), {.type = own_type(model.store)}));
  Exported exported{{out.companion_path(), out.path}};
  if (const std::vector<std::string> missing = other_parts(model.state); !missing.empty()) {
    exported.notes.push_back(fmt::format("{}: has the weights of the model, but not {}; `format` maki keeps all of it",
                                         out.path, fmt::join(missing, " and ")));
  }
  return exported;
}

// A run with one checkpoint, without moments.
Exported write_maki(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  LoadedModel copy(model, MergeAdapters());
  return {{write_model_run(copy.state, *copy.model, copy.store, options.out, fs)}};
}

constexpr ModelFormat kSafetensors = {
    .name = "safetensors",
    .help = "one file with the weights of any model, under maki's own names",
    .write = write_own,
    .keeps_float64 = true,
    .detect = [](const std::string& path) { return path.ends_with(".safetensors"); },
    .open = [](const std::string& path) -> ForeignModel {
      fail<CheckpointError>(
          "{}: does not say which model its tensors belong to; name the directory with its config.json", path);
    }};
constexpr ModelFormat kRun = {"maki", "a run with one checkpoint that has no state of the optimizer, for any model",
                              write_maki,
                              /*is_directory=*/true,
                              /*keeps_float64=*/true};

// In the order in which help lists them. The last that opens files opens all that no other knows.
constexpr const ModelFormat* kFormats[] = {&kHuggingFace, &kSafetensors, &kLlmC, &kGguf, &kRun};
constexpr Table kModelFormats("format", kFormats);

// Files of models that are not read, by their first bytes.
struct OtherFile {
  std::string_view bytes;
  const char *what, *advice;
};
constexpr OtherFile kOtherFiles[] = {
    {"GGUF", "a GGUF file, which is written but not read", "import the model that it was made of"},
    {"PK\x03\x04", "a zip archive, as PyTorch saves models", kSaveAsSafetensors},
    {"\x80\x02\x8A", "a Python pickle, as PyTorch saved models", kSaveAsSafetensors}};

// Throws for what is known to be no model that can be imported.
void refuse_other(const std::string& path) {
  const bool directory = is_directory(path, throw_as<CheckpointError>);
  const bool run = directory ? RunDirectory(path).exists() : path.ends_with(".maki") && file_exists(path);
  check(!run, "{}: is a run of maki already, and needs no import; use it as it is", path);
  check(!directory || file_exists(path + "/config.json") || !file_exists(path + "/adapter_config.json"),
        "{}: is an adapter of PEFT, not a model; merge it into its model with merge_and_unload(), and import what "
        "save_pretrained() then writes",
        path);
  check<CheckpointError>(directory || !path.ends_with(".json") || !file_exists(path),
                         "{}: is JSON, and the weights of a model are beside it; name the directory", path);
  const std::string beginning = read_beginning(path, 4);  // empty for a directory
  for (const OtherFile& other : kOtherFiles)
    check<CheckpointError>(!beginning.starts_with(other.bytes), "{}: is {}; {}", path, other.what, other.advice);
}

}  // namespace

const Table<const ModelFormat*>& model_formats() { return kModelFormats; }

std::string formats_with(bool ModelFormat::*property, std::string_view between) {
  std::vector<std::string> names = kModelFormats.names();
  std::erase_if(names, [&](const std::string& name) { return !(kModelFormats.row(name).*property); });
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, between));
}

std::string import_format_help() {
  std::vector<std::string> read;
  for (const ModelFormat* const format : kFormats) {
    if (format->reads != nullptr) read.emplace_back(format->reads);
  }
  return fmt::format("{}", fmt::join(read, ", or "));
}

ForeignModel open_foreign_model(const std::string& path) {
  refuse_other(path);
  const ModelFormat* const found = *std::ranges::find_if(
      kFormats, [&](const ModelFormat* format) { return format->detect != nullptr && format->detect(path); });
  return found->open(path);
}

Exported export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                      FileSystem& fs) {
  const ModelFormat& row = kModelFormats.row(format);
  check(row.has_number_type || options.gguf_type.empty(), "gguf_type: applies to `format` {}; got {}",
        formats_with(&ModelFormat::has_number_type), format);
  check(!options.gelu_as_tanh || row.is_tanh,
        "gelu_as_tanh: applies to `format` {}, whose programs know one form of GELU; got {}",
        formats_with(&ModelFormat::is_tanh), format);
  const Activation activation = model.state.config.activation;
  check(!options.gelu_as_tanh || activation == Activation::gelu,
        "gelu_as_tanh: applies to models with activation = gelu; the model has {}", to_string(activation));
  if (row.is_directory) {
    require_directory_place(options.out);
  } else {
    require_file_place(options.out);
  }
  Exported exported = model.state.config.lora_rank == 0 ? row.write(model, options, fs)
                                                        : row.write(LoadedModel(model, MergeAdapters()), options, fs);
  if (model.store.dtype() == DType::float64 && !row.keeps_float64) {
    exported.notes.push_back(fmt::format("{}: has the weights rounded from float64 to float32; `format` {} keeps them",
                                         options.out.path, formats_with(&ModelFormat::keeps_float64, " or ")));
  }
  return exported;
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
