#!/usr/bin/env bash
# Makes packages of maki below build/package, with kernels for every SIMD target.
#
#   scripts/package.sh [deb] [tar] [wheel] [arm64-tar] [arm64-wheel]      default: deb tar wheel
#
# deb: Debian packages for the release of Debian or Ubuntu that this machine runs. tar and wheel: the program with the
# libraries that it needs beside it, for every Linux whose glibc is not older than what they were built with; the wheel is
# for `pip install`. arm64-…: the same for ARM64, built on another machine (scripts/arm64.sh).
set -euo pipefail
export LC_ALL=C # of what is sorted, and of what other programs print
cd "$(dirname "$0")/.."
. scripts/build.sh
[ $# -gt 0 ] || set -- deb tar wheel
version=$(sed -n 's/^project(maki VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
out=$PWD/build/package
mkdir -p "$out"

# Copies the shared libraries that a program or library needs to a folder, except those that every Linux has, and what
# these need in turn, and the licence of each beside the folder: bundle FILE FOLDER ROOT, where ROOT is the system that they
# come from.
bundle() {
  local name from package
  for name in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $name in libc.so.* | libm.so.* | ld-linux* | libstdc++.so.* | libgcc_s.so.*) continue ;; esac
    [ ! -e "$2/$name" ] || continue
    for from in "$3"/{usr/,}lib/"$triplet/$name" ''; do [ ! -e "$from" ] || break; done
    [ -n "$from" ] || { echo "package.sh: $name, which $1 needs, was not found" >&2 && return 1; }
    install -m 644 "$from" "$2/$name"
    "$strip" "$2/$name"
    patchelf --set-rpath '$ORIGIN' "$2/$name"
    # libedit.so.2 is in the package libedit2, libidn2.so.0 in libidn2-0 (Debian Policy, 8.1).
    package=${name%.so.*}
    [[ $package != *[0-9] ]] || package+=-
    package+=${name##*.so.}
    install -m 644 "$3/usr/share/doc/$package/copyright" "$2/../licenses/$package"
    bundle "$2/$name" "$2" "$3"
  done
}

# The program in FOLDER/bin, with its libraries in FOLDER/lib.
portable_tree() { # FOLDER
  local build=build/portable root='' options=(--preset release)
  strip=strip triplet=$(gcc -print-multiarch)
  if [ "$architecture" = aarch64 ]; then
    build=build/portable-arm64 root=build/arm64-system options=(--preset arm64)
    strip=aarch64-linux-gnu-strip triplet=aarch64-linux-gnu
  fi
  cmake "${options[@]}" --log-level=WARNING -B "$build" -DMAKI_PORTABLE=ON -DMAKI_HOST_ONLY=OFF -DCMAKE_UNITY_BUILD=ON \
    -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON >/dev/null
  build "$build" maki
  mkdir -p "$1/bin" "$1/lib" "$1/licenses"
  install -m 644 LICENSE "$1/licenses/maki"
  install "$build/train/maki" "$1/bin/maki"
  "$strip" "$1/bin/maki"
  patchelf --set-rpath '$ORIGIN/../lib' "$1/bin/maki"
  bundle "$1/bin/maki" "$1/lib" "$root"
}

# The newest version of glibc that these files need: 2.34.
glibc() { readelf -V "$@" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//'; }

fresh() { rm -rf "$1" && mkdir -p "$1"; }
# Every file gets the time of the source, so that the same source gives the same archive.
settle() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

package_deb() {
  bash scripts/setup.sh libopenmpi-dev openmpi-bin dpkg-dev file
  cmake --preset release --log-level=WARNING -B build/deb -DCMAKE_INSTALL_PREFIX=/usr -DMAKI_HOST_ONLY=OFF -DCMAKE_UNITY_BUILD=ON \
    -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF >/dev/null
  build build/deb
  (cd build/deb && cpack -B "$out" >/dev/null)
  rm -rf "$out/_CPack_Packages"
}

package_tar() {
  local name=maki-$version-linux-$architecture
  fresh "$out/$name"
  portable_tree "$out/$name"
  settle "$out/$name"
  tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"
}

package_wheel() {
  local tree=$out/wheel info=maki-$version.dist-info tag file name
  fresh "$tree"
  mkdir -p "$tree/maki" "$tree/$info"
  portable_tree "$tree/maki"
  mv "$tree/maki/licenses" "$tree/$info/licenses"
  cp scripts/package/*.py "$tree/maki/"
  tag=py3-none-manylinux_$(glibc "$tree"/maki/bin/maki "$tree"/maki/lib/* | tr . _)_$architecture
  sed "s/@VERSION@/$version/" scripts/package/METADATA >"$tree/$info/METADATA"
  printf '%s\n' 'Wheel-Version: 1.0' "Generator: maki $version" 'Root-Is-Purelib: false' "Tag: $tag" >"$tree/$info/WHEEL"
  printf '%s\n' '[console_scripts]' 'maki = maki:main' >"$tree/$info/entry_points.txt"
  name=maki-$version-$tag.whl
  (
    cd "$tree"
    find . -type f | sed 's|^\./||' | sort | while read -r file; do
      # The checksum in base64 for addresses, of its bytes.
      printf '%s,sha256=%s,%s\n' "$file" \
        "$(printf "$(sha256sum "$file" | cut -c1-64 | sed 's/../\\x&/g')" | base64 | tr '+/' '-_' | tr -d '=')" \
        "$(stat -c %s "$file")"
    done >"$out/RECORD"
    printf '%s,,\n' "$info/RECORD" >>"$out/RECORD"
    mv "$out/RECORD" "$info/RECORD"
    settle .
    rm -f "$out/$name"
    find . -type f | sed 's|^\./||' | sort | zip -X -9 -q "$out/$name" -@
  )
}

for package in "$@"; do
  architecture=$(uname -m)
  case $package in
    arm64-*) architecture=aarch64 && scripts/arm64.sh --system ;;
  esac
  bash scripts/setup.sh patchelf zip
  case $package in
    deb) package_deb ;;
    tar | arm64-tar) package_tar ;;
    wheel | arm64-wheel) package_wheel ;;
    *) echo "package.sh: the packages are deb, tar, wheel, arm64-tar and arm64-wheel; got $package" >&2 && exit 2 ;;
  esac
done
ls -l "$out" | awk '$1 ~ /^-/ {printf "%8.1f MB  %s\n", $5 / 1e6, $9}'
