// A checkpoint of the smallest possible model, and its sections, which tests change and write again with valid hashes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/files.h"
#include "tests/train/text_trainer.h"
#include "train/loop/trainer.h"
#include "train/run/checkpoint.h"

namespace maki::tests {

/// Does not wait for the disk.
struct Unsynced : FileSystem {
  int fsync(int) override { return 0; }
};

inline Config smallest_config() {
  Config config;
  config.n_layer = config.n_head = 1;
  config.n_embd = config.block_size = 2;
  config.batch_size = 1;
  config.val_fraction = 0;
  config.lr_decay_steps = 10;
  return config;
}

/// What a checkpoint on a text contains after some steps, without n-gram counts.
inline CheckpointState state_after(std::int64_t step, const Config& config, const Dataset& data) {
  return {.step = step,
          .vocab_size = data.tokenizer->vocab_size(),
          .characters = data.characters,
          .train_tokens = static_cast<std::int64_t>(data.train.size()),
          .val_tokens = static_cast<std::int64_t>(data.val.size()),
          .corpus_hash = data.corpus_hash,
          .config = config,
          .tokenizer = data.tokenizer->save()};
}

/// Writes the checkpoint after two steps on "abcabc…". `change` may corrupt the state that is written.
inline std::string write_smallest(const std::string& path, const std::function<void(CheckpointState&)>& change = {},
                                  const Config& config = smallest_config()) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "abc";
  Corpus corpus;
  corpus.text = text;
  corpus.characters = 60;
  corpus.hash = "0123456789abcdef0123456789abcdef";
  const Dataset data = make_dataset(corpus, 0, config.block_size, config.tokenizer);
  TextTrainer trainer(config, data);
  for (int i = 0; i < 2; ++i) trainer.step();
  CheckpointState state = state_after(2, config, data);
  if (change) change(state);
  Unsynced fs;
  write_checkpoint(fs, path, state, trainer.store(), trainer.optimizer());
  return path;
}

using Sections = std::vector<std::pair<std::string, std::string>>;

inline Sections sections_of(const std::string& path) {
  const ContainerReader file(path);
  Sections sections;
  for (const auto& entry : file.entries()) sections.emplace_back(entry.name, file.read(entry.name));
  return sections;
}

inline std::string write_sections(const std::string& path, const Sections& sections) {
  std::vector<ContainerSection> list;
  for (const auto& section : sections) list.push_back({section.first, text_bytes(section.second)});
  Unsynced fs;
  write_container(fs, path, list);
  return path;
}

inline std::string& section(Sections& sections, const std::string& name) {
  for (auto& entry : sections) {
    if (entry.first == name) return entry.second;
  }
  throw std::runtime_error("no section " + name);
}

}  // namespace maki::tests
