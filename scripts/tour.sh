#!/usr/bin/env bash
# Runs every command of both tours, and compares what they print with what docs/tour.md and docs/tour.ja.md show.
#
#   scripts/tour.sh             compares
#   scripts/tour.sh --update    writes what the commands print into the pages, where it differs
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

filter='the tours: every command*'
case ${1:-} in
  '') ;;
  --update) filter='[.update-tours]' ;;
  *) echo "tour.sh: the only option is --update; got $1" >&2 && exit 2 ;;
esac
bash scripts/setup.sh catch2 librapidcheck-dev
cmake --preset fast --log-level=WARNING >/dev/null
build build/fast maki_tests_docs
OMP_WAIT_POLICY=passive run_tests build/fast/tests/maki_tests_docs "$filter"
