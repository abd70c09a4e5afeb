#!/usr/bin/env bash
# Mutation testing: inserts one small fault at a time into a copy of the source, builds it and runs the tests that should
# notice the fault. Prints the number of faults that were noticed and the names of the others. The whole list takes hours,
# so it is not part of test.sh.
#
#   scripts/mutate.sh [PATTERN]           tries the faults whose name or file matches the regular expression; default: all
#   scripts/mutate.sh --check             only checks the list: files and tests exist, each fault changes exactly one place
#   scripts/mutate.sh --list [PATTERN]    prints the faults
#
# The faults are in tests/mutants/*.txt, two lines each; # starts a comment:
#
#   name: file: folder/test [folder/test …]
#     sed expression (basic regular expressions)
#
# where folder/test stands for the test cases of test.cpp in the executable maki_tests_folder. Copies and results are kept
# below build/mutants: an interrupted run continues, and a fault is tried again only if it, its file or its tests have
# changed. To share the work among several processes, start the script several times.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=run
case ${1:-} in --check | --list) mode=${1#--} && shift ;; esac
pattern=${1:-.}

# One fault per line, tab-separated: name, file, tests, sed expression.
faults() {
  awk '
    /^#/ || /^[[:space:]]*$/ { next }
    /^[^[:space:]]/ { if (split($0, head, /:[[:space:]]*/) != 3) { print "malformed\t" FILENAME "\t-\t" $0; head[1] = "" }; next }
    { sub(/^[[:space:]]+/, ""); printf "%s\t%s\t%s\t%s\n", head[1], head[2], head[3], $0 }
  ' tests/mutants/*.txt
}
chosen() { faults | awk -F'\t' -v pattern="$pattern" '$1 ~ pattern || $2 ~ pattern'; }

# Prints the source file of folder/test. It is searched by name, because an executable may contain tests from several
# folders.
test_file() {
  local name=${1#*/}
  find tests -name "$name.cpp" | head -1
}

# Whether the executable of that folder has the test.
has_test() { # folder/test
  find "tests/${1%%/*}" -name "${1#*/}.cpp" | grep -q .
}

# Prints an x for each place that the expression changes.
places_changed() { # file, sed expression
  diff --unchanged-group-format= --changed-group-format=x "$1" <(sed "$2" "$1") || true
}

check_list() {
  local name file tests expression test bad=0 count=0 places
  declare -A known_tests
  complain() { echo "tests/mutants: $1: $2" >&2 && bad=1; }
  while IFS=$'\t' read -r name file tests expression; do
    count=$((count + 1))
    [ -f "$file" ] || { complain "$name" "there is no file $file" && continue; }
    places=$(places_changed "$file" "$expression")
    [ "$places" = x ] || complain "$name" "the sed expression must change exactly one place of $file; it changes ${#places}"
    for test in $tests; do
      [ -z "${known_tests[$test]:-}" ] || continue
      has_test "$test" && [ -n "$(test_file "$test")" ] || complain "$name" "there is no test $test"
      known_tests[$test]=1
    done
  done < <(faults)
  while read -r name; do complain "$name" "this name is used twice"; done < <(faults | cut -f1 | sort | uniq -d)
  [ $bad = 0 ] && echo "$count faults, each in one place"
  return $bad
}

case $mode in
  check) check_list && exit 0 || exit 1 ;;
  list) chosen | awk -F'\t' '{ printf "%-40s %-36s %s\n", $1, $2, $4 }' && exit 0 ;;
esac

# --- Each running process has a copy of the tree of its own.
work=$PWD/build/mutants
mkdir -p "$work/claims"
for slot in $(seq 0 63); do
  exec 9>"$work/slot-$slot.lock"
  flock -n 9 && break
done
tree=$work/slot-$slot/tree
export TMPDIR=$work/slot-$slot/tmp OMP_WAIT_POLICY=passive
mkdir -p "$tree" "$TMPDIR"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
fi

