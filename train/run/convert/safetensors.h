// safetensors, the format in which Hugging Face publishes weights: u64 length of the header, header (JSON), data.
// https://huggingface.co/docs/safetensors; docs/formats.md says what maki reads and writes.
#pragma once

#include <string>
#include <vector>

#include "data/io/output.h"
#include "train/run/convert/stored_tensor.h"

namespace maki {

/// The limit of the format for the header, in bytes.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
/// The most axes of a tensor that the reader accepts: far more than tensors have.
inline constexpr std::size_t kMaxStoredRank = 16;

/// Reads the header and checks every rule of the format: names are unique, the data of the tensors follow each other
/// from the first byte to the last without gaps, each has the size that its shape and type need. Data are not read.
/// Needs memory for the names and shapes alone. Throws CorruptFile, naming file and tensor, if a rule is broken, and
/// CheckpointError if the file cannot be read.
StoredTensors read_safetensors(const std::string& path);

/// The tensors of a header that is given as text without the length before it; spaces may follow. They are in the order
/// of the header, without a file, and their offsets count from the end of the header, behind which there are `size`
/// bytes. Throws CorruptFile; but that names are unique and that there are no gaps is checked by read_safetensors()
/// alone.
std::vector<StoredTensor> parse_safetensors_header(std::string_view json, std::uint64_t size, const std::string& path);

/// Writes a file through write_output(), byte for byte as the reference implementation does: tensors in
/// descending order of the size of their numbers, then by name; the header padded with spaces to a multiple of 8; with
/// the metadata {"format": "pt"} that transformers requires. Throws what write_output() throws, and Error if two
/// tensors have one name.
void write_safetensors(FileSystem& fs, const OutputPath& out, std::vector<OwnedTensor> tensors);

}  // namespace maki
