#include "train/convert/mapped_file.h"

#include "data/text/error.h"
#include "train/config/error.h"

namespace maki {

MappedFile::MappedFile(const std::string& path) try : path_(path), mapping_(path) {
} catch (const CorpusError& error) {
  throw CheckpointError(error.what());
}

}  // namespace maki
