// Token ids in a file, which are read from it whenever they are needed: they need no memory of the process, and the
// file is noticed to change (data/io/stable_file.h).
#pragma once

#include <memory>
#include <vector>

#include "data/io/stable_file.h"
#include "data/tokenizer/tokens.h"

namespace maki {

/// Where ids are in a file: as unsigned numbers of `width` bytes, or as signed ones if that is 4.
struct IdSection {
  std::uint64_t offset = 0, count = 0;
  std::uint32_t width = 1;
};

class FileTokens final : public TokenSource {
 public:
  /// Requires: the file has the section; its width is 1, 2 or 4; the joins are those of TokenSpan.
  FileTokens(std::shared_ptr<const StableFile> file, const IdSection& ids, std::vector<std::int64_t> joins = {})
      : file_(std::move(file)), ids_(ids), joins_(std::move(joins)) {}

  std::size_t size() const override { return ids_.count; }
  /// Throws what StableFile::read() throws.
  void copy(std::size_t begin, std::span<std::int32_t> to) const override;
  std::span<const std::int64_t> joins() const override { return joins_; }

 private:
  template <class Id>
  void copy_ids(std::size_t begin, std::span<std::int32_t> to) const;

  std::shared_ptr<const StableFile> file_;
  IdSection ids_;
  std::vector<std::int64_t> joins_;
};

}  // namespace maki
