/* Which of the present columns of a row are given and which are modelled: the distributions that training and
 * evaluation draw b and m' from.
 *
 *     name           given (b = 1)                                             the rest
 *     bernoulli:P    each present cell with probability P                      modelled
 *     uniform        k of the n present cells, k uniform on 0..n-1             modelled
 *     marginal:P     none; what bernoulli:P would give counts as missing       modelled
 *     joint          none                                                      all modelled
 *     partial:P      as uniform                                                one modelled, drawn uniformly; each other missing with
 *                                                                              probability P, else modelled
 *
 * and mixtures, from which every row chooses one part by weight: "bernoulli:0.5*2 + uniform*1".
 *
 * Promised for every row: b only where m = 1; at least one column modelled where one is present (where a draw models
 * none, one present column, drawn uniformly, is modelled after all; so bernoulli:1 leaves one out, and marginal:1 asks
 * for single columns). What a row gets is a function of (seed, row id, draw) and of which cells it has: not of the
 * batch it is in, its place there, or the number of threads. */
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

/* Reads the text form: parts NAME, NAME:P, either followed by *WEIGHT (1 when left out), joined by '+'; spaces are
 * allowed around '+' and '*'. Fails: ACF_EUSAGE with a sentence that shows the place and what was expected. */
acf_status acf_masks_parse(const char *text, acf_masks *out);

/* What part of the cells of N rows is modelled at most: of `part` of a table's D columns. A bound for planning, five standard deviations above the mean of
 * complete rows (a missing cell is not modelled): one batch in a million has more. */
double acf_masks_capacity(const acf_masks *masks, int64_t N, int64_t D, int64_t part);

/* Writes the text form, which parses back to the same masks; weights of 1 are left out. */
void acf_masks_write(const acf_masks *masks, acf_text *out);

/* Draws masks for N rows of D columns, id (N) their global row numbers. m (N,D) says on entry which cells are present
 * (zero or not), on return m', 0 or 1; b (N,D) is written. draw is the step or epoch: the next one gives new masks.
 * Host memory; the CPU device lends its threads. */
void acf_masks_draw(const acf_device *dev, const acf_masks *masks, uint64_t seed, uint32_t draw, int64_t N, int64_t D,
                    const uint64_t *id, uint8_t *b, uint8_t *m);

#endif
