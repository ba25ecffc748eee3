/* Distributions of masks: see masks.h. The draws are in masks_row.h, shared with the GPU. */
#include "table/masks_row.h"

#include "device/cpu.h"
#include "table/mask_reader.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"bernoulli", "uniform", "marginal", "joint", "partial"};
#define KINDS ((int)(sizeof names / sizeof *names))

static bool has_p(acf_mask_kind kind) { return kind != ACF_MASK_UNIFORM && kind != ACF_MASK_JOINT; }

/* ---- text -------------------------------------------------------------------------------------------------------- */

static acf_status take_part(acf_mask_reader *r, acf_mask_part *out) {
    const int kind = acf_mask_take_name(r, names, KINDS);
    if (kind < 0) return acf_mask_wrong(r, "bernoulli:P, uniform, marginal:P, partial:P or joint");
    acf_mask_part part = {.kind = (acf_mask_kind)kind};
    if (has_p(part.kind)) {
        if (!acf_mask_take(r, ':')) return acf_mask_wrong(r, "':' and a probability, as in bernoulli:0.5");
        acf_mask_reader start = *r;
        if (!acf_mask_take_number(r, &part.p) || part.p > 1.0)
            return acf_mask_wrong(&start, "a probability from 0 to 1");
    }
    ACF_TRY(acf_mask_take_weight(r, &part.weight));
    *out = part;
    return ACF_OK;
}

acf_status acf_masks_parse(const char *text, acf_masks *out) {
    acf_mask_reader r = {text, text};
    acf_masks masks = {0};
    do {
        if (masks.n == ACF_MASKS_MAX)
            return acf_fail(ACF_EUSAGE, "masks: more than %d parts in one mixture", ACF_MASKS_MAX);
        acf_mask_skip_spaces(&r);
        ACF_TRY(take_part(&r, &masks.part[masks.n++]));
    } while (acf_mask_take(&r, '+'));
    if (*r.at) return acf_mask_wrong(&r, "'*' and a weight, '+' and another part, or the end");
    *out = masks;
    return ACF_OK;
}

void acf_masks_write(const acf_masks *masks, acf_text *out) {
    char number[ACF_NUMBER_MAX];
    for (int k = 0; k < masks->n; k++) {
        const acf_mask_part *part = &masks->part[k];
        acf_text_addf(out, "%s%s", k > 0 ? " + " : "", names[part->kind]);
        if (has_p(part->kind)) acf_text_addf(out, ":%s", acf_text_real(number, part->p));
        if (part->weight != 1.0) acf_text_addf(out, "*%s", acf_text_real(number, part->weight));
    }
}

/* ---- share of modelled cells ------------------------------------------------------------------------------------- */

/* Mean and variance of the number of modelled cells of a complete row. */
static void moments(const acf_mask_part *p, double D, double *mean, double *var) {
    const double even = (D + 1) / 2, spread = (D * D - 1) / 12; /* of a number uniform on 1..D */
    switch (p->kind) {
    case ACF_MASK_BERNOULLI:
    case ACF_MASK_MARGINAL: *mean = D * (1 - p->p) + pow(p->p, D), *var = D * p->p * (1 - p->p); break;
    case ACF_MASK_UNIFORM: *mean = even, *var = spread; break;
    case ACF_MASK_JOINT: *mean = D, *var = 0; break;
    case ACF_MASK_PARTIAL:
        *mean = 1 + (even - 1) * (1 - p->p);
        *var = (even - 1) * p->p * (1 - p->p) + (1 - p->p) * (1 - p->p) * spread;
        break;
    }
}

double acf_masks_capacity(const acf_masks *masks, int64_t N, int64_t D, int64_t part) {
    double mean = 0, square = 0, sum = 0;
    for (int k = 0; k < masks->n; k++) {
        const acf_mask_part *p = &masks->part[k];
        double m = 0, v = 0;
        moments(p, (double)D, &m, &v);
        mean += p->weight * m, square += p->weight * (v + m * m), sum += p->weight;
    }
    mean /= sum, square /= sum;
    /* For some of the columns: a share of the row's number. The variance of which columns these are is at most a
     * quarter each. */
    const double share = (double)part / (double)D, var = (square - mean * mean) * share * share + 0.25 * (double)part;
    const double n = (double)N, most = n * mean * share + 5 * sqrt(n * var);
    return fmin(1, most / (n * (double)part));
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

void acf_masks_draw(const acf_device *dev, const acf_masks *masks, uint64_t seed, uint32_t draw, int64_t N, int64_t D,
                    const uint64_t *id, uint8_t *b, uint8_t *m) {
    ACF_PARALLEL(dev, N * D)
    for (int64_t i = 0; i < N; i++)
        acf_masks_row(masks, (acf_rng_counter){seed, id[i], ACF_STREAM_MASK, 0, draw}, D, b + i * D, m + i * D);
}
