"""The forward pass of llama.cpp for GPT-2 and Llama in float64, from nothing but a GGUF file.

It follows src/models of llama.cpp: a Llama rotates neighbouring columns, 2i and 2i + 1, of each head, and head h of the
queries reads head h / (head_count / head_count_kv) of keys and values.
"""
import numpy as np


class Model:
    def __init__(self, reader):
        field = lambda key: reader.fields[key].contents()
        self.kind = field("general.architecture")
        self.get = lambda key: field(f"{self.kind}.{key}")
        self.blocks, self.heads = self.get("block_count"), self.get("attention.head_count")
        llama = self.kind == "llama"
        self.kv_heads = self.get("attention.head_count_kv") if llama else self.heads
        self.epsilon = self.get(f"attention.layer_norm_{'rms_' if llama else ''}epsilon")
        self.weights = {tensor.name: tensor.data.astype(np.float64) for tensor in reader.tensors}

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights.get(name + ".bias", 0)

    def norm(self, x, name):
        if self.kind == "gpt2":
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[name + ".weight"] + self.weights.get(name + ".bias", 0)

    def rotated(self, x):  # [T, H, D]
        size = self.get("rope.dimension_count")
        angles = np.arange(len(x))[:, None] * self.get("rope.freq_base") ** (-np.arange(0, size, 2) / size)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)[:, None, :]
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def attention(self, x, block):
        tokens, width = x.shape
        size = width // self.heads
        if self.kind == "gpt2":
            parts = np.split(self.linear(x, f"{block}.attn_qkv"), 3, axis=-1)
        else:
            parts = [self.linear(x, f"{block}.attn_{name}") for name in "qkv"]
        q, k, v = (part.reshape(tokens, -1, size) for part in parts)
        if self.kind == "llama":
            q, k = self.rotated(q), self.rotated(k)
        k, v = (np.repeat(part, self.heads // self.kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(size)
        scores[:, np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return self.linear(np.einsum("hts,shd->thd", weights, v).reshape(tokens, width), f"{block}.attn_output")

    def feed_forward(self, x, block):
        up = self.linear(x, f"{block}.ffn_up")
        if self.kind == "gpt2":  # GELU by tanh
            hidden = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        else:
            gate = self.linear(x, f"{block}.ffn_gate")
            hidden = gate / (1 + np.exp(-gate)) * up
        return self.linear(hidden, f"{block}.ffn_down")

    def last_logits(self, ids):
        x = self.weights["token_embd.weight"][ids]
        if self.kind == "gpt2":
            x = x + self.weights["position_embd.weight"][: len(ids)]
        for i in range(self.blocks):
            x = x + self.attention(self.norm(x, f"blk.{i}.attn_norm"), f"blk.{i}")
            x = x + self.feed_forward(self.norm(x, f"blk.{i}.ffn_norm"), f"blk.{i}")
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(x, "output_norm")[-1] @ head.T


def greedy(reader, prompt, length):
    """The prompt and the most probable tokens after it, `length` in all."""
    model, ids = Model(reader), list(prompt)
    while len(ids) < length:
        ids.append(int(model.last_logits(ids).argmax()))
    return ids
