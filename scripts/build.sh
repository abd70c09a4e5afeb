# shellcheck shell=bash
# Sourced by the scripts that build maki, in the root of the source tree.

# Unless the user has set how many: as many jobs as there are cores, and memory for. g++ takes up to 1 GB for sources that are
# compiled together; 1171875 KiB are 1.2 GB.
limit_jobs() {
  [ -z "${CMAKE_BUILD_PARALLEL_LEVEL:-}" ] || return 0
  CMAKE_BUILD_PARALLEL_LEVEL=$({ cat /proc/meminfo 2>/dev/null || true; } | awk -v jobs="$(nproc)" '
    /^MemAvailable:/ && $2 / 1171875 < jobs { jobs = int($2 / 1171875) }
    END { print (jobs < 1 ? 1 : jobs) }')
  export CMAKE_BUILD_PARALLEL_LEVEL
}

# Builds in a directory that cmake has configured: build DIRECTORY [TARGET…]. On a terminal one line shows the share that is
# built; elsewhere nothing is printed. If the build fails, what it printed last is shown, and where the rest is.
build() {
  local directory=$1 log=$1/build.log share done_ all shown=-1
  shift
  local -a targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  local -i failed=0
  limit_jobs
  # With pipefail, as all scripts have it.
  NINJA_STATUS='%f %t ' cmake --build "$directory" "${targets[@]}" 2>&1 | tee "$log" | while read -r done_ all _; do
    [[ -t 2 && $done_ =~ ^[0-9]+$ && $all =~ ^[1-9][0-9]*$ ]] || continue
    share=$((100 * done_ / all))
    [ "$share" -le "$shown" ] || { shown=$share && printf '\rbuilding maki: %3d %%' "$share" >&2; }
  done || failed=1
  [ ! -t 2 ] || printf '\r\033[K' >&2
  [ $failed = 0 ] || {
    { tail -n 40 "$log" && echo "The build failed; all that it printed is in $(realpath "$log")"; } >&2
    return 1
  }
}

# Runs the tests of a program that a pattern of Catch2 selects; none are a failure: run_tests PROGRAM PATTERN.
run_tests() {
  local -a options=()
  [[ $("$1" --libidentify) != *version:*' 2.'* ]] || options=(--warn NoTests) # Catch2 3 needs no option for that
  "$1" "$2" "${options[@]}"
}

# Installs missing packages and builds the program: build_program FOR, where FOR is "here" for this machine alone, which
# takes half of the time, or "anywhere". Sets `build` to the build directory. If MAKI_BUILD is set, uses that finished
# build instead.
build_program() {
  build=${MAKI_BUILD:-}
  [ -z "$build" ] || return 0
  build=build/program
  bash scripts/setup.sh
  local host_only=ON
  # A build for every machine is also one for this machine.
  if [ "$1" = anywhere ] || grep -qs '^MAKI_HOST_ONLY:BOOL=OFF' "$build/CMakeCache.txt"; then host_only=OFF; fi
  cmake --preset release --log-level=WARNING -B "$build" -DMAKI_BUILD_TESTS=OFF -DMAKI_BUILD_EXAMPLES=OFF \
    -DCMAKE_UNITY_BUILD=ON -DMAKI_HOST_ONLY=$host_only >/dev/null
  if [ ! -e "$build/train/maki" ]; then
    # What a build takes on a CPU of 2023, in CPU seconds.
    local seconds=240 cores
    [ $host_only = ON ] || seconds=400
    cores=$(nproc)
    echo "Building maki takes about $(((seconds / cores + 59) / 60)) min on $cores cores of a fast machine, once." >&2
  fi
  build "$build" maki_texts  # the program, its manual page and completions
}
