#include "train/run/atomic_file.h"

#include <algorithm>
#include <fcntl.h>
#include <vector>

namespace maki {

AtomicFile::AtomicFile(FileSystem& fs, const std::string& path, std::size_t header_size) : fs_(fs), path_(path) {
  try {
    file_.emplace(fs, path + ".tmp", O_WRONLY | O_CREAT | O_TRUNC);
  } catch (const CheckpointError& error) {
    fail_to_write(fs, path, error.what());
  }
  buffer_.assign(header_size, '\0');
  size_ = header_size;
}

AtomicFile::~AtomicFile() {
  file_.reset();
  if (open_) fs_.unlink(path_ + ".tmp");
}

void AtomicFile::append(Bytes bytes) {
  constexpr std::size_t kBufferBytes = 1 << 20;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  hash_.add(text);
  size_ += text.size();
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  try {
    file_.value().write_all(text_bytes(buffer_));
  } catch (const CheckpointError& error) {
    open_ = false;  // removed here, with a message
    fail_to_write(fs_, path_, error.what());
  }
  buffer_.clear();
}

void AtomicFile::verify(Bytes header) {
  constexpr std::size_t kBlockBytes = 1 << 20;
  const std::string temporary = path_ + ".tmp";
  Descriptor file(fs_, temporary, O_RDONLY);
  std::vector<std::byte> block(header.size());
  bool same = file.read_some(block) == header.size() && std::ranges::equal(block, header);
  Hash128 hash;
  std::uint64_t size = header.size();
  block.resize(kBlockBytes);
  while (const std::size_t n = file.read_some(block)) {
    hash.add({block.data(), n});
    size += n;
  }
  same = same && size == size_ && hash.value() == hash_.value();
  check<CheckpointError>(same, "{}: what was read back differs from what was written; the disk may be failing",
                         temporary);
}

void AtomicFile::finish(Bytes header) {
  flush();
  try {
    file_.value().write_at(header, 0);
    file_.value().sync();
    file_.value().close();
    file_.reset();
    verify(header);
  } catch (const CheckpointError& error) {
    open_ = false;
    fail_to_write(fs_, path_, error.what());
  }
}

void AtomicFile::replace() {
  open_ = false;
  try {
    rename_temporary(fs_, path_);
  } catch (const CheckpointError& error) {
    fail_to_write(fs_, path_, error.what());
  }
  replaced_ = true;
  sync_directory(fs_, parent_directory(path_));
}

}  // namespace maki
