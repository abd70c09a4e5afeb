#!/usr/bin/env bash
# Installs missing packages, builds maki, trains a model on the built-in stories for about a minute and prints a text that
# the model generates.
#
#   scripts/demo.sh [CORPUS]      trains on your own text, such as my.txt, or on @stories-ja, the Japanese stories
#
# Environment variable: DEMO_SECONDS, the training time in seconds; default: 60
set -euo pipefail
corpus=${1:-@stories}
[ ! -e "$corpus" ] || corpus=$(realpath "$corpus")
seconds=${DEMO_SECONDS:-60}
cd "$(dirname "$0")/.."
. scripts/build.sh
maki=$build/train/maki

# The number of steps is chosen to fit the time at the machine's current speed, so that the learning rate decays over the
# whole run. If the machine slows down, an interrupt stops the run early; maki then saves it.
echo "Measuring how fast this machine trains." >&2
report=$("$maki" bench --preset quickstart --steps 20 --json 2>&1) || {
  status=$?
  printf '%s\n' "$report" "demo.sh: maki bench failed" >&2
  exit "$status"
}
ms=$(sed -n 's/^ *"ms_per_step": \([0-9]*\).*/\1/p' <<<"$report")
steps=$((seconds * 900 / (ms > 0 ? ms : 1)))
[ "$steps" -ge 20 ] || steps=20
n=1
while [ -e "runs/demo-$n" ]; do n=$((n + 1)); done
run=runs/demo-$n
# Four times the preset's learning rate, which gives better results after a minute on the stories (1.09 instead of 1.32
# nats after 2000 steps).
status=0
timeout --foreground --signal=INT $((seconds + seconds / 4 + 2)) \
  "$maki" train "$corpus" --out "$run" --preset quickstart --max-steps "$steps" --learning-rate 0.004 --min-lr 0.0004 ||
  status=$?
case $status in 0 | 124) ;; *) exit "$status" ;; esac

echo
"$maki" generate "$run" --max-tokens 600 --seed 1
cat <<END

The model generated this text; the run is in ${PWD}/$run. Next steps:
  scripts/install.sh                        installs maki in your PATH
  maki generate $run                 generates another text, different every time
  maki train my.txt                         trains on your own text
END
