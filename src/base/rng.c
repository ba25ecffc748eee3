/* Counter-based random numbers: see rng.h. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

/* The counter as drawn in rng.h. Row and stream share a word, so a row has 48 bits: enough for five hundred years of a
 * million rows a minute. */
void acf_rng_bits(acf_rng_counter at, uint32_t out[4]) {
    uint32_t high = (uint32_t)(at.row >> 32 & 0xffff) << 16 | (at.stream & 0xffff);
    philox4x32_ctr_t ctr = {{(uint32_t)at.row, high, at.column, at.draw}};
    philox4x32_key_t key = {{(uint32_t)at.seed, (uint32_t)(at.seed >> 32)}};
    philox4x32_ctr_t bits = philox4x32(ctr, key);
    for (int i = 0; i < 4; i++) out[i] = bits.v[i];
}

#define LANES 16

/* Philox4x32-10 on LANES neighbouring columns. It is written out because compilers vectorise over lanes only within one
 * loop; the constants are Random123's. */
static void philox_lanes(acf_rng_counter at, uint32_t out[4 * LANES]) {
    uint32_t a[LANES], b[LANES], c[LANES], d[LANES], key0 = (uint32_t)at.seed, key1 = (uint32_t)(at.seed >> 32);
    for (uint32_t i = 0; i < LANES; i++) {
        a[i] = (uint32_t)at.row;
        b[i] = (uint32_t)(at.row >> 32 & 0xffff) << 16 | (at.stream & 0xffff);
        c[i] = at.column + i;
        d[i] = at.draw;
    }
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            uint64_t x = (uint64_t)a[i] * 0xD2511F53u, y = (uint64_t)c[i] * 0xCD9E8D57u;
            a[i] = (uint32_t)(y >> 32) ^ b[i] ^ key0;
            b[i] = (uint32_t)y;
            c[i] = (uint32_t)(x >> 32) ^ d[i] ^ key1;
            d[i] = (uint32_t)x;
        }
    }
    for (int i = 0; i < LANES; i++)
        out[4 * i] = a[i], out[4 * i + 1] = b[i], out[4 * i + 2] = c[i], out[4 * i + 3] = d[i];
}

void acf_rng_words(acf_rng_counter at, int64_t n, uint32_t *out) {
    for (; n >= 4 * LANES; n -= 4 * LANES, out += 4 * LANES, at.column += LANES) philox_lanes(at, out);
    if (n == 0) return;
    uint32_t rest[4 * LANES];
    if (n <= 4)
        acf_rng_bits(at, rest);
    else
        philox_lanes(at, rest);
    memcpy(out, rest, (size_t)n * sizeof *out);
}

double acf_rng_unit(uint32_t lo, uint32_t hi) {
    uint64_t bits = ((uint64_t)hi << 32 | lo) >> 12; /* 52 bits and a half: exact, and symmetric about 1/2 */
    return ((double)bits + 0.5) * 0x1p-52;
}

double acf_rng_uniform(acf_rng_counter at) {
    uint32_t w[4];
    acf_rng_bits(at, w);
    return acf_rng_unit(w[0], w[1]);
}

/* Only the cosine half is used: the sine would be a second value of the same counter. */
double acf_rng_normal(acf_rng_counter at) {
    uint32_t w[4];
    acf_rng_bits(at, w);
    double radius = sqrt(-2.0 * log(acf_rng_unit(w[0], w[1])));
    return radius * cos(2.0 * 3.14159265358979323846 * acf_rng_unit(w[2], w[3]));
}

/* One pass to sum, one to find: K is small (tens), and a cumulative table would need memory. */
int64_t acf_rng_categorical(acf_rng_counter at, const double *weight, int64_t n) {
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
    return last; /* the sum was rounded: the last category with a positive weight */
}

int64_t acf_rng_below(acf_rng_counter at, int64_t n) {
    int64_t k = (int64_t)(acf_rng_uniform(at) * (double)n);
    return k < n ? k : n - 1;
}

uint64_t acf_rng_bytes(const char *text, size_t n) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, folded to the 48 bits of a row */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (h ^ h >> 48) & 0xffffffffffffu;
}

uint64_t acf_rng_name(const char *name) { return acf_rng_bytes(name, strlen(name)); }
