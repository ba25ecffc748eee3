/* Distributions of masks: see masks.h.
 *
 * Drawing itself is in masks_row.h, as a GPU does it, too. */
#include "data/masks_row.h"

#include "device/cpu.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"bernoulli", "uniform", "marginal", "joint", "partial"};
#define KINDS ((int)(sizeof names / sizeof *names))

static bool has_p(acf_mask_kind kind) { return kind != ACF_MASK_UNIFORM && kind != ACF_MASK_JOINT; }

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* Where the reader stands. */
typedef struct reader {
    const char *text, *at;
} reader;

static void skip_spaces(reader *r) { r->at += strspn(r->at, " \t"); }

static bool take(reader *r, char c) {
    if (*r->at != c) return false;
    r->at++;
    return true;
}

/* "masks 'bernoulli:2': at '2': expected ..." */
static acf_status wrong(const reader *r, const char *expected) {
    char whole[ACF_EXCERPT_MAX], rest[ACF_EXCERPT_MAX];
    acf_text_excerpt(whole, r->text);
    if (!*r->at) return acf_fail(ACF_EUSAGE, "masks '%s': at the end: expected %s", whole, expected);
    return acf_fail(ACF_EUSAGE, "masks '%s': at '%s': expected %s", whole, acf_text_excerpt(rest, r->at), expected);
}

/* A number ends where no more of it can follow; the sign of an exponent is part of it, a '+' after that is not. */
static bool take_number(reader *r, double *out) {
    const char *digits = "0123456789.";
    size_t n = strspn(r->at, digits);
    if (n > 0 && (r->at[n] == 'e' || r->at[n] == 'E')) {
        n += 1;
        n += r->at[n] == '+' || r->at[n] == '-';
        n += strspn(r->at + n, digits);
    }
    char number[ACF_NUMBER_MAX];
    if (n == 0 || n >= sizeof number) return false;
    memcpy(number, r->at, n);
    number[n] = '\0';
    if (!acf_text_to_real(number, out)) return false;
    r->at += n;
    return true;
}

static acf_status take_part(reader *r, acf_mask_part *out) {
    size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
    int kind = 0;
    while (kind < KINDS && (strlen(names[kind]) != n || strncmp(names[kind], r->at, n) != 0)) kind++;
    if (kind == KINDS) return wrong(r, "bernoulli:P, uniform, marginal:P, partial:P or joint");
    r->at += n;
    acf_mask_part part = {.kind = (acf_mask_kind)kind, .weight = 1.0};
    if (has_p(part.kind)) {
        if (!take(r, ':')) return wrong(r, "':' and a probability, as in bernoulli:0.5");
        reader start = *r;
        if (!take_number(r, &part.p) || part.p > 1.0) return wrong(&start, "a probability from 0 to 1");
    }
    skip_spaces(r);
    if (take(r, '*')) {
        skip_spaces(r);
        reader start = *r;
        if (!take_number(r, &part.weight) || !(part.weight > 0.0 && part.weight <= 1e100))
            return wrong(&start, "a weight above 0, at most 1e100");
        skip_spaces(r);
    }
    *out = part;
    return ACF_OK;
}

acf_status acf_masks_parse(const char *text, acf_masks *out) {
    reader r = {text, text};
    acf_masks masks = {0};
    do {
        if (masks.n == ACF_MASKS_MAX)
            return acf_fail(ACF_EUSAGE, "masks: more than %d parts in one mixture", ACF_MASKS_MAX);
        skip_spaces(&r);
        ACF_TRY(take_part(&r, &masks.part[masks.n++]));
    } while (take(&r, '+'));
    if (*r.at) return wrong(&r, "'*' and a weight, '+' and another part, or the end");
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

/* ---- how much is modelled --------------------------------------------------------------------------------------- */

/* Mean and variance of the number of modelled cells of a complete row. */
static void moments(const acf_mask_part *p, double D, double *mean, double *var) {
    const double even = (D + 1) / 2, spread = (D * D - 1) / 12; /* of a number that is uniform on 1..D */
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

double acf_masks_room(const acf_masks *masks, int64_t N, int64_t D, int64_t part) {
    double mean = 0, square = 0, sum = 0;
    for (int k = 0; k < masks->n; k++) {
        const acf_mask_part *p = &masks->part[k];
        double m = 0, v = 0;
        moments(p, (double)D, &m, &v);
        mean += p->weight * m, square += p->weight * (v + m * m), sum += p->weight;
    }
    mean /= sum, square /= sum;
    /* Of some of the columns: a share of the row's number, and the chance of which ones they are, at most a quarter each. */
    const double share = (double)part / (double)D, var = (square - mean * mean) * share * share + 0.25 * (double)part;
    const double n = (double)N, most = n * mean * share + 5 * sqrt(n * var);
    return fmin(1, most / (n * (double)part));
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

void acf_masks_draw(const acf_device *dev, const acf_masks *masks, uint64_t seed, uint32_t draw, int64_t N, int64_t D,
                    const uint64_t *id, uint8_t *b, uint8_t *m) {
    ACF_PARALLEL(dev, N * D)
    for (int64_t i = 0; i < N; i++)
        acf_masks_row(masks, (acf_place){seed, id[i], ACF_STREAM_MASK, 0, draw}, D, b + i * D, m + i * D);
}
