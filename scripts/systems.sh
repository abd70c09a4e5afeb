#!/usr/bin/env bash
# Runs scripts/test.sh in clean systems of other releases, with their compilers and libraries: what is committed, in a chroot
# below build/systems. Needs root.
#
#   scripts/systems.sh [NAME…]      debian-12, debian-13 or ubuntu-24.04; the default is the last two
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

[ $# -gt 0 ] || set -- debian-13 ubuntu-24.04
for name; do
  echo "$name: scripts/test.sh" >&2
  in_system "$name" /maki/scripts/test.sh
done
