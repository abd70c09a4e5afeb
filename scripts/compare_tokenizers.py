#!/usr/bin/env python3
"""Compares maki's byte-level BPE with Hugging Face's tokenizers and with tiktoken: the merges that are learned from a text,
the ids of its lines, and times. maki's times include starting the program, reading and printing; those of the others
only the call itself.

Usage: pip install tokenizers tiktoken; scripts/compare_tokenizers.py TEXT [--vocab-size N] [--maki build/release/train/maki]
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def learn(text, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return json.loads(tokenizer.to_str())["model"]["merges"]


def tiktoken_of(tokenizer):
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in own]
    byte = {chr(b): b for b in own} | {chr(256 + i): b for i, b in enumerate(rest)}
    special = {token["content"] for token in tokenizer["added_tokens"]}
    ranks = {bytes(byte[c] for c in token): rank for token, rank in tokenizer["model"]["vocab"].items() if token not in special}
    return tiktoken.Encoding("maki", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--vocab-size", type=int, default=8257, help="with <|endoftext|>; the merges are 257 fewer")
    parser.add_argument("--maki", default="build/release/train/maki")
    options = parser.parse_args()
    text = options.text.read_bytes().decode()
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        maki = [options.maki, "tokenizer"]
        train = [*maki, "train", str(options.text), "--out", str(path), "--vocab-size", str(options.vocab_size)]
        _, ours = timed(lambda: subprocess.run(train, check=True, stdout=subprocess.DEVNULL))
        tokenizer = json.loads(path.read_text())
        merges, theirs = timed(lambda: learn(text, options.vocab_size - 1))
        equal = merges == tokenizer["model"]["merges"]
        print(f"{len(merges)} merges {'are equal' if equal else 'DIFFER'}; maki {ours:.2f} s, tokenizers {theirs:.2f} s")

        encoding = tiktoken_of(tokenizer)
        lines = text.removesuffix("\n").split("\n")
        encode = [*maki, "encode", str(path), str(options.text)]
        printed = subprocess.run([*encode, "--lines"], check=True, capture_output=True, text=True).stdout
        ids = [[int(i) for i in line.split()] for line in printed.removesuffix("\n").split("\n")]
        different = sum(a != encoding.encode_ordinary(b) for a, b in zip(ids, lines, strict=True))
        print(f"{len(lines)} lines: the ids of {different} differ from those of tiktoken")

        parts = [text[i : i + 65536] for i in range(0, len(text), 65536)]
        for _ in range(3):
            _, ours = timed(lambda: subprocess.run(encode, check=True, stdout=subprocess.DEVNULL))
            _, theirs = timed(lambda: encoding.encode_ordinary_batch(parts, num_threads=threads))
            print(f"encoding on {threads} threads: maki {ours:.2f} s, tiktoken {theirs:.2f} s, ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
