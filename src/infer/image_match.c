/* Completed images by name: see image_match.h. Workload: 1e2 to 1e5 files; names are sorted once and searched. */
#include "infer/image_match.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DRAWS_MAX 100000 /* largest number of a draw; above it come the best guess, and completions without a number */
#define GUESS (DRAWS_MAX + 1)
#define OTHER (DRAWS_MAX + 2)

typedef struct entry {
    char stem[ACF_IMAGE_NAME_MAX]; /* base name of files made from it */
    int64_t i;                     /* number of the image */
} entry;

typedef struct found {
    int64_t set, i, file; /* set: number of the draw from 1 on, GUESS or OTHER; true image; image in the folder */
} found;

typedef struct search {
    const acf_images *truth;
    entry *entry; /* (N) by stem */
} search;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int by_stem(const void *a, const void *b) { return strcmp(((const entry *)a)->stem, ((const entry *)b)->stem); }

static acf_status list_truth(search *s) {
    const int64_t N = s->truth->N;
    if (!(s->entry = acf_alloc((size_t)N * sizeof *s->entry, "names of images"))) return ACF_EMEMORY;
    for (int64_t i = 0; i < N; i++) acf_images_write_file_name(s->entry[i].stem, s->truth, i), s->entry[i].i = i;
    qsort(s->entry, (size_t)N, sizeof *s->entry, by_stem);
    return ACF_OK;
}

static int64_t find_stem(const search *s, const entry *key) {
    const entry *e = bsearch(key, s->entry, (size_t)s->truth->N, sizeof *e, by_stem);
    return e ? e->i : -1;
}

/* Finds the image and the kind of completion that a file belongs to; false: none. */
static bool recognise(const search *s, const char *file, found *out) {
    entry key;
    if (snprintf(key.stem, sizeof key.stem, "%s", file) >= (int)sizeof key.stem) return false;
    out->set = OTHER;
    if (s->truth->endings_differ && (out->i = find_stem(s, &key)) >= 0) return true;
    acf_images_cut_ending(key.stem);
    if ((out->i = find_stem(s, &key)) >= 0) return true;
    char *dot = strrchr(key.stem, '.');
    if (!dot) return false;
    if (strcmp(dot, ".guess") == 0)
        out->set = GUESS;
    else {
        char *end = dot;
        out->set = isdigit((unsigned char)dot[1]) ? strtol(dot + 1, &end, 10) : 0;
        if (out->set < 1 || out->set > DRAWS_MAX || *end) return false;
    }
    *dot = 0;
    return (out->i = find_stem(s, &key)) >= 0;
}

