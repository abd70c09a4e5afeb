#!/usr/bin/env python3
"""The training step that `maki bench --json` has measured, in PyTorch on the CPU: a GPT with the norm before each layer,
learned positions, the token embedding as the last layer, dropout 0, AdamW and clipping at 1.

  maki bench --workload baby --threads 2 --json | python3 bench/torch_step.py [--compile] [--bfloat16] [--seconds 10]

Prints one line of JSON: the engine, the median time of a step in milliseconds, and GFLOP/s by maki's count of the
operations of a step. --compile: with torch.compile(). --bfloat16: products in bfloat16 by autocast, weights and optimizer
in float32. Needs PyTorch 2.4 or later.
"""
import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, bias=bias)
        self.query_key_value = nn.Linear(width, 3 * width, bias=bias)
        self.projection = nn.Linear(width, width, bias=bias)
        self.feed_forward_norm = nn.LayerNorm(width, bias=bias)
        self.expand = nn.Linear(width, 4 * width, bias=bias)
        self.contract = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):  # (rows, tokens, width)
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.contract(functional.gelu(self.expand(self.feed_forward_norm(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads, bias):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads, bias) for _ in range(layers)))
        self.last_norm = nn.LayerNorm(width, bias=bias)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.last_norm(self.blocks(self.tokens(ids) + self.positions[: ids.shape[1]]))
        logits = functional.linear(x, self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def step_of(shape, compiled, bfloat16):
    """A function that makes one step of training on random tokens."""
    model = Gpt(shape["vocab_size"], shape["block_size"], shape["n_layer"], shape["n_embd"], shape["n_head"], shape["bias"])
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.99), fused=True)
    forward = torch.compile(model) if compiled else model
    ids, targets = torch.randint(shape["vocab_size"], (2, shape["batch_size"], shape["block_size"]))

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = forward(ids, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--compile", action="store_true")
    arguments.add_argument("--bfloat16", action="store_true")
    arguments.add_argument("--seconds", type=float, default=10, help="time to measure for, after three steps")
    options = arguments.parse_args()
    shape = json.load(sys.stdin)
    torch.set_num_threads(shape["threads"])
    torch.manual_seed(1)
    step = step_of(shape, options.compile, options.bfloat16)
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + options.seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times)
    words = ["torch", torch.__version__] + ["compile"] * options.compile + ["bfloat16"] * options.bfloat16
    print(json.dumps({"engine": " ".join(words), "threads": shape["threads"], "ms_per_step": 1000 * seconds,
                      "gflop_per_second": shape["gflop_per_step"] / seconds}))


if __name__ == "__main__":
    main()
