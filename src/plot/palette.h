/* Colours. Series take the colours of Okabe and Ito, which readers with any common colour blindness can tell apart.
 * Each is paired with a dash pattern or a marker, and neighbours in the list differ in brightness, so a grey print is
 * readable too. */
#ifndef ACF_PLOT_PALETTE_H
#define ACF_PLOT_PALETTE_H

#include "plot/canvas.h"

#define ACF_HEX(rgb)                                                                                                   \
    { ((rgb) >> 16 & 255) / 255.0, ((rgb) >> 8 & 255) / 255.0, ((rgb)&255) / 255.0, 1 }

static const acf_ink ACF_INK_PAPER = ACF_HEX(0xffffff);
static const acf_ink ACF_INK_TEXT = ACF_HEX(0x222222);  /* titles and names */
static const acf_ink ACF_INK_QUIET = ACF_HEX(0x5f6368); /* tick labels, remarks; contrast 6 : 1 on white */
static const acf_ink ACF_INK_AXIS = ACF_HEX(0x9aa0a6);
static const acf_ink ACF_INK_GRID = ACF_HEX(0xe8eaed);
static const acf_ink ACF_INK_PALE = ACF_HEX(0xdfe7ee);  /* observed cells in a plot of missing cells */
static const acf_ink ACF_INK_DATA = ACF_HEX(0x0072b2);  /* observed values: blue */
static const acf_ink ACF_INK_MODEL = ACF_HEX(0xe69f00); /* predictions of the model: orange, much brighter */
static const acf_ink ACF_INK_MODEL_LINE =
    ACF_HEX(0xc46a00); /* the same for thin lines and dots, which need more contrast */
static const acf_ink ACF_INK_MISSING = ACF_HEX(0xb83a00); /* missing cells: dark vermilion */

#define ACF_SERIES_MAX 8

/* Colour of series k = 0, 1, ...; they repeat after ACF_SERIES_MAX. Its dash is k % ACF_SERIES_MAX. */
acf_ink acf_palette_series(int k);

/* A colour scale for quantities, t in [0,1]: from pale blue to nearly black, with evenly falling brightness; NaN is
 * 0. */
acf_ink acf_palette_scale(double t);

/* Brightness of an ink on white, from 0 black to 1 white, as in a grey print. */
double acf_ink_brightness(acf_ink ink);

/* The same ink, less opaque. */
acf_ink acf_ink_faded(acf_ink ink, double alpha);

#endif
