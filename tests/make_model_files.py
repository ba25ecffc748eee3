#!/usr/bin/env python3
"""Makes the small model files under tests/golden/model (must load) and tests/rejected/model (must be refused).

Run from the repository root after a change of the format; the files are committed. It knows the format, not acflow's
code: sample.safetensors is what acf_safetensors_write must write for the same content, byte for byte."""
import json
import os
import struct


def save(path, header, data, length=None):
    header = header if isinstance(header, bytes) else header.encode("utf-8")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header) if length is None else length) + header + data)


def golden(name, header, data):
    save("tests/golden/model/" + name, header, data)


def rejected(name, header, data=b"", length=None):
    save("tests/rejected/model/" + name, header, data, length)


# ---- golden ---------------------------------------------------------------------------------------------------------

sample = [  # in the order of the file: element size, then name
    ("bias", "F64", [], struct.pack("<d", 0.1)),
    ("count", "I64", [1], struct.pack("<q", 1 << 40)),
    ("flow.0.w", "F32", [2, 3], struct.pack("<6f", 1, -2.5, 0, 1e-3, 3e38, -7)),
    ("none", "F32", [0, 4], b""),
    ("order", "I32", [2], struct.pack("<2i", -1, 7)),
    ("gr\u00f6\u00dfe \"1\"\n", "U8", [3], bytes([1, 2, 255])),
]
entries, body = {"__metadata__": {"config": "{\"lr\": 0.001}", "format_version": "1", "\u00e9": "\u20ac\t"}}, b""
for key, dtype, shape, values in sample:
    entries[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(values)]}
    body += values
text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).replace("\\t", "\\u0009").encode("utf-8")
golden("sample", text + b" " * (-len(text) % 8), body)

golden("empty", "{}", b"")
# All that others may write and acflow does not: spaces, any order, no alignment, escapes, no metadata, an empty tensor
# between two others.
golden("spaced", '{ "z" :{"shape": [ 2 ] ,\n\t"data_offsets":[3 , 11],"dtype": "F32"},\r\n'
       '"\\u0061\\uD83d\\udE00\\/":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},'
       '"e":{"dtype":"F64","shape":[1,0],"data_offsets":[3,3]}} \n', b"abc" + struct.pack("<2f", 0.5, -0.25))

# ---- rejected -------------------------------------------------------------------------------------------------------


def entry(begin, end, shape="[2]", kind="F32"):
    return '{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (kind, shape, begin, end)


rejected("no-header", b"", b"", 0)
rejected("header-longer-than-file", "{}", b"", 1000)
rejected("header-length-huge", "{}", b"", 2**64 - 1)
rejected("not-json", "{'w': 1}")
rejected("not-an-object", "[]")
rejected("not-utf8", b'{"\xff":' + entry(0, 0, "[0]").encode() + b"}")
rejected("deep", "{" + '"a":{' * 50 + "}" * 51)
rejected("cut-short", '{"w":' + entry(0, 8) + "}", b"1234567")
rejected("trailing", '{"w":' + entry(0, 8) + "}", b"123456789")
rejected("gap", '{"v":' + entry(0, 8) + ',"w":' + entry(12, 20) + "}", bytes(20))
rejected("overlap", '{"v":' + entry(0, 8) + ',"w":' + entry(4, 12) + "}", bytes(12))
rejected("same-place", '{"v":' + entry(0, 8) + ',"w":' + entry(0, 8) + "}", bytes(8))
rejected("backwards", '{"w":' + entry(8, 0) + "}", bytes(8))
rejected("duplicate", '{"w":' + entry(0, 8) + ',"w":' + entry(8, 16) + "}", bytes(16))
rejected("half", '{"w":' + entry(0, 4, kind="F16") + "}", bytes(4))
rejected("negative", '{"w":' + entry(0, 8, "[-1,-2]") + "}", bytes(8))
rejected("overflow", '{"w":' + entry(0, 8, "[4294967296,4294967296,2]") + "}", bytes(8))
rejected("metadata-number", '{"__metadata__":{"format_version":1}}')
rejected("nul-in-name", '{"w\\u0000":' + entry(0, 8) + "}", bytes(8))
with open("tests/rejected/model/table.safetensors", "w", encoding="ascii") as table:
    table.write("age,income,city\n40,51000,Turin\n33,,Graz\n")
