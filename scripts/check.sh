#!/usr/bin/env bash
# The full tier: every test with kernels for all SIMD targets, with g++ and with clang, with the sanitizers, clang-tidy on
# all sources, the fuzz targets for a minute each, AVX-512 and ARM64 under emulation, the fast tier in other releases of Debian
# and Ubuntu, all sources compiled for macOS, the packages in a clean system, several processes with both MPI libraries and a
# build without them, every fault at every system call, and faults in the code, 200 of which are drawn. Takes hours on two
# cores.
# scripts/test.sh is the fast tier.
#
#   scripts/check.sh [PART…]
#       default: release clang asan tsan tidy fuzz avx512 arm64 systems macos packages ranks calls mutants
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

[ $# -gt 0 ] || set -- release clang asan tsan tidy fuzz avx512 arm64 systems macos packages ranks calls mutants
bash scripts/setup.sh catch2 librapidcheck-dev libopenmpi-dev openmpi-bin clang clang-tidy libomp-dev
for part in "$@"; do
  echo "== $part"
  case $part in
    tidy) scripts/tidy.sh --all ;;
    fuzz) scripts/fuzz.sh all 60 ;;
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
done
# A build for this machine alone computes what the one for all machines does on it.
if [ -x build/fast/train/maki ] && [ -x build/release/train/maki ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for build in fast release; do
    "build/$build/train/maki" train @stories:100000 --out "$work/$build" --max-steps 20 --quiet
  done
  cmp "$work/fast/checkpoints/step-00000020.maki" "$work/release/checkpoints/step-00000020.maki"
fi
