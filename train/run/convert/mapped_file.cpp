#include "train/run/convert/mapped_file.h"

#include "data/io/error.h"

namespace maki {

MappedFile::MappedFile(const std::string& path) try : file_(path), mapping_(file_.descriptor(), file_.size(), path) {
} catch (const CorpusError& error) {
  throw CheckpointError(error.what());
}

void MappedFile::read(Bytes part, std::span<std::byte> into) const {
  try {
    file_.read(static_cast<std::uint64_t>(part.data() - bytes().data()), into);
  } catch (const CorpusError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace maki
