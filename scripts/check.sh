#!/usr/bin/env bash
# The proof of every promise. It ends with the promises of docs/reliability.md, the tests of each and how many checks they
# made, and with what else was tried. scripts/test.sh is the fast tier.
#
#   scripts/check.sh             the parts with a star below: at most 20 minutes on two idle cores, after their builds
#   scripts/check.sh --soak      all parts, at full length: many hours, of which fuzzing takes most
#   scripts/check.sh [--soak] PART…
#
# Every part is tried, whatever became of the others. build/check/PART.log has what it printed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

# A part, and what it shows.
table='
*release  every promise, with kernels for all SIMD targets
*builds   the same bytes from a build for this machine alone
*asan     no memory error, no leak, nothing undefined
*tsan     no data race
*fuzz     no file is trusted wrongly, takes long or ends the program
clang     the same as clang compiles it
levels    the same at two lower levels of optimization, with g++ and clang
memcheck  nothing is used that was not written, by valgrind
huge      tensors of more than 2^31 elements, in 20 GB of memory
coverage  the tests run at least 95 % of the lines
tidy      no finding of clang-tidy
avx512    the same bits with AVX-512
arm64     the same bits on ARM64
systems   the fast tier in other releases of Debian and Ubuntu
macos     everything compiles for macOS
packages  packages install, run and go without a trace
ranks     the same bytes on several machines, and without MPI
calls     nothing is lost, whichever system call fails
mutants   the tests notice faults'

configure() { cmake --preset "$@" --log-level=WARNING; }

# What a part tries that is built first; the others build by themselves.
build_part() {
  case $1 in
    # Sources of a folder are compiled together, which is quicker; the part clang compiles each alone, and so notices one
    # that does not include what it needs.
    release) configure release -DCMAKE_UNITY_BUILD=ON && build build/release ;;
    builds) build_part release && configure fast && build build/fast maki ;;
    asan | tsan | clang) configure "$1" && build "build/$1" ;;
    fuzz) build_part release && configure fuzz && build build/fuzz maki_fuzz ;;
    memcheck) configure memcheck && build build/memcheck maki_tests_{autograd,ops,optim,data} ;;
    huge) build_part release ;;
    coverage) configure fast -B build/coverage -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=--coverage && build build/coverage ;;
  esac
}

