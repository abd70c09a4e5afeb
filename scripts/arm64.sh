#!/usr/bin/env bash
# Builds maki for ARM64 Linux on another machine and tests it under emulation (qemu-user): kernels, ops, engine, layers,
# optimizers, and runs that must have equal bytes. Takes half an hour on two cores.
#
#   scripts/arm64.sh [--system | --build]      with --system, only fetches the headers and libraries of a system for ARM64;
#                                              with --build, builds the program build/arm64/train/maki, too
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
build build/arm64
[ "${1:-}" = --build ] || ctest --preset arm64 -j "$(nproc)" -R "^(autograd|kernels|ops|optim|nn|data):" -E "larger than one slab"
