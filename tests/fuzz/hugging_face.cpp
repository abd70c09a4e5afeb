// Directories of Hugging Face: config.json, then model.safetensors.index.json, then the only shard.
#include "data/io/error.h"
#include "tests/fuzz/foreign_models.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

constexpr const char* kIndex = R"({"weight_map":{"transformer.wte.weight":"a.safetensors"}})";

void read_as_hugging_face(const std::string& bytes) {
  const std::vector<std::string> files = split_input(bytes, 3);
  scratch_file("config.json", files[0]);
  scratch_file("model.safetensors.index.json", files[1]);
  scratch_file("a.safetensors", files[2]);
  remove_scratch_file("model.safetensors");
  load_model(open_foreign_model(scratch_folder()));
}

std::vector<std::string> hugging_face_seeds() {
  std::vector<std::string> inputs;
  for (const std::string model : {"hf-gpt2", "hf-gpt2-old", "hf-llama", "hf-llama-tied"}) {
    const std::string folder = "tests/fixtures/" + model;
    inputs.push_back(
        join_input({source_file(folder + "/config.json"), kIndex, source_file(folder + "/model.safetensors")}));
  }
  return inputs;
}

}  // namespace

const Target kHuggingFace = {"hugging_face", read_as_hugging_face, is<CheckpointError>, hugging_face_seeds};

}  // namespace maki::fuzz
