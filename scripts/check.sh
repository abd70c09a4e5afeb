#!/usr/bin/env bash
# The full tier: every test with kernels for all SIMD targets, with g++ and with clang, with the sanitizers, clang-tidy on
# all sources, the fuzz targets for a minute each, AVX-512 and ARM64 under emulation, the fast tier in other releases of Debian
# and Ubuntu, all sources compiled for macOS, the packages in a clean system, several processes with both MPI libraries and a
# build without them, every fault at every system call, and faults in the code, 200 of which are drawn. Takes hours on two
# cores.
# scripts/test.sh is the fast tier.
#
#   scripts/check.sh [PART…]      default: all, in the order of the table below
#
# Every part is tried, whatever became of the others. The table at the end says what each has tried; build/check/PART.log has
# what it printed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

# A part, and what it shows.
table='
release   every promise, with kernels for all SIMD targets
builds    the same bytes from a build for this machine alone
clang     the same as clang compiles it
asan      no memory error, no leak, nothing undefined
tsan      no data race
tidy      no finding of clang-tidy
fuzz      no file is trusted wrongly or ends the program
avx512    the same bits with AVX-512
arm64     the same bits on ARM64
systems   the fast tier in other releases of Debian and Ubuntu
macos     everything compiles for macOS
packages  packages install, run and go without a trace
ranks     the same bytes on several machines, and without MPI
calls     nothing is lost, whichever system call fails
mutants   the tests notice faults'

try_part() {
  local part=$1
  case $part in
    tidy) scripts/tidy.sh --all ;;
    fuzz)
      scripts/fuzz.sh all 60
      cmake --preset release --log-level=WARNING
      build build/release maki_tests_train
      build/release/tests/maki_tests_train "[.long_input]"
      ;;
    avx512 | arm64 | systems | macos) "scripts/$part.sh" ;;
    packages) scripts/check_packages.sh ;;
    ranks)
      bash scripts/setup.sh catch2 libopenmpi-dev openmpi-bin libmpich-dev mpich
      cmake --preset release --log-level=WARNING
      build build/release maki_tests_train
      build/release/tests/maki_tests_train "[every-message]"
      scripts/check_mpi.sh
      cmake --preset fast -B build/alone -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON --log-level=WARNING
      build build/alone
      ctest --test-dir build/alone -j "$(nproc)" --output-on-failure
      ;;
    calls)
      cmake --preset release --log-level=WARNING
      build build/release maki maki_tests_durability
      MAKI_EVERY_FAULT=1 build/release/tests/maki_tests_durability "whichever system call*"
      ;;
    builds)
      work=$(mktemp -d)
      trap 'rm -rf "$work"' EXIT
      for preset in fast release; do
        cmake --preset $preset --log-level=WARNING
        build "build/$preset" maki
        "build/$preset/train/maki" train @stories:100000 --out "$work/$preset" --max-steps 20 --quiet
      done
      cmp "$work/fast/checkpoints/step-00000020.maki" "$work/release/checkpoints/step-00000020.maki"
      ;;
    mutants)
      scripts/mutate.sh --listed
      scripts/mutate.sh 200 --seed "$(date +%Y%m)"
      ;;
    *)
      cmake --preset "$part" --log-level=WARNING
      build "build/$part"
      ctest --preset "$part" -j "$(nproc)"
      ;;
  esac
}

# What the output of a part says it has tried: 1,643 tests, 5,000,000 inputs.
tried() {
  awk -v FS='[ :(]+' '
    /tests? failed out of/ { tests += $NF }
    /All tests passed/ { for (i = 1; i < NF; ++i) if ($i == "in") tests += $(i + 1) }
    /tests of kernels and ops passed/ { tests += $1 }
    / inputs tried/ { inputs += $2 }
    / faults were noticed/ { faults += $3 }
    END { print inputs ? inputs " inputs" : tests ? tests " tests" : faults ? faults " faults" : "-" }' "$1"
}

if [ "${1:-}" = --alone ]; then
  try_part "$2"
  exit
fi
parts=("$@")
[ $# -gt 0 ] || mapfile -t parts < <(awk 'NF {print $1}' <<<"$table")
for part in "${parts[@]}"; do
  grep -q "^$part " <<<"$table" || { echo "check.sh: there is no part $part" >&2 && exit 2; }
done
bash scripts/setup.sh catch2 librapidcheck-dev libopenmpi-dev openmpi-bin clang clang-tidy libomp-dev
mkdir -p build/check
rows=() failed=0
for part in "${parts[@]}"; do
  what=$(awk -v part="$part" '$1 == part {sub(/^[^ ]+ +/, ""); print}' <<<"$table")
  echo "== $part"
  begin=$SECONDS result=passed
  bash scripts/check.sh --alone "$part" 2>&1 | tee "build/check/$part.log" || { result=FAILED && failed=1; }
  rows+=("$part|$what|$(tried "build/check/$part.log")|$result|$(((SECONDS - begin + 30) / 60)) min")
done
printf '\n%-9s %-58s %-16s %-7s %s\n' part promise tried result time
for row in "${rows[@]}"; do
  IFS='|' read -r part what tries result time <<<"$row"
  printf '%-9s %-58s %-16s %-7s %s\n' "$part" "$what" "$tries" "$result" "$time"
done
exit $failed
