/* Counter-based random numbers: a value depends on where it is used, not on when it is drawn.
 *
 * Philox4x32-10 (Random123) maps a key (the seed) and a counter (stream, row, column, draw) to 128 random bits. So the
 * same cell gets the same draw for any thread count, batch split, row order or shard, on CPU and GPU alike, and one row
 * can be computed again alone.
 *
 *     counter word 0   row, low 32 bits
 *     counter word 1   row, high 16 bits | stream, 16 bits
 *     counter word 2   column
 *     counter word 3   draw */
#ifndef ACF_BASE_RNG_H
#define ACF_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* One stream per purpose, so that no two uses share a counter. A seed depends on these numbers: append, never
 * renumber. */
typedef enum acf_stream_id {
    ACF_STREAM_INIT = 1,      /* parameter initialisation */
    ACF_STREAM_MASK,          /* which columns are observed */
    ACF_STREAM_SHUFFLE,       /* row order of an epoch */
    ACF_STREAM_COMPONENT = 5, /* mixture component of a sample */
    ACF_STREAM_NORMAL,        /* Gaussian noise of a sample */
    ACF_STREAM_CATEGORY,      /* category of a sample */
    ACF_STREAM_NOISE,         /* dequantisation */
    ACF_STREAM_SPLIT,         /* train, validation, test */
    ACF_STREAM_SYNTH,         /* generated tables */
    ACF_STREAM_HIDE,          /* cells that an evaluation hides, and its targets */
    ACF_STREAM_BASELINE,      /* draws of the linear baseline */
    ACF_STREAM_CLUSTER,       /* initial centres of clusters */
    ACF_STREAM_FEATURE,       /* batches and noise of a feature network */
    ACF_STREAM_MEMBER,        /* seeds of ensemble members, and the member of a draw */
    ACF_STREAM_DONOR_DRAW,    /* cells taken from donors */
    ACF_STREAM_DONORS,        /* rows that donors are learned from */
    ACF_STREAM_LEVEL,         /* the level that is written for a class of several levels */
    ACF_STREAM_AUGMENT,       /* imputed cells of parameter draws */
    ACF_STREAM_POSTERIOR,     /* parameter draws */
    ACF_STREAM_ORDER,         /* order of a row's cells in a sequence */
    ACF_STREAM_TEST = 0x7fff,
    ACF_STREAM_DROPOUT = 0x8000 /* and the 4095 that follow: one stream for each dropout site of a model */
} acf_stream_id;

/* The counter of a random number. row < 2^48, stream < 2^16. */
typedef struct acf_rng_counter {
    uint64_t seed;
    uint64_t row;
    uint32_t stream, column, draw;
} acf_rng_counter;

/* The 128 bits of a counter. */
void acf_rng_bits(acf_rng_counter at, uint32_t out[4]);

/* The first n words of the blocks at columns at.column, at.column + 1, ...: the same bits, sixteen blocks at a time in
 * vector registers, about seven times as fast. */
void acf_rng_words(acf_rng_counter at, int64_t n, uint32_t *out);

/* Uniform on the open interval (0, 1): one of 2^52 equally spaced values, symmetric about 1/2. */
double acf_rng_uniform(acf_rng_counter at);

/* Standard normal, by Box-Muller on the two halves of the 128 bits; |value| < 8.7. */
double acf_rng_normal(acf_rng_counter at);

/* Index k with probability weight[k] / sum(weight), n >= 1; weights >= 0, not all zero. -1 if their sum is zero or not
 * finite. */
int64_t acf_rng_categorical(acf_rng_counter at, const double *weight, int64_t n);

/* Uniform integer in [0, n), n >= 1, with negligible modulo bias (n < 2^32: bias below 2^-32). */
int64_t acf_rng_below(acf_rng_counter at, int64_t n);

/* Turns 64 bits into a uniform on (0, 1): never 0, never 1. */
double acf_rng_unit(uint32_t lo, uint32_t hi);

/* A stable 48-bit hash of a name. It keys the initial values of a parameter, so that adding one does not change
 * others. */
uint64_t acf_rng_name(const char *name);
/* The same for n bytes; keys a row by the text of its id. */
uint64_t acf_rng_bytes(const char *text, size_t n);

#endif
