#!/usr/bin/env bash
# Installs what is missing, builds, trains for about a minute on the built-in stories and prints one of its own.
# With an argument, trains on that text instead: scripts/demo.sh my.txt   (@stories-ja: the Japanese stories)
#
# DEMO_SECONDS=60  how long to train
set -euo pipefail
corpus=${1:-@stories}
[ ! -e "$corpus" ] || corpus=$(realpath "$corpus")
seconds=${DEMO_SECONDS:-60}
cd "$(dirname "$0")/.."
. scripts/build.sh
maki=$build/train/maki

# As many steps as this machine, as busy as it is, makes in that time: the learning rate falls over the whole run. If the
# machine gets busier, an interrupt ends the run, which saves it.
echo "Measuring how fast this machine trains." >&2
ms=$("$maki" bench --preset quickstart --steps 20 --json 2>/dev/null | sed -n 's/^ *"ms_per_step": \([0-9]*\).*/\1/p')
steps=$((seconds * 900 / (ms > 0 ? ms : 1)))
[ "$steps" -ge 20 ] || steps=20
n=1
while [ -e "runs/demo-$n" ]; do n=$((n + 1)); done
run=runs/demo-$n
# Four times the preset's learning rate: better after a minute on the stories (1.09 nats after 2000 steps against 1.32).
status=0
timeout --foreground --signal=INT $((seconds + seconds / 4 + 2)) \
  "$maki" train "$corpus" --out "$run" --preset quickstart --max-steps "$steps" --learning-rate 0.004 --min-lr 0.0004 ||
  status=$?
case $status in 0 | 124) ;; *) exit "$status" ;; esac

echo
"$maki" generate "$run" --max-tokens 600 --seed 1
cat <<END

This text is of the model's own making, in ${PWD}/$run. What to type next:
  scripts/install.sh                        puts maki on your PATH
  maki generate $run                 writes more, another text every time
  maki train my.txt                         trains on a text of yours
END
