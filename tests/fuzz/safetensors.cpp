#include "train/run/convert/safetensors.h"

#include "data/io/error.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

void read_as_safetensors(const std::string& bytes) { read_safetensors(scratch_file("model.safetensors", bytes)); }

std::vector<std::string> safetensors_seeds() {
  std::vector<std::string> files;
  for (const char* const model : {"hf-gpt2", "hf-gpt2-old", "hf-llama", "hf-llama-tied"})
    files.push_back(source_file(fmt::format("tests/fixtures/{}/model.safetensors", model)));
  std::string header = R"({"a":{"dtype":"BF16","shape":[2,0],"data_offsets":[0,0]}})";
  files.push_back(std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header);
  return files;
}

}  // namespace

const Target kSafetensors = {"safetensors", read_as_safetensors, is<CheckpointError>, safetensors_seeds};

}  // namespace maki::fuzz
