#!/usr/bin/env bash
# Fails if training steps have become slower: compares the share of the machine's peak that each workload reaches with the
# one recorded in bench/baseline.tsv for machines with the same SIMD target. Needs an otherwise idle machine; on two cores,
# comparing takes about nine minutes.
#
#   scripts/speed.sh             compare: the median of five rounds must not be below the recorded range
#   scripts/speed.sh --update    record the range of seven rounds for this SIMD target
set -euo pipefail
export LC_ALL=C # numbers have a decimal point
cd "$(dirname "$0")/.."
. scripts/build.sh

baseline=bench/baseline.tsv
update=
[ "${1:-}" != --update ] || update=1
bash scripts/setup.sh jq
build_program here

# Prints the shares of some rounds in ascending order: shares ROUNDS WORKLOAD PRECISION.
shares() {
  for _ in $(seq "$1"); do "$build/train/maki" bench --workload "$2" --precision "$3" --json | jq .share_of_peak; done | sort -g
}

target=$("$build/train/maki" bench --workload quickstart --steps 10 --json | jq -r .target)
failed=0 compared=0
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
for workload in quickstart baby gpt2 long; do
  for precision in float32 bfloat16; do
    if [ -n "$update" ]; then
      shares 7 "$workload" "$precision" | paste -s | awk -v OFS='\t' -v key="$target	$workload	$precision" \
        '{ printf "%s\t%.3f\t%.3f\t%.3f\n", key, $1, $4, $7 }' | tee -a "$rows"
      continue
    fi
    low=$(awk -F '\t' -v t="$target" -v w="$workload" -v p="$precision" '$1 == t && $2 == w && $3 == p { print $4 }' "$baseline")
    [ -n "$low" ] || continue
    median=$(shares 5 "$workload" "$precision" | sed -n 3p)
    compared=$((compared + 1))
    verdict=$(awk -v m="$median" -v l="$low" 'BEGIN { print m < l ? "slower" : "ok" }')
    printf '%s %s: %.3f of the peak, recorded from %s: %s\n' "$workload" "$precision" "$median" "$low" "$verdict"
    [ "$verdict" = ok ] || failed=1
  done
done
if [ -n "$update" ]; then
  others=$(grep -v "^$target	" "$baseline" 2>/dev/null | grep -v '^#' || true)
  { printf '# SIMD target, workload, precision, lowest, median and highest share of the peak (scripts/speed.sh)\n'
    { [ -z "$others" ] || printf '%s\n' "$others"; cat "$rows"; } | sort; } >"$baseline"
elif [ $compared = 0 ]; then
  echo "speed.sh: nothing is recorded for the SIMD target $target; record it with scripts/speed.sh --update" >&2
  exit 2
fi
exit $failed
