#!/usr/bin/env python3
"""Draws docs/completed.png, the first picture of the README: the top of a table completed by `acflow impute`.

    pictures.py TABLE COMPLETED PICTURE [ROWS]

TABLE has missing cells; COMPLETED is what `acflow impute TABLE --intervals 90` wrote. Filled cells are coloured, with
the 90 % interval below the value. experiments/pictures.sh runs it. Needs libcairo, no Python package.
"""
import csv
import ctypes as c
import ctypes.util
import sys

COLUMNS = [("patient_id", 96), ("clinic", 96), ("age", 50), ("sex", 46), ("smoking", 88), ("health", 70), ("bmi", 92),
           ("blood_pressure", 128), ("hba1c", 80), ("cost", 130)]
LINE, HEAD, MARGIN, SCALE = 40, 40, 18, 1.5
INK, PALE, RULE, FILLED, WRITTEN = (.13, .13, .13), (.42, .42, .45), (.87, .88, .9), (1, .93, .78), (.55, .33, 0)

cairo = c.CDLL(ctypes.util.find_library("cairo") or "libcairo.so.2")
for name in ("cairo_image_surface_create", "cairo_create"):
    getattr(cairo, name).restype = c.c_void_p


class Canvas:
    def __init__(self, width, height):
        self.surface = c.c_void_p(cairo.cairo_image_surface_create(1, int(width * SCALE), int(height * SCALE)))
        self.cr = c.c_void_p(cairo.cairo_create(self.surface))
        self.call("cairo_scale", SCALE, SCALE)

    def call(self, name, *numbers):
        getattr(cairo, name)(self.cr, *[c.c_double(x) for x in numbers])

    def box(self, x, y, width, height, colour):
        self.call("cairo_set_source_rgb", *colour)
        self.call("cairo_rectangle", x, y, width, height)
        cairo.cairo_fill(self.cr)

    def text(self, x, y, words, size, colour, bold=False):
        cairo.cairo_select_font_face(self.cr, b"DejaVu Sans", 0, int(bold))
        self.call("cairo_set_font_size", size)
        self.call("cairo_set_source_rgb", *colour)
        self.call("cairo_move_to", x, y)
        cairo.cairo_show_text(self.cr, words.encode())

    def save(self, path):
        cairo.cairo_surface_write_to_png(self.surface, path.encode())


def main(table, completed, picture, rows=8):
    holes = list(csv.DictReader(open(table)))[:rows]
    done = list(csv.DictReader(open(completed)))[:rows]
    width = sum(w for _, w in COLUMNS) + 2 * MARGIN
    height = HEAD + LINE * len(holes) + 2 * MARGIN + 22
    page = Canvas(width, height)
    page.box(0, 0, width, height, (1, 1, 1))
    x = MARGIN
    for name, w in COLUMNS:
        page.text(x + 8, MARGIN + 24, name, 13, INK, bold=True)
        for i, (before, after) in enumerate(zip(holes, done)):
            y = MARGIN + HEAD + i * LINE
            page.box(x, y, w, 1, RULE)
            if before[name]:
                page.text(x + 8, y + 25, before[name], 13, INK)
                continue
            page.box(x + 1, y + 2, w - 2, LINE - 3, FILLED)
            ends = [after.get(f"{name}.{end}") for end in ("low", "high")]
            page.text(x + 8, y + (18 if ends[0] else 25), after[name], 13, WRITTEN, bold=True)
            if ends[0]:
                page.text(x + 8, y + 33, f"{ends[0]} to {ends[1]}", 10.5, PALE)
        x += w
    y = MARGIN + HEAD + len(holes) * LINE
    page.box(MARGIN, y, width - 2 * MARGIN, 1, RULE)
    page.box(MARGIN + 8, y + 12, 13, 13, FILLED)
    page.text(MARGIN + 28, y + 23, "missing in the table, filled in by acflow; below the value its 90 % interval", 12, PALE)
    page.save(picture)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:5]))
