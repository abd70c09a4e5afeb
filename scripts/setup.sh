#!/usr/bin/env bash
# Installs the packages that building maki needs and that this Debian or Ubuntu system lacks, and any further packages
# given as arguments. Prints nothing if none is missing. With --names it only prints the names of all of them.
set -euo pipefail

names=''
[ "${1:-}" != --names ] || { names=1 && shift; }
packages=(g++ cmake ninja-build pkg-config libedit-dev libfmt-dev libhwy-dev libcereal-dev libcli11-dev libtomlplusplus-dev
          nlohmann-json3-dev libxxhash-dev libutf8proc-dev libpcre2-dev libmicrohttpd-dev "$@")
[ -z "$names" ] || { printf '%s\n' "${packages[@]}" && exit 0; }

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: these packages must be installed, which needs root or sudo: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
