#!/usr/bin/env python3
"""Python's csv module as the peer of src/table/csv.c (called by csv_peer_test.c).

    csv_peer.py make FOLDER     writes tables N.csv in many dialects, each with N.values: what Python reads from it
    csv_peer.py check FOLDER    reads tables N.csv that acflow wrote, and compares with N.values

A .values file begins with a line "separator quote", the codes of the two bytes, then has for each row a line with its number of
values, and for each value a line with its number of bytes, the bytes, and a line end.
"""
import csv
import os
import random
import sys

PIECES = [",", ";", "\t", "|", " ", '"', "'", "\n", "a", "bc", "1.5", "-7", "NA", "é", "😀", ""]


def make_value(rng, pieces):
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(5)))


def dump(path, separator, quote, rows):
    with open(path, "wb") as out:
        out.write(b"%d %d\n" % (ord(separator), ord(quote)))
        for row in rows:
            out.write(b"%d\n" % len(row))
            for value in row:
                data = value.encode()
                out.write(b"%d\n%s\n" % (len(data), data))


def load(path):
    with open(path, "rb") as text:
        separator, quote = (chr(int(code)) for code in text.readline().split())
        rows = []
        for line in text:
            row = []
            for _ in range(int(line)):
                row.append(text.read(int(text.readline())).decode())
                text.readline()
            rows.append(row)
        return separator, quote, rows


def make(folder):
    for n in range(120):
        rng = random.Random(n)
        separator, quote = rng.choice(",;\t|"), rng.choice("\"'")
        end, quoting = rng.choice(["\n", "\r\n"]), rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        options = {"delimiter": separator, "quotechar": quote}
        # The writer does not quote a CR that is not part of its own line ends; its reader would then refuse it.
        pieces = PIECES + (["\r", "\r\n"] if quoting == csv.QUOTE_ALL or end == "\r\n" else [])
        path = os.path.join(folder, str(n))
        with open(path + ".csv", "w", newline="", encoding="utf-8-sig" if n % 5 == 0 else "utf-8") as out:
            writer = csv.writer(out, lineterminator=end, quoting=quoting, **options)
            columns = rng.randrange(2, 9)
            writer.writerows([make_value(rng, pieces) for _ in range(columns)] for _ in range(30))
        with open(path + ".csv", newline="", encoding="utf-8-sig") as text:
            dump(path + ".values", separator, quote, csv.reader(text, strict=True, **options))


def check(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".csv"))
    for name in names:
        path = os.path.join(folder, name)
        separator, quote, expected = load(path[:-4] + ".values")
        with open(path, newline="", encoding="utf-8") as text:
            seen = list(csv.reader(text, strict=True, delimiter=separator, quotechar=quote))
        if seen != expected:
            sys.exit(f"{name}: Python reads {seen!r}\nexpected {expected!r}")
    if not names:
        sys.exit("nothing to check")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2])
