#!/usr/bin/env bash
# Compiles the sources of maki and of its tests for macOS on another machine, as far as that goes without one: what is
# compiled is neither linked nor run.
#
#   scripts/macos.sh [FOLDER…]      the default: autograd nn optim data train examples tests
#
# zig brings the headers of macOS and a libc++: https://ziglang.org, or `python3 -m pip install ziglang` in the Python
# that $PYTHON names. Those of the other libraries are this system's.
set -euo pipefail
cd "$(dirname "$0")/.."

bash scripts/setup.sh catch2 librapidcheck-dev
if command -v zig >/dev/null; then zig=(zig); else zig=("${PYTHON:-python3}" -m ziglang); fi
"${zig[@]}" version >/dev/null || { echo "macos.sh: zig is missing: python3 -m pip install ziglang" >&2; exit 1; }
[ $# -gt 0 ] || set -- autograd nn optim data train examples tests
for folder; do [ -d "$folder" ] || { echo "macos.sh: there is no folder $folder" >&2 && exit 2; }; done

work=build/macos
rm -rf "$work"
mkdir -p "$work/include"
# Only what belongs to libraries: the C library's headers in the same folder are Linux's.
for header in CLI catch2 cereal fmt hwy nlohmann rapidcheck rapidcheck.h toml++ xxhash.h utf8proc.h pcre2.h microhttpd.h; do
  ln -s "/usr/include/$header" "$work/include/$header"
done
ln -s "$(g++ -print-file-name=include/omp.h)" "$work/include/omp.h"

ln -s "$PWD" "$work/include/maki"  # the public headers
# toml++ 3.3 uses this number without its header, which zig's hides after <cmath>.
printf '%s\n' '#include <cmath>' '#ifndef FLT_RADIX' '#define FLT_RADIX 2' '#endif' > "$work/include/first.h"

# Sources of a folder together, as in a unity build (cmake/MakiTargets.cmake), but for those with kernels and programs.
only_linux='^tests/(cli/malloc|memory|package|fuzz)/|_module\.cpp$'
while read -r source; do
  folder=$(dirname "$source")
  case $source in
    autograd/kernels/*|examples/*|*/main.cpp|*/allocations.cpp) echo "#include \"$source\"" > "$work/${source//\//.}" ;;
    *) echo "#include \"$source\"" >> "$work/${folder//\//.}.cpp" ;;
  esac
done < <(find "$@" -name '*.cpp' | LC_ALL=C sort | grep -v -E "$only_linux")

compile() {
  "${zig[@]}" c++ -target aarch64-macos -std=c++20 -Xclang -fopenmp -Wall -Wextra -Wshadow -Wconversion -Werror \
    -Wno-unused-command-line-argument -ffp-contract=off -include first.h -I. -isystem "$work/include" -c -o "$1.o" \
    -DFMT_HEADER_ONLY -DTOML_HEADER_ONLY=1 -DPCRE2_CODE_UNIT_WIDTH=8 -DHWY_COMPILE_ONLY_STATIC \
    "-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)" -DMAKI_MODULES='"."' -DMAKI_EMULATOR='""' \
    -DMAKI_SOURCE_DIR='"."' -DMAKI_BINARY='"maki"' -DMAKI_FOLDER='"."' -DMAKI_EXAMPLES_FOLDER='"."' "$1" \
    || { echo "macos.sh: $1 does not compile for macOS" >&2; return 1; }
}
export -f compile
export work
declare -p zig > "$work/zig"
find "$work" -name '*.cpp' -printf '%s %p\n' | sort -rn | cut -d' ' -f2 |
  xargs -P "$(nproc)" -I{} bash -c '. "$work/zig"; compile "$1"' _ {}
echo "All sources of $* compile for macOS on ARM64."
