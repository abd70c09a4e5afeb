#!/usr/bin/env python3
"""Checks an exported model with the programs that it was exported for.

    scripts/check_export.py MAKI RUN [PROMPT]

Exports a run to a Hugging Face directory and compares what transformers generates greedily, 100 tokens after the prompt,
with what `maki generate` writes, and that texts of different lengths can be encoded together if a text has an end. If the package gguf is there, it also reads a GGUF file, compares every tensor, and generates
the same tokens in NumPy as llama.cpp would (gguf_forward.py); if llama_cpp is there, it compares the text that llama.cpp
itself generates, and the ids of a text with every special token in it. Needs torch, transformers and safetensors; maki does not.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

TOKENS = 100
maki, run = sys.argv[1:3]
prompt = sys.argv[3] if len(sys.argv) > 3 else "a"


def call(*arguments):
    return subprocess.run([maki, *arguments], check=True, capture_output=True, text=True).stdout


def context_of(model):
    return model.config.n_positions if model.config.model_type == "gpt2" else model.config.max_position_embeddings


def check_transformers(folder):
    call("export", run, "--format", "hf", "--out", str(folder))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    length = min(TOKENS, context_of(model) - ids.shape[1])
    with torch.no_grad():
        written = model.generate(ids, do_sample=False, min_new_tokens=length, max_new_tokens=length)
    theirs = tokenizer.decode(written[0], skip_special_tokens=False)
    model.prompt, model.written = ids[0].tolist(), written[0].tolist()
    ours = call("generate", run, "--prompt", prompt, "--temperature", "0", "--max-tokens", str(length)).removesuffix("\n")
    if ours != theirs.removesuffix("\n"):
        sys.exit(f"transformers and maki differ:\n{theirs!r}\n{ours!r}")
    print(f"transformers {transformers.__version__}: the same {length} tokens")
    if tokenizer.eos_token_id is not None:
        ends = model.generation_config.eos_token_id
        if tokenizer.eos_token_id not in (ends if isinstance(ends, list) else [ends]):
            sys.exit(f"transformers: the tokenizer ends texts with {tokenizer.eos_token_id}, the model with {ends}")
        lengths = {len(row) for row in tokenizer([prompt, prompt + prompt], padding=True).input_ids}
        if len(lengths) != 1:
            sys.exit("transformers: the tokenizer does not fill batches")
    model.special_text = prompt + prompt.join(tokenizer.all_special_tokens)
    model.special_ids = tokenizer(model.special_text).input_ids
    return model


def pairs_first(weight, heads):
    """Rows i and i + D/2 of each head follow each other, as llama.cpp rotates them."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def expected_tensors(model):
    """The tensors of a GGUF file by what transformers loaded."""
    state = {k: v for k, v in model.state_dict().items()}
    if model.config.model_type == "gpt2":
        names = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
                 "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
        yield "token_embd.weight", state["transformer.wte.weight"]
        yield "position_embd.weight", state["transformer.wpe.weight"]
        for i in range(model.config.n_layer):
            for theirs, name in names.items():
                weight = state[f"transformer.h.{i}.{theirs}.weight"]
                yield f"blk.{i}.{name}.weight", weight.t() if weight.dim() == 2 else weight
                yield f"blk.{i}.{name}.bias", state[f"transformer.h.{i}.{theirs}.bias"]
        return
    names = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    yield "token_embd.weight", state["model.embed_tokens.weight"]
    for i in range(model.config.num_hidden_layers):
        for theirs, name in names.items():
            weight = state[f"model.layers.{i}.{theirs}.weight"]
            heads = {"attn_q": model.config.num_attention_heads, "attn_k": model.config.num_key_value_heads}.get(name)
            yield f"blk.{i}.{name}.weight", pairs_first(weight, heads) if heads else weight


def check_gguf(path, model):
    try:
        import gguf
    except ImportError:
        print("gguf: not installed")
        return
    call("export", run, "--format", "gguf", "--out", str(path), *gelu(model))
    found = {tensor.name: torch.tensor(tensor.data.copy()) for tensor in gguf.GGUFReader(path).tensors}
    count = 0
    for name, wanted in expected_tensors(model):
        # A vocabulary without an end has one more token in GGUF.
        if not torch.equal(found[name][:len(wanted)], wanted):
            sys.exit(f"gguf: {name} differs")
        count += 1
    print(f"gguf: the same {count} tensors")
    import gguf_forward
    if gguf_forward.greedy(gguf.GGUFReader(path), model.prompt, len(model.written)) != model.written:
        sys.exit("gguf: a forward pass in NumPy writes other tokens")
    print(f"gguf: a forward pass in NumPy writes the same {len(model.written) - len(model.prompt)} tokens")
    for kind, most in (("f16", 1e-3), ("q8_0", 1e-2)):
        narrow = path.with_suffix("." + kind)
        call("export", run, "--format", "gguf", "--out", str(narrow), "--gguf-type", kind, *gelu(model))
        for tensor in gguf.GGUFReader(narrow).tensors:
            values = torch.tensor(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
            gap = (values.reshape(found[tensor.name].shape) - found[tensor.name]).abs().max()
            if gap > most * found[tensor.name].abs().max():
                sys.exit(f"gguf: {tensor.name} as {kind} differs by {gap}")
        print(f"gguf: {kind} is within {most} of the largest weight of each tensor")
    check_llama_cpp(path, model)


def gelu(model):
    return ["--gelu-as-tanh"] if getattr(model.config, "activation_function", "") == "gelu" else []


def check_llama_cpp(path, model):
    try:
        import llama_cpp
    except ImportError:
        print("llama_cpp: not installed")
        return
    llama = llama_cpp.Llama(str(path), verbose=False, n_ctx=0)
    ids = llama.tokenize(prompt.encode(), add_bos=False)
    if ids != model.prompt:
        sys.exit(f"llama.cpp encodes the prompt as {ids}, transformers as {model.prompt}")
    special = llama.tokenize(model.special_text.encode(), add_bos=False, special=True)
    if special != model.special_ids:
        sys.exit(f"llama.cpp encodes special tokens as {special}, transformers as {model.special_ids}")
    llama.eval(ids)
    while len(ids) < len(model.written):
        ids.append(llama.sample(temp=0, repeat_penalty=1))
        llama.eval(ids[-1:])
    if ids != model.written:
        sys.exit(f"llama.cpp and maki differ:\n{ids}\n{model.written}")
    print(f"llama.cpp: the same {len(ids) - len(model.prompt)} tokens")


with tempfile.TemporaryDirectory() as folder:
    loaded = check_transformers(pathlib.Path(folder) / "hf")
    check_gguf(pathlib.Path(folder) / "model.gguf", loaded)
