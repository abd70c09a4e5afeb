#!/usr/bin/env bash
# Builds maki and installs the program as PREFIX/bin/maki, so that it can be run from any directory.
#
#   scripts/install.sh [PREFIX]      default: /usr/local as root, ~/.local otherwise
#
# To install the libraries with their headers, use cmake --install (docs/api/README.md).
set -euo pipefail
prefix=${1:-}
if [ -z "$prefix" ]; then
  if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?is not set; give a PREFIX}/.local; fi
fi
case $prefix in
  -*) echo "install.sh: the only argument is the directory to install to; got $prefix" >&2; exit 2 ;;
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac
mkdir -p "$prefix/bin" 2>/dev/null && [ -w "$prefix/bin" ] ||
  { echo "install.sh: $prefix/bin cannot be written; run as root, or give a directory that you can write to" >&2; exit 1; }

cd "$(dirname "$0")/.."
. scripts/build.sh
build_program anywhere
for component in program ranks; do
  cmake --install "$build" --prefix "$prefix" --component $component >/dev/null
done
echo "$prefix/bin/maki is installed, and with it a manual page and completions for bash, zsh and fish."

found=$(command -v maki || true)
if [ "$found" -ef "$prefix/bin/maki" ]; then
  echo "Try it: maki train @stories"
elif [ -n "$found" ]; then
  echo "But your shell finds another maki first: $found. To use this one, type:"
  echo "  export PATH=\"$prefix/bin:\$PATH\""
else
  echo "This directory is not in your PATH yet. Type this line, and add it to ~/.profile for future logins:"
  echo "  export PATH=\"$prefix/bin:\$PATH\""
fi
