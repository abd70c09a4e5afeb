#!/usr/bin/env bash
# Builds maki and installs the program, so that `maki` can be typed in any directory.
#
#   scripts/install.sh [PREFIX]      default: /usr/local as root, ~/.local otherwise; the program is PREFIX/bin/maki
#
# The library with its headers: cmake --install (README.md).
set -euo pipefail
prefix=${1:-}
if [ -z "$prefix" ]; then
  if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?is not set; give a PREFIX}/.local; fi
fi
case $prefix in
  -*) echo "install.sh: takes one argument, the directory to install to; got $prefix" >&2; exit 2 ;;
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
mkdir -p "$prefix/bin" 2>/dev/null && [ -w "$prefix/bin" ] ||
  { echo "install.sh: $prefix/bin cannot be written; run it as root, or give a directory of yours" >&2; exit 1; }

cd "$(dirname "$0")/.."
. scripts/build.sh
cmake --install "$build" --prefix "$prefix" --component program >/dev/null
echo "$prefix/bin/maki is installed."

found=$(command -v maki || true)
if [ "$found" = "$prefix/bin/maki" ]; then
  echo "Try it: maki train @stories"
elif [ -n "$found" ]; then
  echo "But the shell finds another maki first: $found. Put this one before it:"
  echo "  export PATH=\"$prefix/bin:\$PATH\""
else
  echo "The shell does not look there yet. Type this line, and add it to ~/.profile for the next login:"
  echo "  export PATH=\"$prefix/bin:\$PATH\""
fi
