#!/usr/bin/env bash
# Creates the golden runs of a schema: small run directories that every later version of maki must load, verify, evaluate
# and resume. Run when a schema has got a new field, with the binary that introduces it; the runs of a released schema are
# never regenerated.
#
#   tests/golden/make.sh MAKI SCHEMA
set -euo pipefail

maki=$(realpath "$1")
golden=$(realpath "$(dirname "$0")")
runs=$golden/schema-$2
[ ! -e "$runs" ] || { echo "make.sh: $runs exists; remove it first if this schema was never released" >&2 && exit 1; }
mkdir -p "$runs"
corpus=("$golden/corpus/en.txt" "$golden/corpus/ja.txt")
small=(--n-head 2 --n-embd 4 --block-size 8 --batch-size 2 --grad-accum 3 --n-layer 1 --val-fraction 0.2
  --eval-interval 5 --eval-batches 0 --checkpoint-interval 5 --keep-last 2 --sample-interval 0 --log-interval 1)

# Two phases of the schedule: the first checkpoint that is kept records one of them, the second both.
"$maki" train "${corpus[@]}" --out "$runs/adamw" "${small[@]}" --dropout 0.2 --label-smoothing 0.1 --learning-rate 0.02 \
  --warmup-steps 3 --max-steps 10
"$maki" train --resume "$runs/adamw" --rewarm --max-steps 15 --learning-rate 0.01 --warmup-steps 2
"$maki" train "${corpus[@]}" --out "$runs/sgd" "${small[@]}" --tokenizer byte --dtype float64 --no-bias --no-tie-weights \
  --activation relu --optimizer sgd --momentum 0.9 --nesterov --schedule linear --learning-rate 0.1 --min-lr 0.01 \
  --warmup-steps 0 --grad-clip 0.5 --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/init" --init-from "$runs/adamw" "${small[@]}" --optimizer adam --schedule wsd \
  --weight-decay 0 --seed 7 --max-steps 15
# The other kinds of models and their tasks, since schema 3.
"$maki" train "${corpus[@]}" --out "$runs/llama" "${small[@]}" --norm rms --positions rotary --activation swiglu --no-bias \
  --tokenizer word --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/linear" "${small[@]}" --model linear --attention random:4 --positions none \
  --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/encoder" "${small[@]}" --model encoder --positions sinusoidal --max-steps 15
"$maki" train "$golden/corpus/pairs.tsv" --out "$runs/seq2seq" "${small[@]}" --model seq2seq --block-size 20 \
  --label-smoothing 0.1 --schedule inverse_sqrt --warmup-steps 4 --max-steps 15
"$maki" train "$golden/corpus/labels.tsv" --out "$runs/classify" "${small[@]}" --model encoder --task classify \
  --positions rotary --norm rms --block-size 20 --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/transformer-xl" "${small[@]}" --model transformer-xl --memory 12 --dropout 0.2 \
  --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/bpe" "${small[@]}" --tokenizer bpe --vocab-size 300 --normalize nfkc --max-steps 15
# What schema 3 adds to models and to training.
"$maki" train "${corpus[@]}" --out "$runs/prior" "${small[@]}" --ngram-prior 4 --max-steps 15
"$maki" train "${corpus[@]}" --out "$runs/lora" --init-from "$runs/adamw" "${small[@]}" --lora-rank 2 --max-steps 15

for run in adamw sgd init bpe llama linear encoder seq2seq classify transformer-xl prior lora; do
  sed -i "s|$golden|GOLDEN|g" "$runs/$run/config.toml"
  rm -f "$runs/$run/.lock"
done
