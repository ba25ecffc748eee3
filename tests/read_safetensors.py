#!/usr/bin/env python3
"""Reads a safetensors file by the published format alone, checks it, and lists it: read_safetensors.py [--package] FILE

An independent reader for the files that acflow writes. With --package the tensors come from Python's safetensors
instead, and the metadata, which its reader of bytes does not hand out, is left out. One line an entry: name, type,
shape, data in hex."""
import json
import math
import sys

SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "U8": 1}


def unique(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), "duplicate keys"
    return dict(pairs)


def read(blob):
    n = int.from_bytes(blob[:8], "little")
    header, data = blob[8:8 + n], blob[8 + n:]
    assert len(header) == n <= 100_000_000 and header[:1] == b"{" and n % 8 == 0, "length, first byte, alignment"
    entries = json.loads(header.decode("utf-8"), object_pairs_hook=unique)
    texts = entries.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in texts.values()), "metadata maps text to text"
    end, tensors = 0, []
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        assert set(entry) == {"dtype", "shape", "data_offsets"}, name
        begin, size = entry["data_offsets"][0], SIZES[entry["dtype"]]
        assert begin == end and begin % size == 0, f"{name}: no gap, no overlap, aligned"
        end = entry["data_offsets"][1]
        assert end - begin == size * math.prod(entry["shape"]), f"{name}: size"
        tensors.append((name, entry["dtype"], entry["shape"], data[begin:end]))
    assert end == len(data), "every byte belongs to a tensor"
    return tensors, texts


with open(sys.argv[-1], "rb") as file:
    content = file.read()
if sys.argv[1] == "--package":
    import safetensors
    listed, metadata = [(k, t["dtype"], t["shape"], t["data"]) for k, t in safetensors.deserialize(content)], {}
else:
    listed, metadata = read(content)
for key, value in sorted(metadata.items()):
    print(json.dumps(key), json.dumps(value))
for key, dtype, shape, values in sorted(listed):
    print(json.dumps(key), dtype, list(shape), bytes(values).hex())
