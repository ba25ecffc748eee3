/* Distributions of masks: see masks.h.
 *
 * One 32-bit word a cell, four columns to a block of the generator, and one block a row, at a column no table has, for
 * what concerns the whole row. A row of 20 columns costs some 150 ns. */
#include "data/masks.h"

#include "device/cpu.h"

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

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

#define ROW_COLUMN 0x80000000u /* the block of a whole row: beyond every column */
#define DROP_COLUMN 0x40000000u /* the blocks that say which cells become missing: beyond every column, too */
#define WORDS 64               /* cells drawn at a time: what the vector form of the generator makes in one go */

/* A 32-bit word as an integer in [0, n), n < 2^31: its place on [0, 1) times n. */
static int64_t scaled(uint32_t word, int64_t n) { return (int64_t)((uint64_t)word * (uint64_t)n >> 32); }

/* Chooses a part by weight with the first two words of the row's block. */
static const acf_mask_part *choose(const acf_masks *masks, const uint32_t row[4]) {
    double sum = 0.0;
    for (int k = 0; k < masks->n; k++) sum += masks->part[k].weight;
    double left = acf_rng_unit(row[0], row[1]) * sum;
    for (int k = 0; k < masks->n - 1; k++) {
        left -= masks->part[k].weight;
        if (left < 0.0) return &masks->part[k];
    }
    return &masks->part[masks->n - 1];
}

/* b (D): each present cell with probability p. Returns how many. 2^32 p as an integer makes p = 1 certain. */
static int64_t give_bernoulli(acf_place at, double p, int64_t D, uint8_t *b, const uint8_t *m) {
    uint64_t below = (uint64_t)(p * 0x1p32);
    uint32_t words[WORDS];
    int64_t given = 0;
    for (int64_t j0 = 0; j0 < D; j0 += WORDS) {
        int64_t n = acf_min(WORDS, D - j0);
        at.column = (uint32_t)(j0 / 4);
        acf_rng_words(at, n, words);
        for (int64_t j = 0; j < n; j++) {
            b[j0 + j] = m[j0 + j] & (words[j] < below);
            given += b[j0 + j];
        }
    }
    return given;
}

/* b (D): k of the n present cells, every subset as likely: a cell is among the k - taken still wanted of the n - passed
 * still to come with just that probability. */
static void give_subset(acf_place at, int64_t k, int64_t n, int64_t D, uint8_t *b, const uint8_t *m) {
    uint32_t words[WORDS];
    for (int64_t j = 0; j < D; j++) {
        if (j % WORDS == 0) {
            at.column = (uint32_t)(j / 4);
            acf_rng_words(at, acf_min(WORDS, D - j), words);
        }
        b[j] = m[j] && scaled(words[j % WORDS], n) < k;
        k -= b[j];
        n -= m[j];
    }
}

/* Clears b at the which-th present column. */
static void model_one(int64_t which, int64_t D, uint8_t *b, const uint8_t *m) {
    for (int64_t j = 0; j < D; j++)
        if (m[j] && which-- == 0) b[j] = 0;
}

/* m (D): of the present cells that are not given, the which-th stays, each other is missing with probability p. */
static void drop_some(acf_place at, double p, int64_t which, int64_t D, const uint8_t *b, uint8_t *m) {
    uint64_t below = (uint64_t)(p * 0x1p32);
    uint32_t words[WORDS];
    for (int64_t j = 0; j < D; j++) {
        if (j % WORDS == 0) {
            at.column = DROP_COLUMN + (uint32_t)(j / 4);
            acf_rng_words(at, acf_min(WORDS, D - j), words);
        }
        if (m[j] && !b[j] && which-- != 0) m[j] = words[j % WORDS] >= below;
    }
}

static void draw_row(const acf_masks *masks, acf_place at, int64_t D, uint8_t *b, uint8_t *m) {
    int64_t present = 0;
    for (int64_t j = 0; j < D; j++) {
        m[j] = m[j] != 0;
        b[j] = 0;
        present += m[j];
    }
    uint32_t row[4];
    acf_place row_at = at;
    row_at.column = ROW_COLUMN;
    acf_rng_bits(row_at, row);
    const acf_mask_part *part = choose(masks, row);
    if (part->kind == ACF_MASK_JOINT || present == 0) return;
    if (part->kind == ACF_MASK_UNIFORM || part->kind == ACF_MASK_PARTIAL) {
        const int64_t given = scaled(row[2], present);
        give_subset(at, given, present, D, b, m);
        if (part->kind == ACF_MASK_PARTIAL) drop_some(at, part->p, scaled(row[3], present - given), D, b, m);
        return;
    }
    if (give_bernoulli(at, part->p, D, b, m) == present) model_one(scaled(row[3], present), D, b, m);
    if (part->kind == ACF_MASK_MARGINAL)
        for (int64_t j = 0; j < D; j++) m[j] ^= b[j], b[j] = 0;
}

void acf_masks_draw(const acf_device *dev, const acf_masks *masks, uint64_t seed, uint32_t draw, int64_t N, int64_t D,
                    const uint64_t *id, uint8_t *b, uint8_t *m) {
    ACF_PARALLEL(dev, N * D)
    for (int64_t i = 0; i < N; i++)
        draw_row(masks, (acf_place){seed, id[i], ACF_STREAM_MASK, 0, draw}, D, b + i * D, m + i * D);
}
