/* A random order computed on demand, without an array: see permute.h. */
#include "table/permute.h"

acf_permutation acf_permutation_identity(int64_t n) { return (acf_permutation){.n = n}; }

acf_permutation acf_permutation_make(int64_t n, uint64_t seed, acf_stream_id stream, uint32_t draw) {
    acf_permutation p = {.n = n};
    if (n < 2) return p;
    int bits = 64 - __builtin_clzll((unsigned long long)n - 1);
    if (bits < 2) bits = 2; /* each half needs at least one bit */
    p.low = bits / 2;
    p.high = bits - p.low;
    p.rounds = bits <= 16 ? ACF_PERMUTE_ROUNDS : 8;
    acf_rng_counter at = {seed, (uint64_t)n, (uint32_t)stream, 0x80000000u, draw};
    acf_rng_words(at, p.rounds, p.key);
    return p;
}
