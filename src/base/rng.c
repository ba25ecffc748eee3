/* Counter-based random numbers: see rng.h. */
#include "base/rng.h"

#include <math.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

/* The counter as drawn in rng.h. Row and stream share a word, so a row has 48 bits: five hundred years of a million
 * rows a minute would not use them up. */
void acf_rng_bits(acf_place at, uint32_t out[4]) {
    uint32_t high = (uint32_t)(at.row >> 32 & 0xffff) << 16 | (at.stream & 0xffff);
    philox4x32_ctr_t ctr = {{(uint32_t)at.row, high, at.column, at.draw}};
    philox4x32_key_t key = {{(uint32_t)at.seed, (uint32_t)(at.seed >> 32)}};
    philox4x32_ctr_t bits = philox4x32(ctr, key);
    for (int i = 0; i < 4; i++) out[i] = bits.v[i];
}

double acf_rng_unit(uint32_t lo, uint32_t hi) {
    uint64_t bits = ((uint64_t)hi << 32 | lo) >> 12; /* 52 bits and a half: exact, and symmetric about 1/2 */
    return ((double)bits + 0.5) * 0x1p-52;
}

double acf_rng_uniform(acf_place at) {
    uint32_t w[4];
    acf_rng_bits(at, w);
    return acf_rng_unit(w[0], w[1]);
}

/* Only the cosine half is used: the sine would be a second value of the same place, and nobody has a name for it. */
double acf_rng_normal(acf_place at) {
    uint32_t w[4];
    acf_rng_bits(at, w);
    double radius = sqrt(-2.0 * log(acf_rng_unit(w[0], w[1])));
    return radius * cos(2.0 * 3.14159265358979323846 * acf_rng_unit(w[2], w[3]));
}

/* One pass to sum, one to find: K is small (tens), and a cumulative table would need memory. */
int64_t acf_rng_categorical(acf_place at, const double *weight, int64_t n) {
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += weight[k];
    if (!(sum > 0.0) || !isfinite(sum)) return -1;
    double left = acf_rng_uniform(at) * sum;
    int64_t last = -1;
    for (int64_t k = 0; k < n; k++) {
        if (weight[k] <= 0.0) continue;
        last = k;
        left -= weight[k];
        if (left < 0.0) return k;
    }
    return last; /* rounding left a crumb: the last category that can happen */
}

int64_t acf_rng_below(acf_place at, int64_t n) {
    int64_t k = (int64_t)(acf_rng_uniform(at) * (double)n);
    return k < n ? k : n - 1;
}

uint64_t acf_rng_name(const char *name) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, folded to the 48 bits a row has */
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return (h ^ h >> 48) & 0xffffffffffffu;
}
