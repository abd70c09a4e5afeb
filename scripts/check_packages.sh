#!/usr/bin/env bash
# Makes the packages and tries each in a clean Debian 12: the Debian packages installed, used and removed without a trace, the
# library with a program that uses it, the wheel in a fresh virtual environment, and the portable program on an emulated CPU
# that has only what every x86-64 has. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/system.sh

scripts/package.sh deb tar wheel
bash scripts/setup.sh lintian qemu-user
lintian --fail-on error build/package/*.deb
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
qemu-x86_64 -cpu qemu64 build/package/maki-*-linux-x86_64/bin/maki train @stories:20000 -o "$work/run" -n 3 --quiet

in_system debian-12 bash -c '
  set -euo pipefail
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  installs() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
  # Files, except the lists, caches and logs of apt, dpkg and ldconfig.
  files() { find / -xdev "(" -path /var/lib/dpkg -o -path /var/log -o -path "/var/cache/*" -o -path /var/lib/apt ")" -prune -o -print | sort; }
  apt-get update -qq
  files >/tmp/before
  installs /packages/maki_*.deb
  cd /tmp
  maki train @stories -o story --minutes 0.2
  apt-get purge -y -qq --autoremove maki >/dev/null
  files | diff /tmp/before - || { echo "check_packages.sh: the package maki leaves these files behind" >&2 && exit 1; }

  echo "== maki-mpi"
  installs /packages/maki_*.deb /packages/maki-mpi_*.deb openmpi-bin openssh-client
  mpirun --oversubscribe -n 2 maki train @stories:20000 -o two -n 5 --grad-accum 2 --quiet
  maki train @stories:20000 -o one -n 5 --grad-accum 2 --quiet
  cmp one/checkpoints/step-00000005.maki two/checkpoints/step-00000005.maki

  echo "== libmaki-dev"
  installs /packages/libmaki-dev_*.deb g++ cmake ninja-build
  cmake -S /maki/tests/package -B uses -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
  cmake --build uses >/dev/null
  uses/uses_maki

  echo "== wheel"
  installs python3-venv
  python3 -m venv fresh
  fresh/bin/pip install --quiet --no-index /packages/*_x86_64.whl
  fresh/bin/maki train @stories:20000 -o wheel -n 5 --grad-accum 2 --quiet
  cmp one/checkpoints/step-00000005.maki wheel/checkpoints/step-00000005.maki
  fresh/bin/python -c "import maki; print(maki.run([\"eval\", \"wheel\"]))"'
