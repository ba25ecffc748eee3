/* Draws which of the present columns of a row are given and which are modelled: the distributions of b and m'
 * in training and evaluation.
 *
 *     name           given (b = 1)                                             the rest
 *     bernoulli:P    each present cell with probability P                      modelled
 *     uniform        k of the n present cells, k uniform on 0..n-1             modelled
 *     marginal:P     none; cells that bernoulli:P would give become missing    modelled
 *     joint          none                                                      all modelled
 *     partial:P      as uniform                                                one modelled, drawn uniformly; each
 *                                                                             other missing with probability P, else
 *                                                                             modelled
 *
 * and mixtures, from which every row chooses one part by weight: "bernoulli:0.5*2 + uniform*1".
 *
 * Guaranteed for every row: b = 1 only where m = 1, and at least one column is modelled if one is present. If a draw
 * models none, one present column, drawn uniformly, is modelled; so bernoulli:1 leaves one out, and marginal:1
 * models single columns. The masks of a row depend on (seed, row id, draw) and its present cells. They do not depend
 * on the batch, the position in it, or the number of threads. */
#ifndef ACF_TABLE_MASKS_H
#define ACF_TABLE_MASKS_H

#include "base/rng.h"
#include "base/text.h"
#include "device/device.h"

#define ACF_MASKS_MAX 16

typedef enum acf_mask_kind {
    ACF_MASK_BERNOULLI,
    ACF_MASK_UNIFORM,
    ACF_MASK_MARGINAL,
    ACF_MASK_JOINT,
    ACF_MASK_PARTIAL
} acf_mask_kind;

typedef struct acf_mask_part {
    acf_mask_kind kind;
    double p;      /* of bernoulli, marginal and partial, 0..1; else 0 */
    double weight; /* above 0, at most 1e100: sums of weights stay finite */
} acf_mask_part;

typedef struct acf_masks {
    int n; /* 1..ACF_MASKS_MAX */
    acf_mask_part part[ACF_MASKS_MAX];
} acf_masks;

/* Reads the text form: parts NAME or NAME:P, optionally followed by *WEIGHT (default 1), joined by '+'. Spaces are
 * allowed around '+' and '*'. Fails: ACF_EUSAGE; the message shows the position and what was expected. */
acf_status acf_masks_parse(const char *text, acf_masks *out);

/* An upper bound for planning: the share of the cells of N rows that is modelled, among `part` of a table's D
 * columns. Five standard deviations above the mean of complete rows (missing cells are not modelled): one batch in a
 * million has more. */
double acf_masks_capacity(const acf_masks *masks, int64_t N, int64_t D, int64_t part);

/* Writes the text form, which parses back to the same masks; weights of 1 are omitted. */
void acf_masks_write(const acf_masks *masks, acf_text *out);

/* Draws masks for N rows of D columns, id (N) their global row numbers. On entry m (N,D) marks the present cells
 * (zero or not); on return it is m', 0 or 1. b (N,D) is written. draw is the step or epoch: each gives new masks.
 * Host memory; uses the threads of the CPU device. */
void acf_masks_draw(const acf_device *dev, const acf_masks *masks, uint64_t seed, uint32_t draw, int64_t N, int64_t D,
                    const uint64_t *id, uint8_t *b, uint8_t *m);

#endif
