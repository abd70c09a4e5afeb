// Git LFS keeps large files elsewhere and leaves a short text with their hash in their place, which a clone without
// git-lfs contains instead of the file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "autograd/core/check.h"

namespace maki {

inline constexpr std::string_view kGitLfsPointer = "version https://git-lfs.github.com/spec/v1\n";

/// Throws E, an Error, if a file begins like such a text. Every reader of files calls it, because none could say more
/// than that the file is not what it should be.
template <class E>
void refuse_git_lfs_pointer(std::string_view beginning, const std::string& path) {
  check<E>(!beginning.starts_with(kGitLfsPointer),
           "{}: is a pointer that Git LFS left in place of the file; fetch the file itself with: git lfs pull", path);
}
template <class E>
void refuse_git_lfs_pointer(std::span<const std::byte> beginning, const std::string& path) {
  refuse_git_lfs_pointer<E>(std::string_view(reinterpret_cast<const char*>(beginning.data()), beginning.size()), path);
}

}  // namespace maki
