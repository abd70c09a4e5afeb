#!/usr/bin/env bash
# Measures training steps beside PyTorch, products beside OpenBLAS and oneDNN, and every kernel against the machine's
# limits, and prints one table of ratios: above 1, maki is ahead. Wants a quiet machine and about ten minutes.
#
#   scripts/bench.sh [steps] [products] [kernels] [tiles]      default: the first three
#
# tiles: 60 recorded products, small ones and batches too, beside the same on the vector units: on AMX no ratio may be
# below 1, and on other CPUs all are 1.
#
# WORKLOADS="quickstart baby"  of steps; default also gpt2 and long      ROUNDS=3  measure so often, keep the best
# PEER=…/torch_gpt.py          the same steps in PyTorch                PYTHON=…  one that has PyTorch
set -euo pipefail
cd "$(dirname "$0")/.."
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(steps products kernels)
for part in "${parts[@]}"; do
  case $part in steps | products | kernels | tiles) ;; *) echo "bench.sh: no part is called $part: steps, products, kernels, tiles" >&2; exit 2 ;; esac
done
read -ra workloads <<<"${WORKLOADS:-quickstart baby gpt2 long}"
rounds=${ROUNDS:-1}
peer=${PEER:-../shared/peers/torch_gpt.py}

bash scripts/setup.sh jq libbenchmark-dev libopenblas-dev libdnnl-dev
cmake --preset release --log-level=WARNING -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF -DMAKI_BUILD_BENCH=ON -B build/benchmarks
cmake --build build/benchmarks --target maki maki_benchmarks -- --quiet
maki=build/benchmarks/train/maki
results=build/benchmarks/results
mkdir -p "$results"

# OpenBLAS 0.3.21 does not know newer Intel CPUs: without a hint it is four times slower than it can be.
if grep -qw avx512f /proc/cpuinfo 2>/dev/null; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi

python=
for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
  if "$candidate" -c 'import torch' 2>/dev/null; then python=$candidate && break; fi
done
[ -f "$peer" ] && [ -n "$python" ] || echo "bench.sh: no PyTorch to compare with (peer $peer, python '$python')" >&2

# Lines: what, threads, GFLOP/s or GB/s of maki, its share of the limit, name and speed of an opponent.
steps() {
  local workload threads
  for _ in $(seq "$rounds"); do
    for workload in "${workloads[@]}"; do
      for threads in $(printf '1\n%s\n' "$(nproc)" | sort -nu); do
        echo "step $workload, $threads threads" >&2
        "$maki" bench --workload "$workload" --threads "$threads" --json |
          jq -r --arg what "step $workload" '[$what, .threads, "GFLOP/s", .gflop_per_second, .share_of_peak, "", 0] | @tsv'
        [ -f "$peer" ] && [ -n "$python" ] || continue
        "$python" "$peer" "$workload" --threads "$threads" |
          jq -r '["step " + .workload, .threads, "GFLOP/s", 0, 0, .engine, .gflop_per_second] | @tsv'
        if "$python" -c 'import sys, torch; sys.exit(torch.__version__ < "2")'; then
          "$python" "$peer" "$workload" --threads "$threads" --compile |
            jq -r '["step " + .workload, .threads, "GFLOP/s", 0, 0, .engine, .gflop_per_second] | @tsv' || true
        fi
      done
    done
  done
}

# What runs maki's kernels is told to wait as the program itself waits (main.cpp); the opponents wait as they like.
benchmarks() { # a regular expression of names
  echo "$1" >&2
  build/benchmarks/bench/maki_benchmarks --benchmark_filter="$1" --benchmark_min_time=0.2 --benchmark_format=json |
    jq -c '.benchmarks[]'
}

# Names are gemm/WHO[-packed]/M,N,K/NT/threads:N/real_time; packed before matters where B serves few rows.
products() {
  for _ in $(seq "$rounds"); do
    GOMP_SPINCOUNT=1000 benchmarks '^gemm/maki(/|-packed/(1|13),)'
    benchmarks '^gemm/(openblas/|onednn/|onednn-packed/(1|13),)'
  done | jq -r '
    (.name | split("/")) as $n | ($n[4] | ltrimstr("threads:")) as $threads |
    (if $n[1] | endswith("-packed") then ", B packed" else "" end) as $packed |
    "\($n[0]) \($n[2]) \($n[3])\($packed)" as $what |
    if $n[1] | startswith("maki") then [$what, $threads, "GFLOP/s", .["GFLOP/s"], .of_peak, "", 0]
    else [$what, $threads, "GFLOP/s", 0, 0, $n[1], .["GFLOP/s"]] end | @tsv'
}

# Names are kernel/NAME[/SIZES]/threads:N/real_time.
kernels() {
  for _ in $(seq "$rounds"); do GOMP_SPINCOUNT=1000 benchmarks '^kernel/'; done | jq -r '
    (.name | capture("^(?<what>.*)/threads:(?<threads>[0-9]+)")) as $n |
    if .["GFLOP/s"] then [$n.what, $n.threads, "GFLOP/s", .["GFLOP/s"], .of_peak, "", 0]
    else [$n.what, $n.threads, "GB/s", .["GB/s"], .of_copy, "", 0] end | @tsv'
}

# Names are tiles/WHO/BATCHxM,N,K/NT/threads:N/real_time.
tiles() {
  for _ in $(seq "$rounds"); do GOMP_SPINCOUNT=1000 benchmarks '^tiles/'; done | jq -r '
    (.name | split("/")) as $n | ($n[4] | ltrimstr("threads:")) as $threads | "\($n[0]) \($n[2]) \($n[3])" as $what |
    if $n[1] == "maki" then [$what, $threads, "GFLOP/s", .["GFLOP/s"], .of_peak, "", 0]
    else [$what, $threads, "GFLOP/s", 0, 0, $n[1], .["GFLOP/s"]] end | @tsv'
}

for part in "${parts[@]}"; do "$part" >"$results/$part.tsv"; done
(cd "$results" && cat "${parts[@]/%/.tsv}") | awk -F'\t' '
  { key = $1 FS $2 }
  !(key in unit) { order[++n] = key; unit[key] = $3 }
  $4 > speed[key] { speed[key] = $4; share[key] = $5 }
  $6 != "" && $7 > other[key] { other[key] = $7; who[key] = $6 }
  END {
    printf "%-44s %7s %9s %-8s %9s  %-16s %9s %6s\n", "", "threads", "maki", "", "of limit", "best opponent", "", "ratio"
    for (i = 1; i <= n; ++i) {
      key = order[i]; split(key, part, FS)
      printf "%-44s %7d %9.1f %-8s %7.0f %%", part[1], part[2], speed[key], unit[key], 100 * share[key]
      if (other[key] > 0) printf "  %-16s %9.1f %6.2f", who[key], other[key], speed[key] / other[key]
      printf "\n"
    }
  }'
