// The small models of tests/fixtures/make_hugging_face.py, imported.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/tokenizer_files.h"
#include "tests/files.h"
#include "train/run/convert/import_run.h"
#include "train/run/loaded_model.h"

namespace maki::tests {

inline std::string hugging_face_fixture(const std::string& name) {
  return std::string(MAKI_SOURCE_DIR) + "/tests/fixtures/hf-" + name;
}

/// The tensors of a file, read into memory.
inline std::vector<OwnedTensor> owned(const StoredTensors& stored) {
  std::vector<OwnedTensor> tensors;
  for (const StoredTensor& each : stored.tensors) {
    tensors.push_back({each.name, each.type, each.shape, std::vector<std::byte>(each.size)});
    each.file->read(each.offset, tensors.back().bytes);
  }
  return tensors;
}

/// Imports a model into a new run and returns the path of its checkpoint.
inline std::string import_into(const std::string& path, const std::string& run, const std::string& tokenizer = "") {
  const ForeignModel model = open_foreign_model(path);
  const std::unique_ptr<Tokenizer> given = tokenizer.empty() ? nullptr : read_tokenizer(tokenizer);
  import_run(model, *tokenizer_for(model, given.get()), run);
  return run + "/checkpoints/step-00000000.maki";
}

/// A copy of a fixture with changes to its config.json: `from` is replaced by `to`, which must be there.
inline std::string changed_fixture(const TemporaryFolder& folder, const std::string& name, const std::string& from,
                                   const std::string& to) {
  const std::string copy = folder / "changed";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(hugging_face_fixture(name), copy);
  std::string config = read_bytes(copy + "/config.json");
  const std::size_t at = config.find(from);
  if (at == std::string::npos) throw std::runtime_error(name + " has no " + from);
  write_bytes(copy + "/config.json", config.replace(at, from.size(), to));
  return copy;
}

}  // namespace maki::tests
