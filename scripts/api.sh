#!/usr/bin/env bash
# Makes the reference of the library with Doxygen, a page for every public class and function.
#
#   scripts/api.sh                     build/api/html/index.html
#   scripts/api.sh HEADERS OUTPUT      of the headers in a directory
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

headers=${1:-$PWD/build/fast/include} output=${2:-$PWD/build/api}
if [ $# -eq 0 ]; then
  bash scripts/setup.sh catch2 librapidcheck-dev doxygen
  cmake --preset fast --log-level=WARNING >/dev/null
  build build/fast maki_public_headers
fi
mkdir -p "$output"
{
  cat docs/api/Doxyfile
  printf '%s = "%s"\n' INPUT "$headers" STRIP_FROM_PATH "$headers" STRIP_FROM_INC_PATH "$headers" OUTPUT_DIRECTORY "$output"
} | doxygen -
echo "$output/html/index.html"
