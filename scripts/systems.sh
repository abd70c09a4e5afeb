#!/usr/bin/env bash
# Runs scripts/test.sh in clean systems of other releases, with their compilers and libraries: what is committed, in a chroot
# below build/systems. Needs root.
#
#   scripts/systems.sh [NAME…]      debian-13 or ubuntu-24.04; the default is both
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "systems.sh: must be run as root, which chroot needs" >&2; exit 1; }
bash scripts/setup.sh mmdebstrap git
[ $# -gt 0 ] || set -- debian-13 ubuntu-24.04
for name; do
  case $name in
    debian-13) source=(trixie http://deb.debian.org/debian main) ;;
    # Debian has no keys of Ubuntu.
    ubuntu-24.04) source=(noble '[trusted=yes] http://archive.ubuntu.com/ubuntu' main universe) ;;
    *) echo "systems.sh: a name must be debian-13 or ubuntu-24.04; got $name" >&2; exit 2 ;;
  esac
  root=build/systems/$name
  mkdir -p build/systems
  if [ ! -d "$root" ]; then
    rm -rf "$root.new"
    mmdebstrap --quiet --variant=apt --include=git,ca-certificates,util-linux "${source[0]}" "$root.new" \
      "deb ${source[1]} ${source[0]} ${source[*]:2}"
    mv "$root.new" "$root"
  fi
  rm -rf "$root/maki"
  git clone --quiet . "$root/maki"
  echo "$name: scripts/test.sh" >&2
  # In a mount namespace of its own, which ends with the command.
  unshare --mount --pid --fork bash -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/tmp"
    exec chroot "$1" /maki/scripts/test.sh' _ "$PWD/$root"
done
