/* An exact, monotone map between the levels of an image's channels and the real numbers, level by level (docs/math.md,
 * Encoding of images).
 *
 *     level k = 0 .. 2^n - 1, u in (0,1), v = k + u        y = centre[k] + spread[k] Q(lo[k] + width[k] u)
 *
 * Q is a quantile function; the noise within a level becomes a piece of Q's distribution.
 *
 *     uniform-logit    Q is logistic, lo + width u = alpha + (1 - 2 alpha) v / 2^n: the same for all images
 *     gaussian         Q is normal, fitted to the frequency of each level. A level of many pixels (a spike), such as
 *                      the black of a drawing, gets a Gaussian of its own. Its noise is then Gaussian and not uniform,
 *                      which the densities behind the map can fit. All levels between two spikes share a Gaussian and
 *                      divide its quantiles by their frequencies. Without a spike there is one Gaussian, and y are the
 *                      normal scores of the levels.
 *
 *                 spike                shared
 *                  _                    ____
 *            _____/ \_____|________----      ----_________         side by side: E = reach spreads from a centre to an
 *                 level 0 |    levels 1, 2, ...  255               inner edge, unbounded outwards, so that every real
 *                                                                  number belongs to a level
 *
 * Both maps are invertible: log p(v) = log p(y) + log dy/dv. */
#ifndef ACF_IMAGE_IMAGE_MAP_H
#define ACF_IMAGE_IMAGE_MAP_H

#include "base/arena.h"
#include "base/json.h"
#include "base/real.h"
#include "ops/polyline.h"

#define ACF_IMAGE_ALPHA 0.05
#define ACF_IMAGE_LEVELS 256 /* at most */

typedef enum acf_image_map_kind {
    ACF_IMAGE_LOGIT,
    ACF_IMAGE_DEQUANTISER
} acf_image_map_kind; /* as the choices of the option image-map */

/* The parameters of a Gaussian dequantisation, as stored in a model file. Any positive and finite values make a map. */
typedef struct acf_image_dequantiser {
    int n;                           /* number of Gaussians, from the darkest levels to the brightest */
    double reach;                    /* E */
    double centre;                   /* of the first Gaussian */
    int levels[ACF_IMAGE_LEVELS];    /* (n) of each Gaussian, at least 1; their sum is 2^bits */
    double spread[ACF_IMAGE_LEVELS]; /* (n) */
    double weight[ACF_IMAGE_LEVELS]; /* (2^bits): the levels of a Gaussian divide it in these proportions */
} acf_image_dequantiser;

/* Constant after creation; any number of threads may read. Tables are by level. */
typedef struct acf_image_map {
    acf_image_map_kind kind;
    int bits;                          /* 1..8 */
    acf_image_dequantiser dequantiser; /* of a Gaussian dequantisation */
    double centre[ACF_IMAGE_LEVELS], spread[ACF_IMAGE_LEVELS], lo[ACF_IMAGE_LEVELS], width[ACF_IMAGE_LEVELS];
    double log_step[ACF_IMAGE_LEVELS];                        /* log (spread width) */
    double edge[ACF_IMAGE_LEVELS];                            /* where the level begins in y; -INFINITY for the first */
    acf_real first[ACF_IMAGE_LEVELS], last[ACF_IMAGE_LEVELS]; /* the least and the largest acf_real of the level */
    acf_real middle[ACF_IMAGE_LEVELS];                        /* y for u = 1/2 */
} acf_image_map;

/* Gives *out; free with acf_release. Fails: ACF_EMEMORY, ACF_EUSAGE (Gaussian: a level so narrow that it contains no
 * number). */
acf_status acf_image_map_uniform_logit(int bits, acf_image_map **out);
acf_status acf_image_map_gaussian(int bits, const acf_image_dequantiser *dequantiser, acf_image_map **out);

/* Copies a map. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_image_map_copy(const acf_image_map *m, acf_image_map **out);

/* Fits the Gaussians to images in which level k occurs count[k] times, scaled so that y has mean 0 and deviation 1. */
void acf_image_dequantiser_fit(int bits, const int64_t *count, acf_image_dequantiser *out);

/* {"reach", "centre", "levels", "spread", "weight"}, as above. Gives *out (json_decref). Reading validates
 * everything and writes out only on success. Fails: ACF_EMEMORY; from.status. */
acf_status acf_image_dequantiser_to_json(const acf_image_dequantiser *b, int bits, json_t **out);
acf_status acf_image_dequantiser_from_json(acf_json_source from, const json_t *object, int bits,
                                           acf_image_dequantiser *out);

/* y for level k and 0 < u < 1; *slope = log dy/dv. */
double acf_image_map_at(const acf_image_map *m, int k, double u, double *slope);

/* The same, rounded to an acf_real that belongs to level k, even near its edge. */
static inline acf_real acf_image_map_real(const acf_image_map *m, int k, double y) {
    const acf_real r = (acf_real)y;
    return r < m->first[k] ? m->first[k] : r > m->last[k] ? m->last[k] : r;
}

/* The level of y; NaN gives 0. */
int acf_image_map_level(const acf_image_map *m, double y);

/* The knots with which a network decodes its guesses for a differentiable error: (v - 1/2) / (2^n - 1), linear
 * between the middles of levels, in units of the full range. Within a spike the derivative of acf_image_map_back
 * nearly vanishes, so guesses could not leave it. For guesses of a Gaussian map a tenth of a straight line from the
 * first level to the last is therefore added; not for the truth. */
void acf_image_map_knots(const acf_image_map *m, bool guess, acf_knots *out);

/* v = k + u of y, in 0 .. 2^n. */
double acf_image_map_back(const acf_image_map *m, double y);

#endif
