#!/usr/bin/env bash
# Installs missing packages, builds for this machine alone and runs all tests. scripts/check.sh tests everything else.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

bash scripts/setup.sh catch2 librapidcheck-dev libopenmpi-dev openmpi-bin
cmake --preset fast --log-level=WARNING
build build/fast
ctest --preset fast -j "$(nproc)"
