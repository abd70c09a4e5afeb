// Checkpoints. The input is the sections: lines "%%%% NAME", each followed by the bytes of the section. They are
// written into a container with right checksums, so that what reads the sections is reached.
#include "train/run/checkpoint.h"

#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/unsynced.h"
#include "train/run/loaded_model.h"

namespace maki::fuzz {
namespace {

constexpr std::string_view kMark = "\n%%%% ";

struct Section {
  std::string name, bytes;
};

std::vector<Section> sections_of(std::string_view input) {
  constexpr std::size_t kMost = 16;
  std::vector<Section> sections;
  while (input.starts_with(kMark) && sections.size() < kMost) {
    input.remove_prefix(kMark.size());
    const std::size_t name = std::min(input.find('\n'), input.size());
    const std::size_t end = std::min(input.find(kMark, name), input.size());
    sections.push_back({std::string(input.substr(0, name)), std::string(input.substr(name, end - name))});
    if (!sections.back().bytes.empty()) sections.back().bytes.erase(0, 1);
    input.remove_prefix(end);
  }
  return sections;
}

void read_as_checkpoint(const std::string& bytes) {
  Unsynced fs;
  const std::vector<Section> sections = sections_of(bytes);
  std::vector<ContainerSection> written;
  for (const Section& section : sections) written.push_back({section.name, text_bytes(section.bytes)});
  const std::string path = scratch_folder() + "/checkpoint.maki";
  write_container(fs, path, written);
  const ContainerReader file(path);
  read_state(file);
  read_tensors(file);
  const LoadedModel model(path);
}

std::vector<std::string> checkpoint_seeds() {
  std::vector<std::string> inputs;
  for (const char* const run : {"classify", "seq2seq", "ngrams", "transformer-xl"}) {
    const std::string folder = fmt::format("tests/golden/{}/checkpoints/", run);
    const std::string last = source_file(folder + "last");
    const ContainerReader file(std::string(MAKI_SOURCE_DIR) + "/" + folder + last.substr(0, last.find('\n')));
    std::string& input = inputs.emplace_back();
    for (const auto& entry : file.entries()) input += fmt::format("{}{}\n{}", kMark, entry.name, file.read(entry.name));
  }
  return inputs;
}

}  // namespace

const Target kCheckpoint = {"checkpoint", read_as_checkpoint, is<CheckpointError>, checkpoint_seeds};

}  // namespace maki::fuzz
