/* Masks of images: see image_masks.h. The text form comes first, then drawing; blobs are in image_pattern.c.
 *
 * mcar uses one 32-bit word per pixel. Other kinds use one or two blocks of the generator for the whole image, at
 * columns that no pixel has. A rectangle is drawn without rejection: the number of pairs of borders with height h is
 * known, so h, then w, are drawn from their exact distribution. */
#include "image/image_masks.h"

#include "device/cpu.h"
#include "table/mask_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {"mcar",   "rect",   "left",    "right", "top",   "bottom",
                                    "centre", "cutout", "pattern", "face",  "joint", "file"};
#define KINDS ((int)(sizeof names / sizeof *names))
#define EXPECTED                                                                                                       \
    "mcar:P, rect:A-B, left, right, top, bottom, centre, cutout:S, pattern:R, face:K, joint, file:PATH, or alone "     \
    "paper-mnist, released-mnist, ..."

#define PAPER "mcar:0.2*2 + rect:0.1-1*2 + left + right + top + bottom"
static const char *const mixtures[][2] = {
    {"paper-mnist", PAPER},
    {"paper-omniglot", PAPER},
    {"paper-cifar", PAPER},
    {"paper-celeba", PAPER " + pattern:0.06*2 + face*2"},
    {"released-mnist", "mcar:0.5*2 + left + right + top + bottom + cutout:16*2 + rect:0.3-1*2"},
    {"released-omniglot", "mcar:0.5*2 + left + right + top + bottom + cutout:16*2 + rect:0.1-0.6*2"},
    {"released-cifar", "mcar:0.7*2 + left + right + top + bottom + cutout:16*2 + rect:0.1-0.5*2"},
    {"released-celeba",
     "centre*2 + pattern:0.06*2 + mcar:0.2*2 + left + right + top + bottom + face*10 + rect:0.3-1*20"},
};
#define MIXTURES ((int)(sizeof mixtures / sizeof *mixtures))

