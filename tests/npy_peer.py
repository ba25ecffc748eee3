#!/usr/bin/env python3
"""NumPy as the peer of src/table/npy.c (called by npy_test.c).

    npy_peer.py make FOLDER     a matrix of 7 x 3 in every item type, byte order and storage order: TYPE-ORDER.npy, item (i, j) = 3 i + j
    npy_peer.py check FILE      FILE must be a matrix of 5 x 2 doubles, item (i, j) = 10 i + j + 1/4
"""
import sys

import numpy as np


def make(folder):
    for kind in "f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split():
        for order in "<>":
            x = np.arange(21).reshape(7, 3).astype(order + kind)
            for storage in "CF":
                name = {"<": "little", ">": "big"}[order]
                with open(f"{folder}/{kind}-{name}-{storage}.npy", "wb") as out:
                    version = {"f8": (2, 0), "i8": (3, 0)}.get(kind)
                    np.lib.format.write_array(out, np.asarray(x, order=storage), version=version)
    np.save(f"{folder}/vector.npy", np.arange(9.0))


def check(path):
    x = np.load(path)
    expected = 10.0 * np.arange(5)[:, None] + np.arange(2) + 0.25
    if x.dtype != np.dtype("<f8") or x.shape != (5, 2) or not (x == expected).all():
        sys.exit(f"{path}: NumPy reads {x!r}")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2])
