#!/usr/bin/env bash
# Mutation testing: puts one small fault at a time into a copy of the source, builds it and runs tests until one fails.
# Prints each fault that no test noticed, and the share of those that were noticed.
#
#   scripts/mutate.sh N [--seed S] [--under FOLDER]
#       tries N faults, drawn from all that tests/mutants/mutants.cpp can make in the sources (below FOLDER). A seed draws the
#       same faults on every machine. Faults that do not compile, that leave the machine code as it is, or that
#       tests/mutants/equivalent.txt lists, are replaced by the next ones.
#   scripts/mutate.sh --listed [PATTERN]
#       tries the faults of tests/mutants/files.txt, or those whose name matches; fails if one is not noticed
#   scripts/mutate.sh --check
#       only checks that each fault of that list changes exactly one place
#
# A fault takes about a minute on two cores. Copy, build and results are kept below build/mutants: an interrupted run
# continues where it was, unless a source or test has changed meanwhile. To pause, end it: time for which it is stopped
# (SIGSTOP) counts as time of the test.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

usage() { sed -n '5,13s/^# \{0,3\}//p' "$0" >&2 && exit 2; }
mode=draw wanted=${1:-} seed=1 under='' pattern=.
case $wanted in
  --check | --listed) mode=${1#--} pattern=${2:-.} ;;
  [1-9]*) shift
    while [ $# -gt 0 ]; do
      case $1 in --seed) seed=$2 ;; --under) under=${2%/}/ ;; *) usage ;; esac
      shift 2
    done ;;
  *) usage ;;
esac

# One fault per line, tab-separated: name, file, function, sed expression with the lines it applies to.
listed() {
  awk -v OFS='\t' '
    /^#/ || /^[[:space:]]*$/ { next }
    /^[^[:space:]]/ { split($0, head, /: +/); next }
    { sub(/^ +/, ""); print head[1], head[2], head[3], head[3] == "-" ? $0 : "/^\\([^ ].*[ *&]\\)\\{0,1\\}" head[3] "(/,/^}/ {\n" $0 "\n}" }
  ' ORS='\0' tests/mutants/files.txt
}

if [ "$mode" = check ]; then
  count=0 bad=0
  while IFS=$'\t' read -rd '' name file _ expression; do
    places=$(diff --unchanged-group-format= --changed-group-format=x "$file" <(sed "$expression" "$file") || true)
    [ "$places" = x ] || { echo "tests/mutants: $name must change one place of $file; it changes ${#places}" >&2 && bad=1; }
    count=$((count + 1))
  done < <(listed)
  [ $bad = 0 ] && echo "$count faults, each in one place"
  exit $bad
fi

if [ "$mode" = listed ]; then
  chosen=0
  while IFS=$'\t' read -rd '' name _; do [[ ! $name =~ $pattern ]] || chosen=1; done < <(listed)
  [ $chosen = 1 ] || { echo "mutate.sh: no name in tests/mutants/files.txt matches $pattern" >&2 && exit 2; }
fi

work=$PWD/build/mutants
tree=$work/tree results=$work/results
export TMPDIR=$work/tmp OMP_WAIT_POLICY=passive CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
rm -rf "$TMPDIR"
mkdir -p "$tree" "$TMPDIR"
exec 9>"$work/lock"
flock -n 9 || { echo "mutate.sh: is running already" >&2 && exit 1; }

