#include "data/io/atomic_file.h"

#include <algorithm>
#include <fcntl.h>
#include <vector>

namespace maki {

AtomicFile::AtomicFile(FileSystem& fs, const OutputPath& out, std::size_t header_size)
    : fs_(fs),
      place_(require_file_place(out, Streams::refused)),
      parents_(fs, place_.path),
      temporary_(fs, unused_name_beside(place_.path)),
      file_(temporary_.create_for(place_.path)),
      buffer_(header_size, '\0'),
      size_(header_size) {}

void AtomicFile::append(Bytes bytes) {
  constexpr std::size_t kBufferBytes = 1 << 20;  // per write: few calls, little memory
  hash_.add(bytes);
  size_ += bytes.size();
  buffer_ += bytes_text(bytes);
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  try {
    file_.write_all(text_bytes(buffer_));
  } catch (const CheckpointError& error) {
    temporary_.fail_for(place_.path, error.what());
  }
  buffer_.clear();
}

void AtomicFile::verify(Bytes header) {
  constexpr std::size_t kBlockBytes = 1 << 16;  // per read: few calls, little memory
  Descriptor file(fs_, temporary_.path(), O_RDONLY | O_NOFOLLOW);
  std::vector<std::byte> block(header.size());
  bool same = file.fill(block) == header.size() && std::ranges::equal(block, header);
  Hash128 hash;
  std::uint64_t size = header.size();
  block.resize(kBlockBytes);
  while (const std::size_t n = file.fill(block)) {
    hash.add({block.data(), n});
    size += n;
  }
  require_read_back(same && size == size_ && hash.value() == hash_.value(), temporary_.path());
}

void AtomicFile::commit(Bytes header) {
  flush();
  try {
    file_.write_at(header, 0);
    file_.sync();
    file_.close();
    verify(header);
  } catch (const CheckpointError& error) {
    temporary_.fail_for(place_.path, error.what());
  }
  move_to_place(fs_, temporary_, place_);
}

}  // namespace maki
