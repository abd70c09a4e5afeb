#!/usr/bin/env bash
# Compares training steps with PyTorch, matrix products with OpenBLAS and oneDNN, and every kernel with the limits of the
# machine. Prints one table; a ratio above 1 means that maki is faster. Needs an otherwise idle machine and about ten
# minutes.
#
#   scripts/bench.sh [steps] [products] [kernels] [tiles]      default: the first three
#
# tiles: compares 60 recorded products, including small and batched ones, with the same products on the vector units. With
# AMX, no ratio may be below 1; on other CPUs all are 1.
#
# Environment variables:
#   WORKLOADS="quickstart baby"  workloads of `steps`; default: quickstart baby gpt2 long
#   ROUNDS=3                     number of measurements, of which the best counts; default: 1
#   PYTHON=…                     a Python interpreter with PyTorch 2.4 or later, for `steps` (bench/torch_step.py)
set -euo pipefail
export LC_ALL=C # numbers have a decimal point
cd "$(dirname "$0")/.."
. scripts/build.sh
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(steps products kernels)
for part in "${parts[@]}"; do
  case $part in
    steps | products | kernels | tiles) ;;
    *) echo "bench.sh: a part must be steps, products, kernels or tiles; got $part" >&2 && exit 2 ;;
  esac
done
read -ra workloads <<<"${WORKLOADS:-quickstart baby gpt2 long}"
rounds=${ROUNDS:-1}

bash scripts/setup.sh jq libbenchmark-dev libopenblas-dev libdnnl-dev
cmake --preset release --log-level=WARNING -B build/benchmarks -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF \
  -DMAKI_BUILD_BENCH=ON
build build/benchmarks maki maki_benchmarks
maki=build/benchmarks/train/maki
results=build/benchmarks/results
mkdir -p "$results"

# OpenBLAS 0.3.21 does not recognise newer Intel CPUs and is four times slower on them without this setting.
if grep -qw avx512f /proc/cpuinfo 2>/dev/null; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi

# AdamW of PyTorch 2.4 and later is fused on CPUs.
new_enough='import sys, torch; sys.exit([int(number) for number in torch.__version__.split(".")[:2]] < [2, 4])'
candidates=(python3 /usr/bin/python3) python=
[ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
for candidate in "${candidates[@]}"; do
  if "$candidate" -c "$new_enough" 2>/dev/null; then python=$candidate && break; fi
done
[ -n "$python" ] ||
  echo "bench.sh: steps are not compared with PyTorch; set PYTHON to an interpreter that has PyTorch 2.4 or later" >&2

# Each function prints tab-separated lines: name, threads, unit, maki's speed, its fraction of the limit, and the name and
# speed of a competitor. Numbers that a line does not have are 0.
steps() {
  local workload threads shape compiled
  for _ in $(seq "$rounds"); do
    for workload in "${workloads[@]}"; do
      for threads in $(printf '1\n%s\n' "$(nproc)" | sort -nu); do
        echo "step $workload, $threads threads" >&2
        shape=$("$maki" bench --workload "$workload" --threads "$threads" --json)
        jq -r --arg what "step $workload" '[$what, .threads, "GFLOP/s", .gflop_per_second, .share_of_peak, "", 0] | @tsv' \
          <<<"$shape"
        [ -n "$python" ] || continue
        # torch.compile() needs a C++ compiler that it can use. What fails costs its own figure alone.
        for compiled in '' --compile; do
          "$python" bench/torch_step.py $compiled <<<"$shape" |
            jq -r --arg what "step $workload" '[$what, .threads, "GFLOP/s", 0, 0, .engine, .gflop_per_second] | @tsv' ||
            echo "bench.sh: the step is not compared with torch_step.py${compiled:+ $compiled}, which failed" >&2
        done
      done
    done
  done
}

# Runs maki_benchmarks. For maki's kernels, callers set GOMP_SPINCOUNT to about what the maki program sets for itself
# (train/app/limit_spinning.cpp); competitors keep their default.
benchmarks() { # regular expression of benchmark names
  echo "$1" >&2
  build/benchmarks/bench/maki_benchmarks --benchmark_filter="$1" --benchmark_min_time=0.2 --benchmark_format=json |
    jq -c '.benchmarks[]'
}

# Names are gemm/WHO[-packed]/M,N,K/NT/threads:N/real_time. Prepacked operands are measured only with few rows, where
# packing matters.
products() {
  for _ in $(seq "$rounds"); do
    GOMP_SPINCOUNT=2000 benchmarks '^gemm/maki(/|-packed/(1|13),)'
    benchmarks '^gemm/(openblas/|onednn/|onednn-packed/(1|13),)' ||
      echo "bench.sh: products are not compared with all of OpenBLAS and oneDNN, which failed" >&2
  done | jq -r '
    (.name | split("/")) as $n | ($n[4] | ltrimstr("threads:")) as $threads |
    (if $n[1] | endswith("-packed") then ", B packed" else "" end) as $packed |
    "\($n[0]) \($n[2]) \($n[3])\($packed)" as $what |
    if $n[1] | startswith("maki") then [$what, $threads, "GFLOP/s", .["GFLOP/s"], .of_peak, "", 0]
    else [$what, $threads, "GFLOP/s", 0, 0, $n[1], .["GFLOP/s"]] end | @tsv'
}

# Names are kernel/NAME[/SIZES]/threads:N/real_time.
kernels() {
  for _ in $(seq "$rounds"); do GOMP_SPINCOUNT=2000 benchmarks '^kernel/'; done | jq -r '
    (.name | capture("^(?<what>.*)/threads:(?<threads>[0-9]+)")) as $n |
    if .["GFLOP/s"] then [$n.what, $n.threads, "GFLOP/s", .["GFLOP/s"], .of_peak, "", 0]
    else [$n.what, $n.threads, "GB/s", .["GB/s"], .of_copy, "", 0] end | @tsv'
}

# Names are tiles/WHO/BATCHxM,N,K/NT/threads:N/real_time.
tiles() {
  for _ in $(seq "$rounds"); do GOMP_SPINCOUNT=2000 benchmarks '^tiles/'; done | jq -r '
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
    printf "%-44s %7s %9s %-8s %9s  %-16s %9s %6s\n", "", "threads", "maki", "", "of limit", "best competitor", "", "ratio"
    for (i = 1; i <= n; ++i) {
      key = order[i]; split(key, part, FS)
      printf "%-44s %7d %9.1f %-8s %7.0f %%", part[1], part[2], speed[key], unit[key], 100 * share[key]
      if (other[key] > 0) printf "  %-16s %9.1f %6.2f", who[key], other[key], speed[key] / other[key]
      printf "\n"
    }
  }'
