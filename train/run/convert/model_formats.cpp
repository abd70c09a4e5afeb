#include "train/run/convert/model_formats.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/import_run.h"
#include "train/run/convert/safetensors.h"
#include "train/run/convert/weights.h"

namespace maki {

// Each in its own file.
extern const ModelFormat kHuggingFace, kLlmC, kGguf;

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
  return {write_model_run(copy.state, *copy.model, copy.store, options.out, fs)};
}

constexpr ModelFormat kSafetensors = {
    .name = "safetensors",
    .help = "one file with maki's own names, for any model",
    .write = write_own,
    .detect = [](const std::string& path) { return path.ends_with(".safetensors"); },
    .open = [](const std::string& path) -> ForeignModel {
      fail<CheckpointError>(
          "{}: does not say which model its tensors belong to; name the directory with its config.json", path);
    }};
constexpr ModelFormat kRun = {"maki", "a run with one checkpoint that has no state of the optimizer, for any model",
                              write_maki,
                              /*is_directory=*/true};

// In the order in which help lists them. The last that opens files opens all that no other knows.
constexpr const ModelFormat* kFormats[] = {&kHuggingFace, &kSafetensors, &kLlmC, &kGguf, &kRun};
constexpr Table kModelFormats("format", kFormats);

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
  const ModelFormat* const found = *std::ranges::find_if(
      kFormats, [&](const ModelFormat* format) { return format->detect != nullptr && format->detect(path); });
  return found->open(path);
}

std::vector<std::string> export_model(const LoadedModel& model, const std::string& format, const ExportOptions& options,
                                      FileSystem& fs) {
  const ModelFormat& row = kModelFormats.row(format);
  check(row.has_number_type || options.gguf_type.empty(), "gguf_type: applies to `format` {}; got {}",
        formats_with(&ModelFormat::has_number_type), format);
  check(!options.gelu_as_tanh || row.is_tanh,
        "gelu_as_tanh: applies to `format` {}, whose programs know one form of GELU; got {}",
        formats_with(&ModelFormat::is_tanh), format);
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
