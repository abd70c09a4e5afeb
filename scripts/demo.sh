#!/usr/bin/env bash
# Installs missing packages, builds maki, trains a model on the built-in stories for about a minute and prints a text that
# the model generates.
#
#   scripts/demo.sh [CORPUS]      trains on your own text, such as my.txt, or on @stories-ja, the Japanese stories
#
# Environment variable: DEMO_SECONDS, the training time in seconds; default: 60
set -euo pipefail
corpus=${1:-@stories}
if [ -e "$corpus" ]; then
  corpus=$(realpath "$corpus")
elif [[ $corpus != [@-]* ]]; then # before it is built
  echo "demo.sh: CORPUS must be a file or directory that exists, or @stories-ja; got $corpus" >&2 && exit 3
fi
seconds=${DEMO_SECONDS:-60}
cd "$(dirname "$0")/.."
. scripts/build.sh
build_program here
maki=$build/train/maki

n=1
while [ -e "runs/demo-$n" ]; do n=$((n + 1)); done
run=runs/demo-$n
# maki plans the run: the number of steps follows from the machine's current speed, and the learning rate falls to 0 at the
# end of the time.
"$maki" train "$corpus" --out "$run" --minutes "$(LC_ALL=C awk -v seconds="$seconds" 'BEGIN { print seconds / 60 }')"

echo
"$maki" generate "$run" --max-tokens 200 --seed 1
cat <<END

The model generated this text; the run is in $PWD/$run. Next steps:
  # installs maki in your PATH
  $(printf %q "$PWD")/scripts/install.sh
  # generates another text, different every time
  maki generate $(printf %q "$PWD")/$run
  # trains on your own text
  maki train my.txt
END