# Copies only files that differ, so that only those are rebuilt. This also removes a fault that a killed run left behind.
source_files() { (cd "$1" && find . \( -path ./build -o -path ./.git -o -path ./runs -o -path ./.cache \) -prune -o -type f -print); }
sync_tree() {
  local file
  source_files . | while read -r file; do
    cmp -s "$file" "$tree/$file" && continue
    mkdir -p "$(dirname "$tree/$file")"
    cp "$file" "$tree/$file"
  done
  source_files "$tree" | while read -r file; do [ -e "$file" ] || rm "$tree/$file"; done
}
build() { # folders of tests
  local targets=("${@/#/maki_tests_}")
  (cd "$tree" && nice cmake --build --preset release -- --quiet "${targets[@]}") >"$work/slot-$slot/build.log" 2>&1 9>&- 8>&-
}
# Runs the tests of one fault, folder by folder, and stops at the first failure.
run_tests() { # time limit in seconds, tests
  local limit=$1 folder selected test
  shift
  for folder in $(printf '%s\n' "${@%%/*}" | sort -u); do
    selected=
    for test in "$@"; do [ "${test%%/*}" = "$folder" ] && selected+="${selected:+,}[#${test#*/}]"; done
    (ulimit -v $((16 << 20)) && exec timeout -k 5 "$limit" "$tree/build/release/tests/maki_tests_$folder" -# "$selected" --abort \
      --warn NoTests) >"$work/slot-$slot/test.log" 2>&1 9>&- 8>&- || return 1
  done
}
folders_of() { printf '%s\n' "${@%%/*}" | sort -u; }
key_of() { # name, file, tests, sed expression
  local test
  { echo "$@"; cat "$2"; for test in $3; do cat "$(test_file "$test")"; done; } | sha256sum | cut -c1-16
}
results=$work/results.txt
touch "$results"
known() { grep -F -x -e "$1 $2 noticed" -e "$1 $2 survived" "$results" | tail -1 | cut -d' ' -f3 || true; }

sync_tree
(cd "$tree" && cmake --preset release --log-level=WARNING -DMAKI_BUILD_EXAMPLES=OFF >/dev/null 9>&-)

# --- Runs the tests without a fault: they must pass, and their duration determines the time limit with a fault.
declare -A seconds
while IFS=$'\t' read -r name file tests expression; do
  [ -z "$(known "$name" "$(key_of "$name" "$file" "$tests" "$expression")")" ] || continue
  [ -z "${seconds[$tests]:-}" ] || continue
  read -ra list <<<"$tests"
  mapfile -t folders < <(folders_of "${list[@]}")
  build "${folders[@]}" || { echo "mutate.sh: the build fails without a fault:" >&2 && tail -20 "$work/slot-$slot/build.log" >&2 && exit 1; }
  begin=$SECONDS
  run_tests 600 "${list[@]}" || { echo "mutate.sh: tests fail without a fault: $tests" >&2 && tail -30 "$work/slot-$slot/test.log" >&2 && exit 1; }
  seconds[$tests]=$((SECONDS - begin + 1))
done < <(chosen)

# --- The faults, one at a time.
while IFS=$'\t' read -r name file tests expression; do
  exec 8>"$work/claims/$name"
  flock -n 8 || continue
  key=$(key_of "$name" "$file" "$tests" "$expression")
  [ -z "$(known "$name" "$key")" ] || continue
  read -ra list <<<"$tests"
  mapfile -t folders < <(folders_of "${list[@]}")
  verdict=noticed
  if [ "$(places_changed "$file" "$expression")" != x ]; then
    verdict="error: does not change exactly one place"
  else
    sed "$expression" "$file" >"$tree/$file"
    if ! build "${folders[@]}"; then
      verdict="error: does not compile: $(grep -m1 'error: ' "$work/slot-$slot/build.log" || true)"
    elif run_tests $((20 + 10 * ${seconds[$tests]:-30})) "${list[@]}"; then
      verdict=survived
    fi
    cp "$file" "$tree/$file"
  fi
  rm -rf "${TMPDIR:?}"/*
  printf '%-40s %s\n' "$name" "$verdict"
  flock "$results" -c "echo '$name $key ${verdict%%:*}' >>'$results'"
done < <(chosen)
exec 8>&-

# --- Prints the score of all chosen faults, including those that other processes tried.
noticed=0 survivors=() others=()
while IFS=$'\t' read -r name file tests expression; do
  case $(known "$name" "$(key_of "$name" "$file" "$tests" "$expression")") in
    noticed) noticed=$((noticed + 1)) ;;
    survived) survivors+=("$name") ;;
    *) others+=("$name") ;;
  esac
done < <(chosen)
tried=$((noticed + ${#survivors[@]}))
[ $tried -gt 0 ] || { echo "no fault that matches $pattern was tried" && exit 1; }
echo "$noticed of $tried faults were noticed ($((100 * noticed / tried)) %)"
[ ${#survivors[@]} = 0 ] || printf 'not noticed: %s\n' "${survivors[@]}"
[ ${#others[@]} = 0 ] || printf 'not tried (an error in the list, or another process is trying it): %s\n' "${others[@]}"
[ ${#others[@]} = 0 ] && [ $((100 * noticed)) -ge $((95 * tried)) ]