try_part() {
  local part=$1
  case $part in
    release | clang) ctest --preset "$part" -j "$(nproc)" ;;
    asan | tsan) ctest --preset "$part" -j "$(nproc)" -R "$([ -n "$soak" ] && echo . || echo "${sanitized[$part]}")" ;;
    builds)
      work=$(mktemp -d)
      trap 'rm -rf "$work"' EXIT
      for preset in fast release; do
        "build/$preset/train/maki" train @stories:100000 --out "$work/$preset" --max-steps 20 --quiet
      done
      cmp "$work/fast/checkpoints/step-00000020.maki" "$work/release/checkpoints/step-00000020.maki"
      # Begun by one build and ended by the other. The schedule would otherwise follow from the shorter length.
      for order in 'fast release' 'release fast'; do
        read -r begin end <<<"$order"
        run=$work/$begin-$end
        "build/$begin/train/maki" train @stories:100000 --out "$run" --max-steps 10 --lr-decay-steps 20 --quiet
        "build/$end/train/maki" train --resume "$run" --max-steps 20 --quiet
        cmp "$work/$begin/checkpoints/step-00000020.maki" "$run/checkpoints/step-00000020.maki"
      done
      ;;
    fuzz)
      scripts/fuzz.sh all "$([ -n "$soak" ] && echo 3600 || echo 10)"
      run_tests build/release/tests/maki_tests_train "[.long_input]"
      ;;
    levels)
      for compiler in g++ clang++; do
        for level in 1 2; do
          directory=build/levels/$compiler-$level
          configure fast -B "$directory" -DCMAKE_CXX_COMPILER=$compiler "-DCMAKE_CXX_FLAGS_RELEASE=-O$level -DNDEBUG"
          if grep -q ' -O3 ' "$directory/build.ninja" || ! grep -q " -O$level -DNDEBUG " "$directory/build.ninja"; then
            echo "check.sh: $directory does not compile with -O$level" >&2 && return 1
          fi
          build "$directory"
          ctest --test-dir "$directory" -j "$(nproc)" --output-on-failure --no-tests=error
        done
      done
      ;;
    memcheck)
      bash scripts/setup.sh valgrind
      # Tests that compare with a long double, which valgrind computes in 64 bits, may fail: only its reports count.
      for folder in autograd ops optim data; do
        valgrind -q --error-exitcode=99 --suppressions=tests/valgrind.supp "build/memcheck/tests/maki_tests_$folder" "~[.]" ||
          [ $? -lt 99 ]
      done
      ;;
    huge) run_tests build/release/tests/maki_tests_ops "[.huge]" ;;
    coverage)
      bash scripts/setup.sh lcov
      find build/coverage -name '*.gcda' -delete
      # The tours train for minutes, and kernels are tested for every width. Where the size of files is limited, gcov
      # spoils its own.
      GCOV_ERROR_FILE=/dev/null ctest --test-dir build/coverage -j "$(nproc)" --output-on-failure --no-tests=error \
        -E '^(docs|kernels|package):|full disk|finds no room'
      lcov -q --capture --directory build/coverage --base-directory . -o build/coverage/all.info
      lcov -q --extract build/coverage/all.info "$PWD"/{autograd,nn,optim,data,train}/'*' -o build/coverage/own.info
      lcov --list build/coverage/own.info
      lcov --summary build/coverage/own.info | awk '/lines/ { sub(/%/, "", $2); print; exit !($2 >= 95) }'
      ;;
    tidy) scripts/tidy.sh --all ;;
    avx512 | arm64 | systems | macos) "scripts/$part.sh" ;;
    packages) scripts/check_packages.sh ;;
    ranks)
      bash scripts/setup.sh libmpich-dev mpich
      build_part release
      run_tests build/release/tests/maki_tests_train "[every-message]"
      scripts/check_mpi.sh
      configure fast -B build/alone -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
      build build/alone
      ctest --test-dir build/alone -j "$(nproc)" --output-on-failure --no-tests=error
      ;;
    calls)
      build_part release
      MAKI_EVERY_FAULT=1 run_tests build/release/tests/maki_tests_durability "whichever system call*"
      ;;
    mutants)
      scripts/mutate.sh --listed
      scripts/mutate.sh 200 --seed "$(date +%Y%m)"
      ;;
  esac
}

# What the output of a part says it has tried, such as 1,643 tests or 5,000,000 inputs.
tried() {
  awk -v FS='[ :(]+' '
    /tests? failed out of/ { tests += $NF }
    /All tests passed/ { for (i = 1; i < NF; ++i) if ($i == "in") tests += $(i + 1) }
    /tests of kernels and ops passed/ { tests += $1 }
    / inputs tried/ { inputs += $2 }
    / faults were noticed/ { faults += $3 }
    END { print inputs ? inputs " inputs" : tests ? tests " tests" : faults ? faults " faults" : "-" }' "$1"
}

# What ctest writes of the part release.
release_log=build/release/Testing/Temporary/LastTest.log

