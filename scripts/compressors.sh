#!/usr/bin/env bash
# Prints how many bits per character xz, zstd and zpaq need for a text, those of them that are installed. With BEFORE,
# what the text costs after that one, as the validation part of a run after its training part: the size of both together
# minus the size of BEFORE.
#
#   scripts/compressors.sh TEXT [BEFORE]
set -euo pipefail
export LC_ALL=C # numbers have a decimal point
text=$1 before=${2:-/dev/null}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat "$before" "$text" >"$folder/both"
cat "$before" >"$folder/before"
bits=0
for ((n = $(stat -c %s "$folder/both") + 4095; n > 0; n >>= 1)); do bits=$((bits + 1)); done
# The method is that of zpaq -m5 for text. -m5 itself chooses the size of its tables by the size of each file.
method=x$((bits < 20 ? 0 : bits > 31 ? 11 : bits - 20)),0w2c0,1010,255i1c256ci1,1,1,1,1,1,2ac0,2,0,255i1c0,3,0,0,255i1c0,4,0,0,0,255i1mm16ts19t0
xz_size() { xz -9e --threads=1 --stdout "$1" | wc -c; }
zstd_size() { zstd --ultra -22 --long=31 --quiet --stdout "$1" | wc -c; }
zpaq_size() { zpaq add "$1.zpaq" "$1" -method "$method" -threads 1 >/dev/null 2>&1 && stat -c %s "$1.zpaq"; }
characters=$(LC_ALL=C.UTF-8 wc -m <"$text")
for program in xz zstd zpaq; do
  command -v $program >/dev/null || continue
  bytes=$(($(${program}_size "$folder/both") - $([ -s "$folder/before" ] && ${program}_size "$folder/before" || echo 0)))
  awk -v p=$program -v b=$bytes -v c="$characters" 'BEGIN { printf "%-5s %.4f bits per character: %d bytes\n", p, 8 * b / c, b }'
done
