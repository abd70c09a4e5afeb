#!/usr/bin/env python3
"""Reads a maki checkpoint as docs/formats.md describes it: python3 scripts/read_checkpoint.py FILE.maki

Prints its contents as JSON: sections, configuration (as text), state, and every tensor with its shape, sum and sum of
squares. Needs nothing but Python 3.8; hashes are not verified (XXH3 is not in the standard library: maki inspect --verify).
"""
import array
import json
import struct
import sys


def sections(data):
    magic, version, count, size = struct.unpack_from("<8sIIQ", data)
    if magic != b"\x89maki\r\n\x1a" or version != 1 or size != len(data):
        sys.exit("not a maki checkpoint of version 1, or an incomplete one")
    found = {}
    for i in range(count):
        name, offset, length = struct.unpack_from("<32sQQ", data, 64 + 64 * i)
        found[name.rstrip(b"\0").decode()] = data[offset : offset + length]
    return found


def state(section):
    names = ["step", "vocab_size", "characters", "train_tokens", "val_tokens", "best_possible_loss", "corpus_hash"]
    values = dict(zip(names, struct.unpack_from("<5qd32s", section, 1)))
    return {**values, "corpus_hash": values["corpus_hash"].decode()}


def tensors(section):
    for at in range(1, len(section), 178):
        name, *numbers = struct.unpack_from("<128s5qqBB", section, at)
        rank, group = numbers[6:]
        yield name.rstrip(b"\0").decode(), numbers[:rank], numbers[5], ["decay", "no_decay", "frozen", "rows"][group]


def main(path):
    with open(path, "rb") as file:
        found = sections(file.read())
    config = found["config"].decode()
    values = array.array("d" if "dtype = 'float64'" in config else "f", found["values"])
    if sys.byteorder == "big":
        values.byteswap()
    facts = {"sections": {name: len(content) for name, content in found.items()}, "config": config}
    facts["state"] = state(found["state"])
    facts["tensors"] = []
    for name, shape, offset, group in tensors(found["tensors"]):
        count = 1
        for extent in shape:
            count *= extent
        part = values[offset : offset + count]
        facts["tensors"].append({"name": name, "shape": shape, "group": group, "sum": sum(part),
                                 "sum_of_squares": sum(x * x for x in part)})
    print(json.dumps(facts, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
