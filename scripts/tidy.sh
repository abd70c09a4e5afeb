#!/usr/bin/env bash
# Checks sources with clang-tidy, as .clang-tidy says: those that differ from the last commit, or these.
#
#   scripts/tidy.sh [--all | FILE…]
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang-tidy >/dev/null ||
  { echo "tidy.sh: clang-tidy is missing; on Debian or Ubuntu: apt-get install clang-tidy" >&2; exit 1; }
folders=(autograd nn optim data train)
case ${1:-} in
  --all) mapfile -t files < <(find "${folders[@]}" -name '*.cpp') ;;
  '')
    git rev-parse HEAD >/dev/null
    mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- "${folders[@]/%//*.cpp}")
    ;;
  *) files=("$@") ;;
esac
[ ${#files[@]} -gt 0 ] || exit 0
cmake --preset release --log-level=WARNING -B build/tidy -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DMAKI_BUILD_TESTS=OFF >/dev/null
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' -p build/tidy \
  2> >(grep -v ' generated\.$' >&2) # the number of warnings in headers of others
