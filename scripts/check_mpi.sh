#!/usr/bin/env bash
# Tries several processes that mpirun starts, with every MPI library that is installed (Open MPI and MPICH): any number of
# ranks must write the checkpoints of one process, byte for byte, and a run must survive ranks that are killed or stopped at
# any moment. Takes about ten minutes for each library on two cores.
#
#   scripts/check_mpi.sh [N] [--seed NUMBER] [--mpi openmpi|mpich]
#
# kills a rank at N random moments [50] and stops one at N / 5. After each the exit code must not be 0, nothing may hang, the
# checkpoints must verify, and a resume with another number of ranks must end in the bytes of a run that was never stopped.
# The seed [1] determines which rank and when, so that a failure can be repeated. Prints a table at its end; the files of
# what failed are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh

moments=50 seed=1 libraries=
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seed=$2 && shift 2 ;;
    --mpi) libraries=$2 && shift 2 ;;
    *) moments=$1 && shift ;;
  esac
done
if ! [[ $moments =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ && $libraries =~ ^(openmpi|mpich)?$ ]]; then
  sed -n 's/^#   //p' "$0" >&2
  exit 2
fi
if [ -z "$libraries" ]; then
  for library in openmpi mpich; do
    if command -v "mpirun.$library" "mpicxx.$library" >/dev/null; then libraries+=" $library"; fi
  done
fi
[ -n "$libraries" ] || { echo "check_mpi.sh: needs MPI; install libopenmpi-dev or libmpich-dev" >&2; exit 2; }
build_program here

work=$(mktemp -d) table=()
export OMP_WAIT_POLICY=passive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
# The same in Open MPI 5.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
patience=120  # seconds after which something hangs

# A text, and lines of two columns: a word and what becomes of it.
awk -v seed=3 'BEGIN { srand(seed); n = split("the maki reel unrolls slowly and a tape keeps every step", w)
  for (i = 1; i <= 900; ++i) printf "%s%s", w[int(rand() * n) + 1], i % 9 ? " " : ".\n" }' >"$work/text"
tr -s ' .' '\n' <"$work/text" | sort -u | sed '/^$/d' >"$work/words"
for i in 1 2 3 4 5 6; do sed "s/\$/$i/" "$work/words"; done | awk '{ r = ""; for (i = length($0); i; --i) r = r substr($0, i, 1); print $0 "\t" r }' \
  >"$work/pairs"
awk -F '\t' '{ print $1 "\t" ($1 < "m" ? "early" : "late") }' "$work/pairs" >"$work/labels"

small="--n-layer 2 --n-head 2 --n-embd 16 --block-size 16 --batch-size 2 --dropout 0.1 --eval-batches 2 --threads 1"
often="--eval-interval 5 --checkpoint-interval 4 --keep-last 99"

# The options of each kind, after its name and text; --grad-accum, --model and others may be given.
kinds() {
  cat <<END
gpt text --grad-accum 7
idle-ranks text --grad-accum 2
layer-by-layer text --grad-accum 5 --n-layer 8 --n-embd 128
rotary text --grad-accum 5 --positions rotary
linear text --grad-accum 5 --model linear
encoder text --grad-accum 5 --model encoder --task masked
transformer-xl text --grad-accum 5 --model transformer-xl --memory 24
translator pairs --grad-accum 5 --model seq2seq --task translate
classifier labels --grad-accum 5 --model encoder --task classify
n-gram-tables text --grad-accum 5 --ngram-orders 2,4 --ngram-rows 500
n-gram-prior text --grad-accum 5 --ngram-prior 3
muon text --grad-accum 5 --optimizer muon
sgd text --grad-accum 5 --optimizer sgd
bfloat16 text --grad-accum 5 --precision bfloat16
lora text --grad-accum 5 --init-from $work/base --lora-rank 2
END
}

failed=0
fail() {
  echo "check_mpi.sh: $library: $*; its files are in $work" >&2
  failed=1
}

