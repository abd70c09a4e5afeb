#!/usr/bin/env bash
# Fuzzes the readers of files (tests/fuzz) with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer. Prints for each
# target how many inputs were tried, how much of the code they reach, whether one of them is a finding, and how many inputs
# were tried in how much processor time since its folder was made.
#
#   scripts/fuzz.sh                    every target for 600 seconds or 100 million inputs, one on each core
#   scripts/fuzz.sh NAME [SECONDS]     one target; NAME may be `all`
#   scripts/fuzz.sh --list             prints the names of the targets
#
# Inputs, logs and findings are kept below build/fuzz/NAME: a later run goes on from there. A finding is tried again with
#   MAKI_FUZZ_TARGET=NAME build/fuzz/tests/fuzz/maki_fuzz build/fuzz/NAME/crash-…
set -euo pipefail
export LC_ALL=C # times have a decimal point
cd "$(dirname "$0")/.."
. scripts/build.sh

fuzzer=build/fuzz/tests/fuzz/maki_fuzz
if [ -z "${MAKI_FUZZ_NO_BUILD:-}" ]; then
  bash scripts/setup.sh clang libclang-rt-dev libomp-dev
  cmake --preset fuzz --log-level=WARNING >&2
  build build/fuzz maki_fuzz
fi
names() { (MAKI_FUZZ_TARGET='' "$fuzzer" 2>&1 || true) | sed -n 's/.*one of these targets: //p'; }
if [ "${1:-}" = --list ]; then
  names | tr ' ' '\n'
  exit
fi
chosen=${1:-all} all=$(names)
[ -n "$all" ] || { echo "fuzz.sh: $fuzzer does not name its targets" >&2 && exit 1; }
if [ "$chosen" = all ]; then
  chosen=$all
elif [[ " $all " != *" $chosen "* ]]; then
  echo "fuzz.sh: a target must be all or one of these: $all; got $chosen" >&2 && exit 2
fi

# Files are read and written thousands of times per second: in memory, where that is possible.
TMPDIR=$(mktemp -d -p "$(test -w /dev/shm && echo /dev/shm || echo /tmp)")
export TMPDIR OMP_NUM_THREADS=1 fuzzer seconds=${2:-600}
trap 'rm -rf "$TMPDIR"' EXIT

try_target() {
  local name=$1 folder=build/fuzz/$1 result=none executions coverage TIMEFORMAT='%U %S'
  mkdir -p "$folder/inputs"
  # A reader that takes 10 seconds for 64 KiB takes more time than its file deserves.
  { time MAKI_FUZZ_TARGET=$name "$fuzzer" "$folder/inputs" -max_total_time="$seconds" -runs=100000000 -max_len=65536 \
    -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/" >"$folder/log" 2>&1; } \
    2>"$folder/seconds" || result=FOUND
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log")
  coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$folder/log" | tail -1)
  echo "${executions:-0} $(cat "$folder/seconds")" >>"$folder/tried"
  echo "$name: ${executions:-0} inputs tried, ${coverage:-0} edges reached, findings: $result;" \
    "$(awk '{ inputs += $1; seconds += $2 + $3 } END { printf "%d in all, in %.2f hours", inputs, seconds / 3600 }' "$folder/tried")"
  if [ $result = FOUND ]; then
    grep -m 3 -E 'ERROR|runtime error|^[a-z_]+: (unexpected|not an error|a file of)' "$folder/log" || tail -3 "$folder/log"
    sed -n 's/.*Test unit written to /  /p' "$folder/log"
    return 1
  fi
}
export -f try_target
tr ' ' '\n' <<<"$chosen" | xargs -P "$(nproc)" -I{} bash -c 'try_target {}'
