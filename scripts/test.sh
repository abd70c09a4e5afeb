#!/usr/bin/env bash
# Installs missing packages, builds in release mode and runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."

bash scripts/setup.sh catch2 librapidcheck-dev
cmake --preset release --log-level=WARNING
cmake --build --preset release -- --quiet
ctest --preset release -j "$(nproc)"
