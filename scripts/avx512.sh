#!/usr/bin/env bash
# Tests AVX-512 on a machine that has none: kernels, ops, and the bits of the golden runs. Linux boots in the emulator Bochs as
# an Intel Skylake-X. It executes some 30 million instructions a second, so tests that take long are left out, and the kernels
# of products and attention, whose tests nearly all do.
set -euo pipefail
export LC_ALL=C # apt-cache translates what is read here
cd "$(dirname "$0")/.."
. scripts/build.sh

bash scripts/setup.sh catch2 librapidcheck-dev bochs bochsbios isolinux syslinux-common xorriso busybox-static cpio
build=${MAKI_BUILD:-}
if [ -z "$build" ]; then
  build=build/release
  cmake --preset release --log-level=WARNING
  build "$build" maki maki_tests_{kernels,ops,cli}
fi
work=$PWD/build/avx512
rm -rf "$work" && mkdir -p "$work/root/"{bin,proc,dev,tmp}

# Linux of the release of Debian that this machine runs.
kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $2; exit}')
(cd "$work" && apt-get download -qq "$kernel" 2>/dev/null && dpkg -x "$kernel"_*.deb kernel)

# The programs and what they read have the same names in the emulated machine as here.
copy() { mkdir -p "$work/root$(dirname "$1")" && cp -rL "$1" "$work/root$1"; }
tests=$PWD/$build/tests
maki=$PWD/$build/train/maki
copy "$PWD/tests/golden"
copy "$PWD/tests/fixtures"
for file in "$maki" "$tests"/maki_tests_{kernels,ops,cli}; do
  copy "$file"
  strip "$work/root$file"
  for library in $(ldd "$file" | grep -o '/[^ :]*so[^ :]*'); do [ -e "$work/root$library" ] || copy "$library"; done
done
cp /bin/busybox "$work/root/bin"
cat >"$work/root/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
export PATH=/bin TMPDIR=/tmp MAKI_TARGET=avx3 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
# The loader would save registers with XSAVEC when it binds a function at its first call.
export LD_BIND_NOW=1
sh /tests && echo "avx512.sh: passed"
sleep 1  # until the console has written it
poweroff -f
END
chmod +x "$work/root/init"

# Boots a machine that runs a command: boot NAME COMMAND
boot() {
  local here=$work/$1
  mkdir -p "$here/iso/isolinux"
  cp -al "$work/root" "$here/root"
  echo "$2" >"$here/root/tests"
  (cd "$here/root" && find . | cpio -o -H newc 2>/dev/null | gzip -1 >"$here/iso/initrd.gz")
  cp "$work"/kernel/boot/vmlinuz-* "$here/iso/vmlinuz"
  cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$here/iso/isolinux"
  # Linux and Bochs 2.7 disagree about the size of compacted register states (XSAVEC).
  printf '%s\n' 'default maki' 'label maki' ' kernel /vmlinuz' \
    ' append initrd=/initrd.gz console=ttyS0 quiet mitigations=off clearcpuid=xsaves,xsavec' >"$here/iso/isolinux/isolinux.cfg"
  xorriso -as mkisofs -quiet -o "$here/boot.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
    -boot-load-size 4 -boot-info-table "$here/iso" 2>/dev/null
  cat >"$here/bochsrc" <<END
cpu: model=corei7_skylake_x, ips=100000000
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
display_library: rfb, options="timeout=0"
ata0-master: type=cdrom, path=$here/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$here/console
log: $here/log
panic: action=fatal
clock: sync=none
END
  # Debian's Bochs starts in its debugger.
  echo c >"$here/commands"
  timeout 5400 bochs -q -f "$here/bochsrc" -rc "$here/commands" </dev/null >/dev/null 2>&1 || true
}

# Runs the tests of a program one by one. One that takes longer than 0.3 seconds of this clock, a billion instructions, is
# left out: Bochs needs half a minute for them.
cat >"$work/root/each" <<'END'
"$1" --list-test-names-only | grep . | grep -vE "$2" >/tmp/names
while read -r name; do
  "$1" "$(echo "$name" | sed 's/[,[\\]/\\&/g')" --warn NoTests >/tmp/said 2>&1 &
  test=$!
  (usleep 300000 && kill -9 $test) 2>/dev/null &
  wait $test
  case $? in
    0) echo "passed: $name" ;;
    137) echo "left out: $name" ;;
    *) echo "failed: $name" && cat /tmp/said && failed=1 ;;
  esac
  kill $! 2>/dev/null
done </tmp/names
[ -s /tmp/names ] && [ -z "$failed" ]
END
# The accuracy of log is compared with an instruction that Bochs computes less exactly (FYL2X), and the table of ops with its
# header.
boot kernels "sh /each '$tests/maki_tests_kernels' 'attention|gemm|product|rounded|exponential|bfloat16|SIMD math'" &
boot ops "sh /each '$tests/maki_tests_ops' 'has a row in the table'" &
wait
boot runs "'$tests/maki_tests_cli' 'golden runs train on*' --warn NoTests"
for name in kernels ops runs; do
  grep -q "avx512.sh: passed" "$work/$name/console" || { cat "$work/$name/console" && exit 1; }
done
for what in passed 'left out'; do
  echo "$(cat "$work"/{kernels,ops}/console | grep -c "^$what: ") tests of kernels and ops $what"
done
