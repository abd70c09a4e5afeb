#!/usr/bin/env bash
# Builds maki for ARM64 Linux on another machine and tests it under emulation (qemu-user): engine, kernels, ops, optimizers,
# and runs that must have equal bytes.
#
#   scripts/arm64.sh [--system | --build]      --system: only fetches the headers and libraries of a system for ARM64;
#                                              --build: and builds, but tests nothing; build/arm64/train/maki is the program
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

bash scripts/setup.sh g++-aarch64-linux-gnu qemu-user mmdebstrap
# Headers and libraries of the same release of Debian for ARM64. Nothing in them is executed here, except under emulation.
system=build/arm64-system
if [ ! -d "$system" ]; then
  mapfile -t libraries < <(bash scripts/setup.sh --names librapidcheck-dev libstdc++-12-dev | grep -e '-dev$')
  mkdir -p build
  rm -rf "$system.new"
  (. /etc/os-release && mmdebstrap --quiet --variant=extract --architectures=arm64 \
    --include="catch2,libc6-dev,$(IFS=, && echo "${libraries[*]}")" "$VERSION_CODENAME" "$system.new")
  mv "$system.new" "$system"
fi
[ "${1:-}" != --system ] || exit 0
cmake --preset arm64 --log-level=WARNING
build build/arm64 maki maki_tests_{autograd,kernels,ops,optim,cli}
[ "${1:-}" != --build ] || exit 0
# The two that are left out, of a large product and of a large vocabulary, take a third of the time of all others.
ctest --preset arm64 -j "$(nproc)" -E "larger than one slab|linear_cross_entropy has the bits" \
  -R "^(autograd|kernels|ops|optim):|^cli:(60 steps give|golden runs train on|the number of threads changes no byte in 100|a run with Muon)"
