/* Between the levels of an image's channels and the real numbers: an exact, monotone map, level by level (docs/math.md, Encoding of images).
 *
 *     level k = 0 .. 2^n - 1, u in (0,1), v = k + u        y = centre[k] + spread[k] Q(lo[k] + width[k] u)
 *
 * Q is a quantile function; what is noise within a level becomes a piece of Q's distribution.
 *
 *     logit    Q the logistic one, lo + width u = alpha + (1 - 2 alpha) v / 2^n: the same for any images
 *     bells    Q the normal one, fitted to how often each level occurs. A level that many pixels have, such as the black of a drawing, gets a bell
 *              of its own: its noise is a Gaussian, which is what densities behind it are made of, and not a box, which none of them fits. All
 *              levels between two such spikes share a bell: they divide its quantiles by how often they occur. Without a spike there is one bell
 *              and y are the normal scores of the levels.
 *
 *                 spike                shared
 *                  _                    ____
 *            _____/ \_____|________----      ----_________         side by side: E = reach spreads from a centre to an inner edge,
 *                 level 0 |    levels 1, 2, ...  255               for ever outwards, so that all real numbers belong to a level
 *
 * Both are onto the real numbers that can be reached and lose nothing: log p(v) = log p(y) + log dy/dv. */
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

/* What a map of bells is made of, which is what a model file holds. Whatever is positive and finite makes a map. */
typedef struct acf_image_dequantiser {
    int n;                           /* bells, from the darkest levels to the brightest */
    double reach;                    /* E */
    double centre;                   /* of the first bell */
    int levels[ACF_IMAGE_LEVELS];    /* (n) of each bell, at least 1; their sum is 2^bits */
    double spread[ACF_IMAGE_LEVELS]; /* (n) */
    double weight[ACF_IMAGE_LEVELS]; /* (2^bits): the levels of a bell share it in these proportions */
} acf_image_dequantiser;

/* Nothing changes after creation; any number of threads may read. Tables are by level. */
typedef struct acf_image_map {
    acf_image_map_kind kind;
    int bits;                          /* 1..8 */
    acf_image_dequantiser dequantiser; /* of such a map */
    double centre[ACF_IMAGE_LEVELS], spread[ACF_IMAGE_LEVELS], lo[ACF_IMAGE_LEVELS], width[ACF_IMAGE_LEVELS];
    double log_step[ACF_IMAGE_LEVELS];                        /* log (spread width) */
    double edge[ACF_IMAGE_LEVELS];                            /* where the level begins in y; -infinity for the first */
    acf_real first[ACF_IMAGE_LEVELS], last[ACF_IMAGE_LEVELS]; /* the least and the largest acf_real that belong to it */
    acf_real middle[ACF_IMAGE_LEVELS];                        /* y of u = 1/2 */
} acf_image_map;

/* Gives *out; free with acf_release. Fails: ACF_EMEMORY, ACF_EUSAGE (bells: a level so narrow that no number belongs to it). */
acf_status acf_image_map_uniform_logit(int bits, acf_image_map **out);
acf_status acf_image_map_gaussian(int bits, const acf_image_dequantiser *dequantiser, acf_image_map **out);

/* Another one like it. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_image_map_copy(const acf_image_map *m, acf_image_map **out);

/* The bells for images in which level k occurs count[k] times, scaled so that their pixels have mean 0 and deviation 1. */
void acf_image_dequantiser_fit(int bits, const int64_t *count, acf_image_dequantiser *out);

/* {"reach", "centre", "levels", "spread", "weight"}, as above. Gives *out (json_decref). Reading trusts nothing: out is written on success.
 * Fails: ACF_EMEMORY; from.status. */
acf_status acf_image_dequantiser_to_json(const acf_image_dequantiser *b, int bits, json_t **out);
acf_status acf_image_dequantiser_from_json(acf_json_source from, const json_t *object, int bits,
                                           acf_image_dequantiser *out);

/* y of level k and 0 < u < 1; *slope = log dy/dv. */
double acf_image_map_at(const acf_image_map *m, int k, double u, double *slope);

/* The same, rounded to a number that belongs to level k, however near to its edge it is. */
static inline acf_real acf_image_map_real(const acf_image_map *m, int k, double y) {
    const acf_real r = (acf_real)y;
    return r < m->first[k] ? m->first[k] : r > m->last[k] ? m->last[k] : r;
}

/* The level that y belongs to; NaN gives 0. */
int acf_image_map_level(const acf_image_map *m, double y);

/* What a network decodes its guesses with, where the error is to have a derivative: (v - 1/2) / (2^n - 1), straight between the middles of levels, in
 * units of the full range. Within a level of acf_image_map_back, whose derivative nearly vanishes in a spike: guesses that fell into one would
 * never come out. So for guesses of bells a tenth of a straight line from the first level to the last is mixed in; not for the truth. */
void acf_image_map_knots(const acf_image_map *m, bool guess, acf_knots *out);

/* v = k + u of y, within 0 .. 2^n. */
double acf_image_map_back(const acf_image_map *m, double y);

#endif
