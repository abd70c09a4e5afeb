#!/usr/bin/env bash
# Installs what building maki needs and this Debian or Ubuntu machine lacks. Quiet where nothing is missing.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libfmt-dev libhwy-dev libcereal-dev libcli11-dev libtomlplusplus-dev
          nlohmann-json3-dev libxxhash-dev libutf8proc-dev "$@")

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "maki needs these packages, and root or sudo to install them: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