all_tests=(autograd kernels ops optim nn data train memory durability cli)
# Builds as scripts/build.sh does, but what the compiler says is read, and so must not be translated.
build_targets() { LC_ALL=C nice cmake --build build/release --target "$@" >"$work/build.log" 2>&1 9>&-; }
build_tests() { build_targets "${@/#/maki_tests_}"; }
run_folder() { # seconds, folder, tests as Catch2 selects them
  local tests watch status=0
  # A test that computes for too long has used its processor time; one that waits for ever, the time of the clock, which is
  # longer because a busy machine must not decide.
  (ulimit -v $((16 << 20)) -t $((2 * $1)) && exec timeout -k 5 $((4 * $1)) "build/release/tests/maki_tests_$2" -# "${@:3}" --abort) \
    >"$work/test.log" 2>&1 9>&- &
  tests=$!
  # When the allocator finds its memory damaged, Catch2 reports the signal and waits for the allocator, for ever.
  (while sleep 1; do ! grep -Eq '^(malloc|realloc|free|double free|corrupted|munmap)' "$work/test.log" || kill "$tests"; done) \
    >/dev/null 2>&1 9>&- &
  watch=$!
  wait "$tests" 2>/dev/null || status=$?
  kill "$watch"
  wait "$watch" 2>/dev/null || true
  return $status
}

# $work/faulty names the source that has a fault, whose text is in $work/original.
restore() {
  [ ! -e "$work/faulty" ] || cp "$work/original" "$tree/$(cat "$work/faulty")"
  rm -f "$work/faulty"
}

# Removes a fault that a killed run left behind, and copies what differs, so that only this is built again.
copy_sources() {
  local file changed=0
  restore
  while read -rd '' file; do
    if [ ! -f "$file" ] || cmp -s "$file" "$tree/$file"; then continue; fi
    mkdir -p "$tree/$(dirname "$file")"
    cp "$file" "$tree/$file"
    [[ $file == @(*.md|scripts/*|tests/mutants/*) ]] || changed=1
  done < <(git ls-files -coz --exclude-standard)
  while read -r file; do
    [ -e "$file" ] || { rm "$tree/$file" && changed=1; }
  done < <(cd "$tree" && find . -path ./build -prune -o -type f -print)
  [ $changed = 0 ] || rm -f "$results" "$work"/seconds-*
}

# The tests pass without a fault, and their time limits the one with a fault.
prepare() {
  local folder begin executables options=(-DCMAKE_EXE_LINKER_FLAGS=)
  limit_jobs
  copy_sources
  cd "$tree"
  ! command -v mold >/dev/null || options=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold)
  ! command -v ccache >/dev/null || options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake --preset release --log-level=WARNING -DMAKI_HOST_ONLY=ON -DMAKI_BUILD_EXAMPLES=OFF "${options[@]}" >/dev/null 9>&-
  if ! build_tests "${all_tests[@]}" || ! build_targets maki_texts; then # what a test installs
    echo "mutate.sh: the build fails without a fault:" >&2 && tail -20 "$work/build.log" >&2 && exit 1
  fi
  for folder in "${all_tests[@]}"; do
    [ ! -e "$work/seconds-$folder" ] || continue
    begin=$SECONDS
    run_folder 3600 "$folder" ||
      { echo "mutate.sh: tests fail without a fault:" >&2 && tail -30 "$work/test.log" >&2 && exit 1; }
    executables=("build/release/tests/maki_tests_$folder")
    [[ $folder != @(cli|durability) ]] || executables+=(build/release/train/maki)
    sha256sum "${executables[@]}" >"$work/sums-$folder"
    echo $((SECONDS - begin)) >"$work/seconds-$folder"
  done
  export CCACHE_READONLY=1 # what is built from now on has a fault
}

# The folders of tests, those nearest to a source first.
tests_for() {
  local -a near
  case $1 in
    autograd/kernels/*) near=(kernels ops) ;;
    autograd/ops/* | autograd/ops.h) near=(ops autograd) ;;
    autograd/*) near=(autograd ops) ;;
    nn/*) near=(nn train) ;;
    optim/*) near=(optim train) ;;
    data/*) near=(data train) ;;
    train/app/*) near=(cli train) ;;
    train/*) near=(train cli) ;;
  esac
  printf '%s\n' "${near[@]}" "${all_tests[@]}" | awk '!seen[$0]++'
}

# The files of tests, without .cpp, that name the function or include the header.
tests_naming() { # folder, file, function
  grep -rlw --include='*_test.cpp' -e "${3##*::}" -e "\"${2%.*}\.h\"" "tests/$1" | sed 's|.*/||; s|\.cpp||'
}

trap 'kill $(jobs -p) 2>/dev/null; restore' EXIT

# Sets `verdict` of the fault in $work/changed: noticed, survived, invalid, or unchanged if the machine code is the same; and
# `decided`, the tests that noticed it.
try_fault() { # file, function
  local folder selected round status=0
  local -a files
  cp "$1" "$work/original"
  echo "$1" >"$work/faulty"
  cp "$work/changed" "$1"
  verdict=unchanged
  for round in first rest; do
    for folder in $(tests_for "$1"); do
      mapfile -t files < <(tests_naming "$folder" "$1" "$2")
      [ $round = rest ] || [ ${#files[@]} -gt 0 ] || continue
      if ! build_tests "$folder"; then
        verdict=invalid
        grep -q 'error: ' "$work/build.log" || verdict=noticed # the new executable cannot even list its tests
        break 2
      fi
      ! sha256sum --status -c "$work/sums-$folder" || continue
      # As Catch2 selects tests, without hidden ones: [#a]~[.],[#b]~[.] and then ~[.]~[#a]~[#b].
      selected="~[.]$(printf '~[#%s]' "${files[@]:-none}")"
      [ $round = rest ] || selected=$(printf '[#%s]~[.],' "${files[@]}")
      verdict=survived
      run_folder $((30 + 5 * $(cat "$work/seconds-$folder"))) "$folder" "$selected" || { verdict=noticed status=$?; break 2; }
    done
  done
  decided=$folder
  [[ $status != @(124|137|152) ]] || decided+=', took too long'
  restore
  rm -rf "${TMPDIR:?}"/*
}

# Tries the fault unless its verdict is known, and counts it.
declare -A count=([noticed]=0 [survived]=0 [invalid]=0 [unchanged]=0 [equivalent]=0)
judge() { # key, file, function, what to print
  local begin=$SECONDS
  verdict='' decided=''
  read -r verdict decided < <(grep -F -- "$1 " "$results" | cut -d' ' -f2-) || true
  if [ -z "$verdict" ]; then
    try_fault "$2" "$3"
    echo "$1 $verdict $decided" >>"$results"
  fi
  count[$verdict]=$((count[$verdict] + 1))
  [ "$verdict" != survived ] || survivors+=("$4")
  [ "$verdict" != noticed ] || verdict="noticed by $decided"
  [ "$verdict" = invalid ] || printf '%3d s  %-20s  %s\n' $((SECONDS - begin)) "$verdict" "${4%%$'\n'*}"
}

prepare
touch "$results"
survivors=()
if [ "$mode" = listed ]; then
  while IFS=$'\t' read -rd '' name file function expression; do
    [[ $name =~ $pattern ]] || continue
    sed "$expression" "$file" >"$work/changed"
    judge "$name" "$file" "$function" "$name: $file"
  done < <(listed)
else
  ${CXX:-c++} -std=c++20 -O1 -o "$work/list" tests/mutants/mutants.cpp
  find autograd nn optim data train \( -name '*.cpp' -o -name '*.h' \) -path "$under*" -not -path '*/bench/*' -print0 |
    LC_ALL=C sort -z | xargs -0 "$work/list" "$seed" | LC_ALL=C sort >"$work/drawn"
  [ -s "$work/drawn" ] || { echo "mutate.sh: there is no source below $under" >&2 && exit 2; }
  while [ $((count[noticed] + count[survived])) -lt "$wanted" ]; do
    IFS=$'\t' read -r rank file line function operator offset length changed by || break
    what="$file: $function: $operator: $changed"
    if grep -Fxq -- "$what" tests/mutants/equivalent.txt; then
      count[equivalent]=$((count[equivalent] + 1))
      continue
    fi
    { head -c "$offset" "$file" && printf %s "$by" && tail -c "+$((offset + length + 1))" "$file"; } >"$work/changed"
    judge "$rank" "$file" "$function" "$what"$'\n'"  line $line: $(sed -n "${line}s/^ *//p" "$file")"
  done <"$work/drawn"
fi

[ ${#survivors[@]} = 0 ] || printf '\nnot noticed: %s\n' "${survivors[@]}"
# The interval of Wilson.
LC_ALL=C awk -v k="${count[noticed]}" -v n=$((count[noticed] + count[survived])) 'BEGIN {
  if (n == 0) exit
  z = 1.96; middle = (k + z * z / 2) / (n + z * z); half = z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4)
  printf "\n%d of %d faults were noticed: %.0f %%, 95 %% interval %.0f to %.0f %%\n", k, n, 100 * k / n, 100 * (middle - half), 100 * (middle + half)
}'
echo "not counted: ${count[invalid]} that do not compile, ${count[unchanged]} with the same machine code, ${count[equivalent]} listed as equivalent"
[ $((count[noticed] + count[survived])) -gt 0 ] && { [ "$mode" = draw ] || [ ${#survivors[@]} = 0 ]; }