static bool wanted(void *ctx, const char *file) {
    found f;
    return recognise(ctx, file, &f);
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

static int by_set(const void *a, const void *b) {
    const found *x = a, *y = b;
    return x->set != y->set ? (x->set > y->set) - (x->set < y->set) : (x->i > y->i) - (x->i < y->i);
}

static const char *set_name(char out[64], int64_t set) {
    if (set == OTHER || set == GUESS) return set == GUESS ? "the best guess" : "the completion";
    snprintf(out, 64, "draw %lld", (long long)set);
    return out;
}

/* Requires that found images k .. k + N - 1 are one complete set without duplicates. */
static acf_status check_set(const search *s, const char *path, const found *f, int64_t n, int64_t k) {
    char words[64], name[ACF_IMAGE_NAME_MAX];
    for (int64_t i = 0; i < s->truth->N; i++) {
        const bool there = k + i < n && f[k + i].set == f[k].set;
        if (there && f[k + i].i == i) continue;
        if (there && f[k + i].i < i)
            return acf_fail(ACF_EDATA, "%s: there are two files for %s of '%s'; expected one", path,
                            set_name(words, f[k].set), acf_images_write_name(name, s->truth, f[k + i].i));
        return acf_fail(ACF_EDATA, "%s: there is no file for %s of '%s'; expected one for each of the %lld true images",
                        path, set_name(words, f[k].set), acf_images_write_name(name, s->truth, i),
                        (long long)s->truth->N);
    }
    if (k + s->truth->N < n && f[k + s->truth->N].set == f[k].set)
        return acf_fail(ACF_EDATA, "%s: there are two files for %s of '%s'; expected one", path,
                        set_name(words, f[k].set), acf_images_write_name(name, s->truth, f[k + s->truth->N].i));
    return ACF_OK;
}

/* Turns the sorted f (n) into sets. */
static acf_status collect(const search *s, const char *path, const found *f, int64_t n, acf_image_matches *out) {
    const int64_t N = s->truth->N;
    const size_t size = (size_t)(s->truth->H * s->truth->W * s->truth->C);
    for (int64_t k = 0; k < n; k += N) ACF_TRY(check_set(s, path, f, n, k));
    out->sets = n / N;
    out->level = acf_alloc((size_t)n * size, "completed images");
    out->set = acf_alloc((size_t)out->sets * sizeof *out->set, "completed images");
    if (!out->level || !out->set) return ACF_EMEMORY;
    for (int64_t k = 0; k < n; k++) memcpy(out->level + (size_t)k * size, acf_images_at(out->done, f[k].file), size);
    for (int64_t k = 0; k < out->sets; k++) {
        const int64_t set = f[k * N].set;
        out->set[k] = (acf_fill_set){out->level + (size_t)(k * N) * size, set == GUESS   ? ACF_FILL_GUESS
                                                                          : set == OTHER ? ACF_FILL_OTHER
                                                                                         : ACF_FILL_DRAW};
    }
    return ACF_OK;
}

static acf_status match(const search *s, const char *path, acf_image_matches *out) {
    const acf_images *done = out->done;
    if (!done->file && done->N != s->truth->N)
        return acf_fail(ACF_EDATA,
                        "%s holds %lld images, but there are %lld true ones; expected as many, in the same order", path,
                        (long long)done->N, (long long)s->truth->N);
    found *f = acf_alloc((size_t)done->N * sizeof *f, "names of images");
    if (!f) return ACF_EMEMORY;
    for (int64_t k = 0; k < done->N; k++) {
        f[k] = (found){OTHER, k, k};
        if (done->file) recognise(s, done->file[k], &f[k]);
    }
    qsort(f, (size_t)done->N, sizeof *f, by_set);
    acf_status status = collect(s, path, f, done->N, out);
    acf_release(f);
    return status;
}

static acf_status same_size(const char *path, const acf_images *done, const acf_images *truth) {
    if (done->H == truth->H && done->W == truth->W) return ACF_OK;
    return acf_fail(ACF_EDATA,
                    "%s: the completed images have %lld x %lld pixels, the true ones %lld x %lld; "
                    "set image-pad, image-size and image-crop as for the completion",
                    path, (long long)done->W, (long long)done->H, (long long)truth->W, (long long)truth->H);
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Completed images are read without preprocessing, because it was already applied to the true ones. Only padding is
 * restored, because impute removes it. */
acf_status acf_image_match(const acf_device *dev, const char *path, const acf_images *truth, bool strict,
                           acf_image_matches *out) {
    search s = {.truth = truth};
    acf_status status = ACF_OK;
    acf_image_plan plan = {.channels = (int)truth->C,
                           .bits = truth->bits,
                           .pad = truth->plan.pad,
                           .strict = strict,
                           .wanted = is_folder(path) ? wanted : NULL,
                           .ctx = &s};
    *out = (acf_image_matches){0};
    ACF_TRY_DONE(list_truth(&s));
    ACF_TRY_DONE(acf_images_read(dev, path, &plan, &out->done));
    ACF_TRY_DONE(same_size(path, out->done, truth));
    ACF_TRY_DONE(match(&s, path, out));
done:
    acf_release(s.entry);
    if (status) acf_image_matches_free(out);
    return status;
}

void acf_image_matches_free(acf_image_matches *m) {
    acf_images_free(m->done);
    acf_release(m->level);
    acf_release(m->set);
    *m = (acf_image_matches){0};
}
