#!/usr/bin/env bash
# Creates the golden runs: small run directories that every later version of maki must load, verify, evaluate and resume.
# Each has the checkpoint of step 5, and measurements up to step 10. Those of a released schema are never created again.
#
#   tests/golden/make.sh MAKI
set -euo pipefail

maki=$(realpath "$1")
golden=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
texts=("$golden/corpus/en.txt" "$golden/corpus/ja.txt")
small=(--n-head 2 --n-embd 4 --block-size 8 --batch-size 2 --grad-accum 3 --n-layer 1 --val-fraction 0.2 --learning-rate 0.02
  --warmup-steps 2 --eval-interval 5 --eval-batches 0 --checkpoint-interval 5 --keep-last 1 --sample-interval 0 --log-interval 1
  --no-counting --no-early-stop --max-steps 5)
decaying=("${small[@]}" --lr-decay-steps 10)

train() {  # NAME CORPUS… OPTIONS…
  rm -rf "${golden:?}/$1"
  "$maki" train "${@:2}" --out "$golden/$1" --quiet
}

# Trains a copy for five more steps, whose measurements are kept, and makes the files small.
finish() {  # NAME
  local run=$golden/$1 copy=$scratch/$1
  cp -r "$run" "$copy"
  "$maki" train --resume "$copy" --max-steps 10 --quiet
  cp "$copy/metrics.jsonl" "$run"
  sed -i "s|$golden|GOLDEN|g; s| *#.*||; /^$/d" "$run/config.toml"
  rm -f "$run/.lock"
}

# Two phases of the schedule.
train gpt "${texts[@]}" "${small[@]}" --dropout 0.2 --label-smoothing 0.1 --max-steps 3 --lr-decay-steps 3
"$maki" train --resume "$golden/gpt" --rewarm --max-steps 5 --lr-decay-steps 10 --learning-rate 0.01 --warmup-steps 4 --quiet
train sgd "${texts[@]}" "${decaying[@]}" --n-embd 2 --n-head 1 --tokenizer byte --dtype float64 --activation relu --optimizer sgd \
  --momentum 0.9 --nesterov --schedule linear --learning-rate 0.1 --min-lr 0.01 --warmup-steps 0 --grad-clip 0.5
train llama "${texts[@]}" "${decaying[@]}" --norm rms --positions rotary --activation swiglu --no-bias --n-kv-head 1 --qk-norm \
  --conv-width 2 --tokenizer word --optimizer muon
train lora "${texts[@]}" "${decaying[@]}" --init-from "$golden/gpt" --lora-rank 2 --optimizer adam --schedule wsd --freeze 'wte.*'
train ngrams "${texts[@]}" "${decaying[@]}" --n-embd 2 --n-head 1 --tokenizer bpe --vocab-size 260 --normalize nfkc \
  --ngram-prior 3 --ngram-orders 2 --ngram-rows 16
train linear "${texts[@]}" "${decaying[@]}" --model linear --attention random:4 --positions none
train transformer-xl "${texts[@]}" "${decaying[@]}" --model transformer-xl --memory 12 --dropout 0.2
train encoder "${texts[@]}" "${decaying[@]}" --model encoder --positions sinusoidal --no-tie-weights
train classify "$golden/corpus/labels.tsv" "${decaying[@]}" --model encoder --task classify --positions rotary --block-size 20
train seq2seq "$golden/corpus/pairs.tsv" "${small[@]}" --model seq2seq --block-size 20 --label-smoothing 0.1 \
  --schedule inverse_sqrt
for run in "$golden"/*/config.toml; do finish "$(basename "$(dirname "$run")")"; done