const char *acf_image_masks_named(int k, const char **name) {
    if (k < 0 || k >= MIXTURES) return NULL;
    *name = mixtures[k][0];
    return mixtures[k][1];
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static acf_status take_areas(acf_mask_reader *r, acf_image_mask_part *p) {
    p->a = 0.1, p->b = 1;
    if (!acf_mask_take(r, ':')) return ACF_OK;
    const acf_mask_reader start = *r;
    if (!acf_mask_take_number(r, &p->a) || !acf_mask_take(r, '-') || !acf_mask_take_number(r, &p->b) || p->a > p->b ||
        p->b > 1)
        return acf_mask_wrong(&start, "the least and the largest area, as in rect:0.1-1");
    return ACF_OK;
}

/* Reads a number from least to most after a colon. */
static acf_status take_value(acf_mask_reader *r, double least, double most, bool whole, const char *expected,
                             double *out) {
    const acf_mask_reader start = *r;
    if (!acf_mask_take(r, ':') || !acf_mask_take_number(r, out) || !(*out >= least && *out <= most) ||
        (whole && *out != floor(*out)))
        return acf_mask_wrong(&start, expected);
    return ACF_OK;
}

/* Reads up to a '+' or '*', without the spaces before it; or the text in double quotes. */
static acf_status take_path(acf_mask_reader *r, acf_image_mask_part *p) {
    if (!acf_mask_take(r, ':')) return acf_mask_wrong(r, "':' and the name of a file");
    const acf_mask_reader start = *r;
    const bool quoted = acf_mask_take(r, '"');
    const char *begin = r->at;
    size_t n = strcspn(begin, quoted ? "\"" : "+*");
    r->at += n;
    if (quoted && !acf_mask_take(r, '"')) return acf_mask_wrong(&start, "a closing '\"'");
    while (!quoted && n > 0 && (begin[n - 1] == ' ' || begin[n - 1] == '\t')) n--;
    if (n == 0) return acf_mask_wrong(&start, "the name of a file");
    p->path = acf_alloc(n + 1, "masks");
    if (!p->path) return ACF_EMEMORY;
    memcpy(p->path, begin, n);
    p->path[n] = '\0';
    return ACF_OK;
}

static acf_status take_part(acf_mask_reader *r, acf_image_mask_part *p) {
    const int kind = acf_mask_take_name(r, names, KINDS);
    if (kind < 0) return acf_mask_wrong(r, EXPECTED);
    p->kind = (acf_image_mask_kind)kind;
    switch (p->kind) {
    case ACF_HIDE_MCAR:
        ACF_TRY(take_value(r, 0, 1, false, "':' and the share of pixels that are given, as in mcar:0.2", &p->a));
        break;
    case ACF_HIDE_RECT: ACF_TRY(take_areas(r, p)); break;
    case ACF_HIDE_CUTOUT:
        ACF_TRY(take_value(r, 1, ACF_IMAGE_SIDE_MAX, true, "':' and a number of pixels, as in cutout:16", &p->a));
        break;
    case ACF_HIDE_PATTERN:
        p->a = 0.06;
        if (*r->at == ':')
            ACF_TRY(
                take_value(r, 0.001, 1, false, "':' and points per pixel from 0.001 to 1, as in pattern:0.06", &p->a));
        break;
    case ACF_HIDE_FACE:
        if (*r->at == ':') ACF_TRY(take_value(r, 1, 6, true, "':' and the number of a box, 1 to 6", &p->a));
        break;
    case ACF_HIDE_FILE: ACF_TRY(take_path(r, p)); break;
    default: break;
    }
    return acf_mask_take_weight(r, &p->weight);
}

static acf_status take_all(acf_mask_reader *r, acf_image_masks *m) {
    do {
        if (m->n == ACF_IMAGE_MASKS_MAX)
            return acf_fail(ACF_EUSAGE, "masks: more than %d parts in one mixture", ACF_IMAGE_MASKS_MAX);
        acf_mask_skip_spaces(r);
        ACF_TRY(take_part(r, &m->part[m->n++]));
    } while (acf_mask_take(r, '+'));
    return *r->at ? acf_mask_wrong(r, "'*' and a weight, '+' and another part, or the end") : ACF_OK;
}

/* The mixture of this name, or the text itself. */
static const char *text_of_name(const char *text) {
    const size_t skip = strspn(text, " \t"), n = strcspn(text + skip, " \t");
    const bool alone = text[skip + n + strspn(text + skip + n, " \t")] == '\0';
    for (int k = 0; alone && k < MIXTURES; k++)
        if (strlen(mixtures[k][0]) == n && strncmp(mixtures[k][0], text + skip, n) == 0) return mixtures[k][1];
    return text;
}

acf_status acf_image_masks_create(const char *text, acf_image_masks **out) {
    acf_image_masks *m = acf_alloc_zero(sizeof *m, "masks");
    if (!m) return ACF_EMEMORY;
    acf_mask_reader r = {text_of_name(text), text_of_name(text)};
    acf_status status = take_all(&r, m);
    if (status == ACF_OK)
        *out = m;
    else
        acf_image_masks_free(m);
    return status;
}

void acf_image_masks_free(acf_image_masks *m) {
    if (!m) return;
    for (int k = 0; k < m->n; k++) acf_release(m->part[k].path), acf_release(m->part[k].given);
    acf_release(m);
}

void acf_image_mask_part_write(const acf_image_mask_part *p, acf_text *out) {
    char a[ACF_NUMBER_MAX], b[ACF_NUMBER_MAX];
    acf_text_add(out, names[p->kind]);
    if (p->kind == ACF_HIDE_RECT)
        acf_text_addf(out, ":%s-%s", acf_text_real(a, p->a), acf_text_real(b, p->b));
    else if (p->kind == ACF_HIDE_FILE)
        acf_text_addf(out, strpbrk(p->path, "+*") || strchr(" \t", p->path[strlen(p->path) - 1]) ? ":\"%s\"" : ":%s",
                      p->path);
    else if (p->kind == ACF_HIDE_MCAR || p->kind == ACF_HIDE_CUTOUT || p->kind == ACF_HIDE_PATTERN ||
             (p->kind == ACF_HIDE_FACE && p->a > 0))
        acf_text_addf(out, ":%s", acf_text_real(a, p->a));
}

void acf_image_masks_write(const acf_image_masks *m, acf_text *out) {
    char weight[ACF_NUMBER_MAX];
    for (int k = 0; k < m->n; k++) {
        if (k > 0) acf_text_add(out, " + ");
        acf_image_mask_part_write(&m->part[k], out);
        if (m->part[k].weight != 1) acf_text_addf(out, "*%s", acf_text_real(weight, m->part[k].weight));
    }
}

/* ---- rectangles -------------------------------------------------------------------------------------------------- */

/* Of the n^2 pairs of borders on a side of n pixels, n hold one pixel between them and 2 (n - k + 1) hold k > 1,
 * both borders counted. */
static int64_t pairs_up_to(int64_t k, int64_t n) { return 2 * k * n - n - k * k + k; }
static int64_t pairs_of(int64_t k, int64_t n) { return k == 1 ? n : 2 * (n - k + 1); }

/* The widths possible with height h, first to last; none: last < first. */
static void widths(const acf_image_mask_part *p, int64_t h, int64_t H, int64_t W, int64_t *first, int64_t *last) {
    const double pixels = (double)(H * W);
    *first = acf_max(1, acf_ceil_div((int64_t)ceil(p->a * pixels - 1e-9), h));
    *last = acf_min(W, (int64_t)floor(p->b * pixels + 1e-9) / h);
}

/* The number of rectangles of height h with an allowed area. */
static int64_t rectangles(const acf_image_mask_part *p, int64_t h, int64_t H, int64_t W) {
    int64_t first, last;
    widths(p, h, H, W, &first, &last);
    if (last < first) return 0;
    return pairs_of(h, H) * (pairs_up_to(last, W) - (first > 1 ? pairs_up_to(first - 1, W) : 0));
}

static int64_t all_rectangles(const acf_image_mask_part *p, int64_t H, int64_t W) {
    int64_t sum = 0; /* at most H^2 W^2, and H W is below 2^26 */
    for (int64_t h = 1; h <= H; h++) sum += rectangles(p, h, H, W);
    return sum;
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

static acf_status wrong_size(const char *path, const acf_raster *r, const acf_images *im, int64_t H, int64_t W) {
    char before[80] = "";
    if (im && im->from_H && (im->from_H != H || im->from_W != W))
        snprintf(before, sizeof before, ", or of %lld x %lld as their files have", (long long)im->from_W,
                 (long long)im->from_H);
    return acf_fail(ACF_EDATA,
                    "%s: the mask has %lld x %lld pixels, but the images have %lld x %lld; make a mask of that size%s",
                    path, (long long)r->W, (long long)r->H, (long long)W, (long long)H, before);
}

/* White is missing. given (H,W) from r, which has this size or that of the images' files. */
static acf_status read_white(const char *path, const acf_raster *r, const acf_images *im, int64_t H, int64_t W,
                             uint8_t *given) {
    const int64_t n = r->H * r->W;
    uint8_t *white = acf_alloc((size_t)n, "masks");
    acf_status status = white ? ACF_OK : ACF_EMEMORY;
    if (status == ACF_OK) {
        acf_image_channels(white, 1, r->pixel, r->C, n);
        for (int64_t i = 0; i < n; i++) white[i] = white[i] < 128 ? 0 : 255;
        if (r->H != H || r->W != W)
            status = acf_images_mask(im, path, white, given);
        else
            for (int64_t i = 0; i < n; i++) given[i] = !white[i];
    }
    acf_release(white);
    if (status == ACF_OK && !memchr(given, 0, (size_t)(H * W)))
        status = acf_fail(ACF_EDATA,
                          "%s: the mask has no white%s, so nothing is missing; paint white what should be filled in",
                          path, r->H != H || r->W != W ? " in the part of the images that is used" : "");
    return status;
}

static acf_status read_file(const char *path, const acf_images *im, int64_t H, int64_t W, uint8_t **out) {
    acf_raster r;
    ACF_TRY(acf_raster_read(path, &r));
    acf_status status = ACF_OK;
    uint8_t *given = NULL;
    if ((r.H != H || r.W != W) && !(im && r.H == im->from_H && r.W == im->from_W))
        status = wrong_size(path, &r, im, H, W);
    else if (!(given = acf_alloc((size_t)(H * W), "masks")))
        status = ACF_EMEMORY;
    if (status == ACF_OK) status = read_white(path, &r, im, H, W, given);
    acf_raster_free(&r);
    if (status == ACF_OK)
        *out = given;
    else
        acf_release(given);
    return status;
}

static acf_status fit_part(acf_image_mask_part *p, const acf_images *im, int64_t H, int64_t W, uint8_t **given) {
    char a[ACF_NUMBER_MAX], b[ACF_NUMBER_MAX];
    if (p->kind == ACF_HIDE_RECT && all_rectangles(p, H, W) == 0)
        return acf_fail(
            ACF_EUSAGE,
            "masks: no rectangle in %lld x %lld pixels has an area from %s to %s of them; allow a wider range",
            (long long)W, (long long)H, acf_text_real(a, p->a), acf_text_real(b, p->b));
    if (p->kind == ACF_HIDE_CUTOUT && ((int64_t)p->a > H || (int64_t)p->a > W))
        return acf_fail(ACF_EUSAGE, "masks: a square of %lld pixels does not fit in %lld x %lld; make it smaller",
                        (long long)p->a, (long long)W, (long long)H);
    if (p->kind == ACF_HIDE_PATTERN && (H > ACF_IMAGE_PATTERN_MAX || W > ACF_IMAGE_PATTERN_MAX))
        return acf_fail(ACF_EUSAGE, "masks: 'pattern' for %lld x %lld pixels; expected at most %d a side", (long long)W,
                        (long long)H, ACF_IMAGE_PATTERN_MAX);
    return p->kind == ACF_HIDE_FILE ? read_file(p->path, im, H, W, given) : ACF_OK;
}

static acf_status fit(acf_image_masks *m, const acf_images *im, int64_t H, int64_t W) {
    uint8_t *given[ACF_IMAGE_MASKS_MAX] = {NULL};
    acf_status status = H < 1 || W < 1 || H * W > ACF_IMAGE_PIXELS_MAX
                            ? acf_fail(ACF_ESHAPE, "masks for images of %lld x %lld pixels", (long long)W, (long long)H)
                            : ACF_OK;
    for (int k = 0; status == ACF_OK && k < m->n; k++) status = fit_part(&m->part[k], im, H, W, &given[k]);
    for (int k = 0; k < m->n; k++) {
        acf_release(status == ACF_OK ? m->part[k].given : given[k]);
        if (status == ACF_OK) m->part[k].given = given[k];
    }
    if (status == ACF_OK) m->H = H, m->W = W;
    return status;
}

acf_status acf_image_masks_fit(acf_image_masks *m, int64_t H, int64_t W) { return fit(m, NULL, H, W); }
acf_status acf_image_masks_fit_to(acf_image_masks *m, const acf_images *im) { return fit(m, im, im->H, im->W); }

/* Decides by the ending: a mask file; anything else is the text of a mixture. */
static bool is_picture(const char *name) {
    static const char *const ending[] = {".png", ".jpg", ".jpeg"};
    const size_t n = strlen(name);
    for (int k = 0; k < 3; k++) {
        const size_t e = strlen(ending[k]);
        if (n > e && strcasecmp(name + n - e, ending[k]) == 0 && strncmp(name, "file:", 5) != 0) return true;
    }
    return false;
}

acf_status acf_image_masks_open(const char *text, const acf_images *im, acf_image_masks **out) {
    char form[4096 + 16];
    acf_image_masks *m;
    acf_text t = acf_text_into(form, sizeof form);
    acf_text_addf(&t, is_picture(text) ? "file:\"%s\"" : "%s", text);
    if (acf_text_done(&t, NULL) != ACF_OK)
        return acf_fail(ACF_EUSAGE, "a mask of %zu bytes; expected at most 4096", strlen(text));
    ACF_TRY(acf_image_masks_create(form, &m));
    acf_status status = acf_image_masks_fit_to(m, im);
    if (status)
        acf_image_masks_free(m);
    else
        *out = m;
    return status;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

#define IMAGE_COLUMN 0x80000000u /* the blocks of a whole image: beyond every pixel's */
#define WORDS 64

/* Maps a 32-bit word to an integer in [0, n), n < 2^31. */
static int64_t scaled(uint32_t word, int64_t n) { return (int64_t)((uint64_t)word * (uint64_t)n >> 32); }

int acf_image_masks_choice(const acf_image_masks *m, uint64_t seed, uint64_t id, uint32_t draw) {
    uint32_t word[4];
    double sum = 0;
    acf_rng_bits((acf_rng_counter){seed, id, ACF_STREAM_MASK, IMAGE_COLUMN, draw}, word);
    for (int k = 0; k < m->n; k++) sum += m->part[k].weight;
    double left = acf_rng_unit(word[0], word[1]) * sum;
    for (int k = 0; k < m->n - 1; k++)
        if ((left -= m->part[k].weight) < 0) return k;
    return m->n - 1;
}

/* Clears b in the box. */
static void hide(uint8_t *b, int64_t W, acf_image_box box) {
    for (int64_t y = box.y0; y < box.y1; y++) memset(b + y * W + box.x0, 0, (size_t)(box.x1 - box.x0));
}

static void draw_mcar(acf_rng_counter at, double p, int64_t n, uint8_t *b) {
    const uint64_t below = (uint64_t)(p * 0x1p32); /* p = 1 is certain */
    uint32_t word[WORDS];
    for (int64_t i = 0; i < n; i += WORDS) {
        at.column = (uint32_t)(i / 4);
        const int64_t now = acf_min(WORDS, n - i);
        acf_rng_words(at, now, word);
        for (int64_t k = 0; k < now; k++) b[i + k] = word[k] < below;
    }
}

/* Chooses a rectangle by its number among those allowed: the height, then the width, then its position. */
static acf_image_box draw_rect(const acf_image_mask_part *p, const uint32_t word[4], int64_t H, int64_t W) {
    const int64_t all = all_rectangles(p, H, W);
    int64_t left = acf_min((int64_t)(acf_rng_unit(word[0], word[1]) * (double)all), all - 1), h = 1, w, last;
    for (int64_t n; left >= (n = rectangles(p, h, H, W)); h++) left -= n;
    widths(p, h, H, W, &w, &last);
    left /= pairs_of(h, H);
    for (int64_t n; w < last && left >= (n = pairs_of(w, W)); w++) left -= n;
    const int64_t y = scaled(word[2], H - h + 1), x = scaled(word[3], W - w + 1);
    return (acf_image_box){x, y, x + w, y + h};
}

/* Boxes of Li et al. (Generative Face Completion, 2017), for 64 x 64 pixels: both sides of the face, both eyes,
 * either eye, the mouth. */
static acf_image_box face(int k, int64_t H, int64_t W) {
    static const int box[6][4] = {{17, 26, 36, 58}, {29, 26, 48, 58}, {15, 26, 50, 37},
                                  {15, 26, 34, 37}, {31, 26, 50, 37}, {20, 43, 44, 62}};
    const int *b = box[k];
    return (acf_image_box){(b[0] * W + 32) / 64, (b[1] * H + 32) / 64, (b[2] * W + 32) / 64, (b[3] * H + 32) / 64};
}

/* The box of the kinds with one box; word: of the image. */
static acf_image_box box_of(const acf_image_mask_part *p, const uint32_t word[4], int64_t H, int64_t W) {
    const int64_t S = (int64_t)p->a;
    int64_t x, y;
    switch (p->kind) {
    case ACF_HIDE_RECT: return draw_rect(p, word, H, W);
    case ACF_HIDE_LEFT: return (acf_image_box){0, 0, W / 2, H};
    case ACF_HIDE_RIGHT: return (acf_image_box){W - W / 2, 0, W, H};
    case ACF_HIDE_TOP: return (acf_image_box){0, 0, W, H / 2};
    case ACF_HIDE_BOTTOM: return (acf_image_box){0, H - H / 2, W, H};
    case ACF_HIDE_CENTRE: return (acf_image_box){W / 4, H / 4, W / 4 + W / 2, H / 4 + H / 2};
    case ACF_HIDE_FACE: return face(p->a > 0 ? (int)p->a - 1 : (int)scaled(word[0], 6), H, W);
    case ACF_HIDE_CUTOUT:
        x = scaled(word[0], W - S + 1), y = scaled(word[1], H - S + 1);
        return (acf_image_box){x, y, x + S, y + S};
    default: return (acf_image_box){0, 0, W, H};
    }
}

static void draw_part(const acf_image_masks *m, int k, acf_rng_counter at, uint8_t *b) {
    const acf_image_mask_part *p = &m->part[k];
    const int64_t n = m->H * m->W;
    uint32_t word[4];
    acf_rng_counter image = at;
    image.column = IMAGE_COLUMN + 1;
    acf_rng_bits(image, word);
    if (p->kind == ACF_HIDE_MCAR)
        draw_mcar(at, p->a, n, b);
    else if (p->kind == ACF_HIDE_PATTERN)
        acf_image_pattern(at, p->a, m->H, m->W, b);
    else if (p->kind == ACF_HIDE_FILE)
        memcpy(b, p->given, (size_t)n);
    else {
        memset(b, 1, (size_t)n);
        hide(b, m->W, box_of(p, word, m->H, m->W));
    }
    if (!memchr(b, 0, (size_t)n)) {
        image.column = IMAGE_COLUMN + 2;
        acf_rng_bits(image, word);
        b[scaled(word[0], n)] = 0;
    }
}

void acf_image_mask_part_draw(const acf_image_masks *m, int part, uint64_t seed, uint64_t id, uint32_t draw,
                              uint8_t *b) {
    ACF_ASSERT(m->H > 0 && part >= 0 && part < m->n);
    draw_part(m, part, (acf_rng_counter){seed, id, ACF_STREAM_MASK, 0, draw}, b);
}

void acf_image_masks_draw(const acf_device *dev, const acf_image_masks *m, uint64_t seed, uint32_t draw, int64_t N,
                          const uint64_t *id, uint8_t *b) {
    ACF_ASSERT(m->H > 0);
    ACF_PARALLEL_UNEVEN(dev, N * m->H * m->W)
    for (int64_t i = 0; i < N; i++)
        draw_part(m, acf_image_masks_choice(m, seed, id[i], draw),
                  (acf_rng_counter){seed, id[i], ACF_STREAM_MASK, 0, draw}, b + i * m->H * m->W);
}

/* ---- symmetry ---------------------------------------------------------------------------------------------------- */

static double weight_of(const acf_image_masks *m, acf_image_mask_kind kind) {
    double sum = 0;
    for (int k = 0; k < m->n; k++) sum += m->part[k].kind == kind ? m->part[k].weight : 0;
    return sum;
}

bool acf_image_masks_symmetric(const acf_image_masks *m, bool turn, bool flip) {
    const double left = weight_of(m, ACF_HIDE_LEFT), right = weight_of(m, ACF_HIDE_RIGHT),
                 top = weight_of(m, ACF_HIDE_TOP), bottom = weight_of(m, ACF_HIDE_BOTTOM);
    for (int k = 0; k < m->n; k++) {
        if ((turn || flip) && m->part[k].kind == ACF_HIDE_FILE) return false;
        if (m->part[k].kind == ACF_HIDE_FACE && (turn || (flip && m->part[k].a > 0))) return false;
    }
    return (!turn && !flip) || (left == right && (!turn || (left == top && top == bottom)));
}