# The promises of docs/reliability.md, the tests of the files that it names, and the checks that they made in the part
# release. Tests of other files come last.
promises() {
  {
    grep -E '^\| \*\*' docs/reliability.md
    grep -rPzo --include='*_test.cpp' 'TEST_CASE\(\s*"\K([^"\\]|\\.)*' tests | tr '\0' '\n' | sed -E 's/\\(.)/\1/g'
    cat "$release_log"
  } | awk '
    function promise_of(path) {
      for (; path != ""; sub(/\/?[^\/]*$/, "", path)) if (path in promise) return promise[path]
      return rows + 1
    }
    function with_commas(n,   text) {
      for (text = ""; n >= 1000; n = int(n / 1000)) text = sprintf(",%03d", n % 1000) text
      return n text
    }
    /^\| \*\*/ {
      split($0, cells, / *\| */)
      gsub(/\*\*/, "", cells[2])
      sub(/\. .*/, "", cells[2])
      name[++rows] = cells[2]
      for (i = split(cells[4], paths, "`"); i > 0; --i) promise[paths[i]] = rows
    }
    /^tests\/[a-z_\/]*_test\.cpp:/ {
      colon = index($0, ":")
      path_of[substr($0, colon + 1)] = substr($0, 7, colon - 16)
    }
    /^[0-9]+\/[0-9]+ Test: / {
      sub(/^[^:]*: [a-z]*: ?/, "")
      row = promise_of(path_of[$0])
      ++tests[row]
      ++failed[row]
    }
    /^Test Pass(ed| Reason)/ { --failed[row] }
    /^All tests passed \(/ { checks[row] += substr($4, 2) }
    END {
      name[rows + 1] = "Everything else that is tested"
      printf "%-45s %7s %13s   %s\n", "promise", "tests", "checks", "result"
      for (row = 1; row <= rows + 1; ++row)
        printf "%-45s %7s %13s   %s\n", name[row], with_commas(tests[row]), with_commas(checks[row]),
          failed[row] ? failed[row] " FAILED" : tests[row] ? "passed" : "NO TESTS"
    }'
}

soak=${MAKI_SOAK:-}
# The tests that run under a sanitizer when time is short: the engine, and what reads files or is done by several ranks.
declare -A sanitized=(
  [asan]='^(autograd|ops|optim|data):|^train:.*(file|checkpoint|byte)'
  [tsan]='^(sanitizers|autograd|ops|optim):|^train:teams'
)
case ${1:-} in
  --build | --try)
    "${1#--}_part" "$2"
    exit
    ;;
  --soak)
    shift
    export MAKI_SOAK=yes
    ;;
esac
parts=("$@")
if [ $# = 0 ]; then
  mapfile -t parts < <(awk -v all="${MAKI_SOAK:-}" 'sub(/^\*/, "") || (all && NF) {print $1}' <<<"$table")
fi
for part in "${parts[@]}"; do
  grep -q "^\*\?$part " <<<"$table" || { echo "check.sh: there is no part $part" >&2 && exit 2; }
done
bash scripts/setup.sh catch2 librapidcheck-dev libopenmpi-dev openmpi-bin clang clang-tidy libclang-rt-dev libomp-dev
mkdir -p build/check
rows=() failed=0 all=0 release_tried=
for part in "${parts[@]}"; do
  what=$(awk -v part="$part" 'sub(/^\*?/, "") && $1 == part {sub(/^[^ ]+ +/, ""); print}' <<<"$table")
  log=build/check/$part.log result=passed
  echo "== $part"
  bash scripts/check.sh --build "$part" 2>&1 | tee "$log" || result='NOT BUILT'
  begin=$SECONDS
  [ "$part $result" != 'release passed' ] || { release_tried=1 && rm -f "$release_log"; }
  [ "$result" != passed ] || bash scripts/check.sh --try "$part" 2>&1 | tee -a "$log" || result=FAILED
  seconds=$((SECONDS - begin)) all=$((all + SECONDS - begin))
  [ "$result" = passed ] || failed=1
  rows+=("$part|$what|$(tried "$log")|$result|$(printf '%d:%02d' $((seconds / 60)) $((seconds % 60)))")
done
[ -z "$release_tried" ] || [ ! -e "$release_log" ] || { echo && promises; }
printf '\n%-9s %-58s %-18s %-9s %s\n' part 'what it shows' tried result minutes
for row in "${rows[@]}"; do
  IFS='|' read -r part what tries result time <<<"$row"
  printf '%-9s %-58s %-18s %-9s %7s\n' "$part" "$what" "$tries" "$result" "$time"
done
printf '%-98s %7s\n' 'all, without the time of builds' "$(printf '%d:%02d' $((all / 60)) $((all % 60)))"
exit $failed
