# shellcheck shell=bash
# Sourced by the scripts that try maki in clean systems, in the root of the source tree. Needs root.

# Runs a command in a clean system: in_system NAME COMMAND…, where NAME is debian-12, debian-13 or ubuntu-24.04. There, /maki
# is a clone of what is committed, and /packages is build/package. What the command changes is thrown away.
in_system() {
  local name=$1 root=$PWD/build/systems/$1 source
  shift
  case $name in
    debian-12) source=(bookworm http://deb.debian.org/debian main) ;;
    debian-13) source=(trixie http://deb.debian.org/debian main) ;;
    # Debian has no keys of Ubuntu.
    ubuntu-24.04) source=(noble '[trusted=yes] http://archive.ubuntu.com/ubuntu' main universe) ;;
    *) echo "the clean systems are debian-12, debian-13 and ubuntu-24.04; got $name" >&2 && return 2 ;;
  esac
  [ "$(id -u)" -eq 0 ] || { echo "clean systems need root, for chroot" >&2 && return 1; }
  bash scripts/setup.sh mmdebstrap git
  if [ ! -d "$root" ]; then
    rm -rf "$root.new"
    mkdir -p build/systems
    mmdebstrap --quiet --variant=apt --include=git,ca-certificates,util-linux "${source[0]}" "$root.new" \
      "deb ${source[1]} ${source[0]} ${source[*]:2}"
    mv "$root.new" "$root"
  fi
  rm -rf "$root".{changes,work,now}
  mkdir -p "$root".{changes,work,now} build/package
  git clone --quiet . "$root.changes/maki"
  # The mounts are in a namespace that ends with the command.
  unshare --mount --pid --fork bash -c '
    set -e
    root=$1 packages=$2
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$root.changes,workdir=$root.work" "$root.now"
    mkdir -p "$root.now/packages"
    mount --bind "$packages" "$root.now/packages"
    mount -t proc proc "$root.now/proc"
    mount --rbind /dev "$root.now/dev"
    mount --rbind /sys "$root.now/sys"
    mount -t tmpfs tmpfs "$root.now/tmp"
    exec chroot "$root.now" "${@:3}"' _ "$root" "$PWD/build/package" "$@"
}
