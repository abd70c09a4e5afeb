#!/usr/bin/env bash
# Checks sources with clang-tidy, as .clang-tidy says: those that differ from the last commit, or these.
#
#   scripts/tidy.sh [--all | FILE…]
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  --all) mapfile -t files < <(git ls-files 'autograd/*.cpp' 'nn/*.cpp' 'optim/*.cpp' 'data/*.cpp' 'train/*.cpp') ;;
  '') mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- 'autograd/*.cpp' 'nn/*.cpp' 'optim/*.cpp' 'data/*.cpp' 'train/*.cpp') ;;
  *) files=("$@") ;;
esac
[ ${#files[@]} -gt 0 ] || exit 0
cmake --preset release --log-level=WARNING -B build/tidy -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DMAKI_BUILD_TESTS=OFF >/dev/null
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet --warnings-as-errors='*' -p build/tidy 2>/dev/null
