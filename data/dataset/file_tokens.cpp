#include "data/dataset/file_tokens.h"

#include <algorithm>
#include <array>

namespace maki {

template <class Id>
void FileTokens::copy_ids(std::size_t begin, std::span<std::int32_t> to) const {
  std::array<Id, 4096> block;
  while (!to.empty()) {
    const std::span ids = std::span(block).first(std::min(block.size(), to.size()));
    file_->read(ids_.offset + begin * sizeof(Id), std::as_writable_bytes(ids));
    std::ranges::copy(ids, to.begin());
    begin += ids.size();
    to = to.subspan(ids.size());
  }
}

void FileTokens::copy(std::size_t begin, std::span<std::int32_t> to) const {
  if (ids_.width == 1) {
    copy_ids<std::uint8_t>(begin, to);
  } else if (ids_.width == 2) {
    copy_ids<std::uint16_t>(begin, to);
  } else {
    file_->read(ids_.offset + begin * sizeof(std::int32_t), std::as_writable_bytes(to));
  }
}

}  // namespace maki