# Runs maki as some ranks, for at most $patience seconds: ranks NUMBER ARGUMENT…
ranks() {
  local size=$1
  shift
  timeout -s KILL $patience "mpirun.$library" -n "$size" "$folder/maki" "$@"
}

# All checkpoints of a run in one file of checksums.
sums() { (cd "$1/checkpoints" && sha256sum ./*); }

check_kinds() {
  local name text options size ok runs
  [ -e "$work/base" ] || "$folder/maki" train "$work/text" --out "$work/base" $small --max-steps 5 2>"$work/log"
  while read -r name text options; do
    local shape=$small
    [ "$name" != lora ] || shape="--eval-batches 2 --threads 1 --batch-size 2"
    rm -rf "$work/alone"
    if ! "$folder/maki" train "$work/$text" --out "$work/alone" $shape $often $options --max-steps 12 2>"$work/log"; then
      fail "one process cannot train $name ($(grep maki: "$work/log"))"
      continue
    fi
    ok=0 runs=0
    for size in 1 2 3 4 5 8; do
      runs=$((runs + 1))
      rm -rf "$work/several"
      if ranks $size train "$work/$text" --out "$work/several" $shape $often $options --max-steps 12 >"$work/log" 2>&1 </dev/null \
        && [ "$(sums "$work/several")" = "$(sums "$work/alone")" ]; then
        ok=$((ok + 1))
      else
        fail "$name: $size ranks do not write what one process writes"
      fi
    done
    table+=("$library|$name: 1, 2, 3, 4, 5 and 8 ranks write the bytes of one process|$ok of $runs")
  done < <(kinds)
}

# Writes the number of the process of a rank into a file before the rank becomes maki.
# shellcheck disable=SC2016  # the shell of the rank expands this
numbered='rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; echo $$ >"$0-$rank.new"; mv "$0-$rank.new" "$0-$rank"; exec "$@"'
steps="$small --grad-accum 5 --lr-decay-steps 5000 --no-early-stop --eval-interval 7 --checkpoint-interval 3 --log-interval 1"

# Whether a process has ended within so many seconds: gone PROCESS SECONDS.
gone() {
  local end=$((SECONDS + $2))
  while [ $SECONDS -lt $end ]; do
    [[ -e /proc/$1/stat && $(<"/proc/$1/stat") != *') Z '* ]] 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}

# The checkpoint of a step of a run of one process that was never stopped.
straight() {
  local run=$work/straight-$1
  [ -e "$run/checkpoints/last" ] \
    || "$folder/maki" train "$work/text" --out "$run" $steps --eval-interval 1000 --max-steps "$1" 2>"$work/log-straight"
  printf '%s/checkpoints/step-%08d.maki' "$run" "$1"
}

# resumes RUN RANKS: verifies a run that was ended, resumes it with this number of ranks, and compares it with a run that was
# never interrupted. A run that was ended before its first checkpoint must begin again.
resumes() {
  local run=$1 size=$2 last=-1 target
  if [ -e "$run/checkpoints/last" ]; then
    last=$(sed 's/step-0*\([0-9]\+\)\.maki.*/\1/' "$run/checkpoints/last")
    "$folder/maki" inspect "$run" --verify >"$work/log-verify" 2>&1 || { fail "$what: does not verify"; return 1; }
  fi
  target=$(((last / 250 + 1) * 250))
  if [ "$last" = -1 ]; then
    target=250
    rm -rf "$run"
    set -- train "$work/text" --out "$run" $steps
  else
    set -- train --resume "$run"
  fi
  if ! ranks "$size" "$@" --eval-interval 1000 --max-steps $target >"$work/log-resume" 2>&1 </dev/null; then
    fail "$what: $size ranks do not go on after step $last"
    return 1
  fi
  cmp -s "$run/checkpoints/$(printf step-%08d.maki $target)" "$(straight $target)" \
    || { fail "$what: $size ranks went on after step $last to other bytes"; return 1; }
}

# Waits for a file that the ranks write; false if their launcher ends before.
appears() {
  until [ -e "$1" ]; do
    kill -0 "$launcher" 2>/dev/null || return 1
    sleep 0.01
  done
}

# Sends a signal to one of three ranks at a random moment: disturb SIGNAL NUMBER. That is a time after the start, from
# before MPI has started to long after the first checkpoint; steps, evaluations and saves are so short that all are met. A
# rank is stopped only when the run has begun, because MPI itself waits for ever for one that does not start.
disturb() {
  local signal=$1 run=$work/run size=3 victim delay other launcher code=0 rank file
  RANDOM=$(((seed * 7919 + $2 * 12347 + $(kill -l "$signal") * 1663) % 32768))
  : $RANDOM $RANDOM
  victim=$((RANDOM % size)) delay=$((RANDOM % 2000)) other=$((1 + RANDOM % 5))
  what="$signal to rank $victim after $delay ms (number $2)"
  rm -rf "$run" "$work"/process-*
  timeout -k 5 $((2 * patience)) "mpirun.$library" -n $size sh -c "$numbered" "$work/process" "$folder/maki" train "$work/text" \
    --out "$run" $steps --rank-timeout 2 --max-steps 1000000 >"$work/log" 2>&1 </dev/null &
  launcher=$!
  local -a expected=("$work"/process-{0,1,2})
  [ "$signal" != STOP ] || expected+=("$run/checkpoints/last")
  for file in "${expected[@]}"; do
    appears "$file" || { fail "$what: the ranks do not begin"; return 1; }
  done
  sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
  kill -"$signal" "$(<"$work/process-$victim")"
  for rank in $(seq 0 $((size - 1))); do
    gone "$(<"$work/process-$rank")" $patience || code=hangs
  done
  if [ $code = hangs ]; then
    fail "$what: a rank hangs"
    # shellcheck disable=SC2046  # each is a process
    kill -KILL $(cat "$work"/process-*) $launcher 2>/dev/null
    return 1
  fi
  # Open MPI 4.1 sometimes waits for itself (in PMIx_server_finalize) if a rank was killed while that connected to it.
  if ! gone $launcher 20; then
    echo "check_mpi.sh: $library: $what: all ranks have ended, and mpirun itself hangs" >&2
    kill $launcher
  fi
  wait $launcher || code=$?
  # Before there is something to save, the code is up to the launcher.
  if [ $code = 0 ] || { [ "$signal" = TERM ] && [ $code != 143 ] && [ -e "$run/checkpoints/last" ]; }; then
    fail "$what: exit code $code"
    return 1
  fi
  if [ "$signal" = STOP ] && ! grep -q "^maki: rank $victim .*nothing was heard" "$work/log"; then
    fail "$what: nobody says so"
    return 1
  fi
  resumes "$run" $other
}

# disturb_all SIGNAL TIMES DESCRIPTION
disturb_all() {
  local ok=0 number
  for number in $(seq "$2"); do
    if disturb "$1" "$number"; then
      ok=$((ok + 1))
    else
      mkdir -p "$work/failed-$library-$1-$number"
      cp -r "$work"/log* "$work"/run "$work/failed-$library-$1-$number" 2>/dev/null || true
    fi
  done
  table+=("$library|$3|$ok of $2")
}

for library in $libraries; do
  folder=$work/$library
  mkdir "$folder"
  cp "$build/train/maki" "$folder/maki"
  "mpicxx.$library" -std=c++20 -O2 -fPIC -shared -I. train/loop/team/mpi_module.cpp -o "$folder/maki-mpi.so"
  check_kinds
  disturb_all KILL "$moments" "a rank is killed (SIGKILL), and other ranks go on"
  disturb_all TERM $((moments / 5)) "a rank is asked to end (SIGTERM), and other ranks go on"
  disturb_all STOP $((moments / 5)) "a rank is stopped (SIGSTOP), and other ranks go on"
done

printf '\n%-8s  %-75s  %s\n' library what passed
for row in "${table[@]}"; do
  IFS='|' read -r library name passed <<<"$row"
  printf '%-8s  %-75s  %s\n' "$library" "$name" "$passed"
done
echo "seed $seed"
if [ $failed = 0 ]; then rm -rf "$work"; fi
exit $failed
