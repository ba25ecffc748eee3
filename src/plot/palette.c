/* Colours: see palette.h. */
#include "plot/palette.h"

#include <math.h>

/* Dark and bright colours alternate. */
acf_ink acf_palette_series(int k) {
    static const acf_ink series[ACF_SERIES_MAX] = {ACF_HEX(0x0072b2), ACF_HEX(0xe69f00), ACF_HEX(0x222222),
                                                   ACF_HEX(0x56b4e9), ACF_HEX(0xd55e00), ACF_HEX(0xcc79a7),
                                                   ACF_HEX(0x009e73), ACF_HEX(0xb5ab00)};
    return series[(k % ACF_SERIES_MAX + ACF_SERIES_MAX) % ACF_SERIES_MAX];
}

/* Linear interpolation between five colours whose brightness falls in equal steps. */
acf_ink acf_palette_scale(double t) {
    static const acf_ink stop[] = {ACF_HEX(0xd6e6f4), ACF_HEX(0x8fbfe0), ACF_HEX(0x3f8fc5), ACF_HEX(0x13559b),
                                   ACF_HEX(0x0b1f4b)};
    enum { LAST = sizeof stop / sizeof *stop - 1 };
    t = t >= 0 ? fmin(t, 1) : 0;
    const int k = (int)fmin(t * LAST, LAST - 1);
    const double part = t * LAST - k;
    const acf_ink a = stop[k], b = stop[k + 1];
    return (acf_ink){a.red + part * (b.red - a.red), a.green + part * (b.green - a.green),
                     a.blue + part * (b.blue - a.blue), 1};
}

double acf_ink_brightness(acf_ink ink) {
    const double grey = 0.299 * ink.red + 0.587 * ink.green + 0.114 * ink.blue;
    return 1 - ink.alpha * (1 - grey);
}

acf_ink acf_ink_faded(acf_ink ink, double alpha) {
    ink.alpha *= alpha;
    return ink;
}
