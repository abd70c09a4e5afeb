// A directory that transformers loads: config.json, generation_config.json, model.safetensors, tokenizer.json.
#include <nlohmann/json.hpp>

#include "data/io/file.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/run/convert/hugging_face.h"
#include "train/run/convert/model_formats.h"
#include "train/run/convert/safetensors.h"
#include "train/run/convert/weights.h"

namespace maki {
namespace {

bool has_characters(const Tokenizer& tokenizer) {
  return tokenizer_kind(tokenizer.kind()).vocabulary == Vocabulary::characters;
}

// A tokenizer of characters: each character is a piece, and each piece a word of the vocabulary.
std::string char_tokenizer_json(const Tokenizer& tokenizer) {
  // Not an ordered_json, in which adding a member takes time in proportion to those that are there.
  nlohmann::json vocab;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) vocab[std::string(tokenizer.bytes(id))] = id;
  nlohmann::json j;
  j["version"] = "1.0";
  for (const char* const none : {"truncation", "padding"}) j[none] = nullptr;
  j["added_tokens"] = nlohmann::json::array();
  j["normalizer"] = nlohmann::json::parse(normalizer_json(tokenizer));
  j["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}};
  j["post_processor"] = nullptr;
  j["decoder"] = {{"type", "Fuse"}};
  // WordLevel needs the name of an unknown token; without it in the vocabulary, unknown characters are an error.
  j["model"] = {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}};
  return j.dump(1) + "\n";
}

// The text of tokenizer.json; empty if it cannot express the tokenizer.
std::string tokenizer_text(const Tokenizer& tokenizer) {
  if (has_characters(tokenizer) && tokenizer.use() == TokenUse()) return char_tokenizer_json(tokenizer);
  return is_byte_level(tokenizer) ? tokenizer_json(tokenizer) : "";
}

void write_tokenizer(const LoadedModel& model, const std::string& out, const std::string& text, FileSystem& fs,
                     std::vector<std::string>& written) {
  write_text(fs, out + "/" + kOwnTokenizerFile, model.state.tokenizer, written);
  if (text.empty()) return;
  write_text(fs, out + "/tokenizer.json", text, written);
  write_text(fs, out + "/tokenizer_config.json", tokenizer_config_json(*model.tokenizer, model.state.config.block_size),
             written);
  write_text(fs, out + "/special_tokens_map.json", special_tokens_map_json(*model.tokenizer), written);
}

Exported write_hugging_face(const LoadedModel& model, const ExportOptions& options, FileSystem& fs) {
  const Config& config = model.state.config;
  const bool llama = is_like_llama(config);
  (llama ? require_llama : require_gpt2)(config, llama ? "a Llama of transformers" : "a GPT-2 of transformers");
  std::vector<OwnedTensor> weights = collect_weights(
      model.store, hugging_face_names(config),
      {.zero_biases = !llama, .type = config.dtype == DType::float64 ? NumberType::f64 : NumberType::f32});
  const TokenUse use = complete_use(*model.tokenizer);
  const std::string tokenizer = tokenizer_text(*model.tokenizer);

  Exported exported;
  std::vector<std::string>& written = exported.files;
  OutputDirectory directory(fs, options.out);
  const std::string out = directory.path();
  directory.fill([&] {
    write_text(fs, out + "/config.json", hugging_face_config(config, model.state.vocab_size, use), written);
    write_text(fs, out + "/generation_config.json", generation_config(use), written);
    write_tokenizer(model, out, tokenizer, fs, written);
    const std::string file = out + "/model.safetensors";
    write_safetensors(fs, file, std::move(weights));
    written.push_back(file);
  });
  directory.commit();
  for (std::string& path : written) path.replace(0, out.size(), options.out.path);
  if (tokenizer.empty()) {
    exported.notes.push_back(
        fmt::format("{}: has no tokenizer.json, which cannot express {}; only maki reads {}", options.out.path,
                    has_characters(*model.tokenizer) ? "characters that begin or end a text" : "a vocabulary of words",
                    kOwnTokenizerFile));
  }
  return exported;
}

}  // namespace

extern constinit const ModelFormat kHuggingFace = {
    .name = "hf",
    .help = "a directory for Hugging Face transformers",
    .write = write_hugging_face,
    .is_directory = true,
    .keeps_float64 = true,
    .reads = "directory of Hugging Face (config.json, model.safetensors)",
    .detect = [](const std::string& path) { return is_directory(path, throw_as<CheckpointError>); },
    .open = open_hugging_face};

}  // namespace maki
