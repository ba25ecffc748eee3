/* Reads a folder of PNG and JPEG files: see images.h.
 *
 *     names, sorted --> (grey or colour? headers of all files) --> size of the first readable file
 *                   --> all files in parallel, file i to slot i --> gaps of broken files closed
 *
 * A file of another size than the first is an error of the user, refused with both names. A damaged file is left out
 * and counted, unless the plan is strict. The file named in a message is the first in order, for any number of
 * threads. */
#include "image/images.h"

#include "base/real.h"
#include "base/text.h"
#include "device/cpu.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The files and what is known about them. */
typedef struct folder {
    const char *path;
    const acf_image_plan *plan;
    acf_arena *text;
    const char **name; /* (n) sorted */
    int64_t n, other;
    acf_images *im;
    int64_t H, W, model; /* size of the first readable file, as stored, and its index */
    acf_failure first;   /* the failure of the first broken file */
    uint8_t *status;     /* (n) the status of reading each file */
    bool differ;         /* files differ in size before the plan is applied */
} folder;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_picture(const char *name) {
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot &&
           (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Adds a name to the list, which doubles when it is full. */
static acf_status add_name(folder *f, int64_t *cap, const char *name) {
    if (f->n == *cap) {
        const int64_t more = *cap ? 2 * *cap : 256;
        const char **list = acf_alloc((size_t)more * sizeof *list, "names of files");
        if (!list) return ACF_EMEMORY;
        if (f->n) memcpy(list, f->name, (size_t)f->n * sizeof *list);
        acf_release(f->name);
        f->name = list;
        *cap = more;
    }
    const size_t n = strlen(name) + 1;
    char *copy = acf_arena_alloc(f->text, n);
    if (!copy) return ACF_EMEMORY;
    f->name[f->n++] = memcpy(copy, name, n);
    return ACF_OK;
}

static acf_status list_names(folder *f) {
    DIR *d = opendir(f->path);
    if (!d) return acf_fail(ACF_EIO, "cannot read the folder %s: %s", f->path, strerror(errno));
    int64_t cap = 0;
    acf_status status = ACF_OK;
    for (struct dirent *e; status == ACF_OK && (errno = 0, e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || e->d_type == DT_DIR) continue;
        if (is_picture(e->d_name) && (!f->plan->wanted || f->plan->wanted(f->plan->ctx, e->d_name)))
            status = add_name(f, &cap, e->d_name);
        else
            f->other++;
    }
    if (status == ACF_OK && errno)
        status = acf_fail(ACF_EIO, "cannot read the folder %s: %s", f->path, strerror(errno));
    closedir(d);
    if (status != ACF_OK) return status;
    if (f->n == 0 && f->plan->wanted)
        return acf_fail(
            ACF_EDATA,
            "%s: none of the %lld files in this folder has an expected name: that of a true image, or this with .1, "
            ".2, ... or .guess "
            "before its ending, as acflow impute writes them",
            f->path, (long long)f->other);
    if (f->n == 0)
        return acf_fail(
            ACF_EDATA,
            "%s: this folder has no images: none of its %lld files has a name that ends in .png, .jpg or .jpeg; "
            "sub-folders are not "
            "searched",
            f->path, (long long)f->other);
    qsort(f->name, (size_t)f->n, sizeof *f->name, by_name);
    if (f->plan->limit && f->plan->limit < f->n) f->n = f->plan->limit;
    return ACF_OK;
}

#define PATH_CAP 4352 /* the longest path, and a name */
static const char *path_of(char out[PATH_CAP], const folder *f, int64_t i) {
    const size_t n = strlen(f->path);
    snprintf(out, PATH_CAP, "%s%s%s", f->path, n && f->path[n - 1] == '/' ? "" : "/", f->name[i]);
    return out;
}

/* ---- what most files are ----------------------------------------------------------------------------------------- */

/* Unreadable files do not vote; they are reported later in order. A tie is colour. */
static int majority_channels(const folder *f, const acf_device *dev, int64_t votes[2]) {
    int64_t grey = 0, colour = 0;
    _Pragma(
        "omp parallel for schedule(dynamic, 64) num_threads(acf_threads_for(dev, f->n * 4096)) reduction(+ : grey, colour)")
    for (int64_t i = 0; i < f->n; i++) {
        char path[PATH_CAP];
        acf_raster r;
        if (acf_raster_probe(path_of(path, f, i), &r) != ACF_OK) continue;
        if (r.C == 1)
            grey++;
        else
            colour++;
    }
    votes[0] = grey, votes[1] = colour;
    return grey > colour ? 1 : 3;
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

/* The first readable file sets the size; files before it are broken. */
static acf_status find_first_readable(folder *f) {
    char path[PATH_CAP];
    for (f->model = 0; f->model < f->n; f->model++) {
        acf_raster r;
        acf_status status = acf_raster_read(path_of(path, f, f->model), &r);
        if (status == ACF_EMEMORY || (status != ACF_OK && f->plan->strict)) return status;
        if (status != ACF_OK) {
            if (f->model == 0) acf_failure_save(&f->first);
            continue;
        }
        f->H = r.H, f->W = r.W;
        acf_raster_free(&r);
        return ACF_OK;
    }
    return acf_fail(f->first.status, "%s: none of its %lld images can be read; the first: %.400s", f->path,
                    (long long)f->n, f->first.sentence);
}

/* Reads file i into its slot. Fails as acf_raster_read, and with ACF_ESHAPE if a valid picture does not fit the
 * others or the plan. */
static acf_status load(folder *f, int64_t i) {
    char path[PATH_CAP];
    acf_raster r;
    int64_t h = 0, w = 0;
    const acf_images *im = f->im;
    ACF_TRY(acf_raster_read(path_of(path, f, i), &r));
    acf_status status = acf_image_plan_size(f->plan, path, r.H, r.W, &h, &w);
    if (r.H != f->H || r.W != f->W) {
        _Pragma("omp atomic write")
        f->differ = true;
    }
    if (status != ACF_OK)
        status = ACF_ESHAPE;
    else if (h != im->H || w != im->W)
        status =
            acf_fail(ACF_ESHAPE,
                     "%s: it has %lld x %lld pixels, but %s in the same folder has %lld x %lld; make all one size with "
                     "image-size, image-centre or image-crop",
                     path, (long long)r.W, (long long)r.H, f->name[f->model], (long long)f->W, (long long)f->H);
    if (status == ACF_OK)
        status = acf_image_plan_apply(f->plan, path, r.pixel, r.H, r.W, r.C, (int)im->C,
                                      im->pixel + i * im->H * im->W * im->C);
    acf_raster_free(&r);
    return status;
}

/* Whether a file may be left out: only for an error in the file itself, not in the request or the machine. */
static bool may_be_skipped(const folder *f, int64_t i) {
    return !f->plan->strict && (f->status[i] == ACF_EDATA || f->status[i] == ACF_EIO);
}

/* Threads keep the status of each file, not the message. The first relevant file is read again for its message. */
static acf_status load_all(folder *f, const acf_device *dev) {
    _Pragma("omp parallel for schedule(dynamic, 16) num_threads(acf_threads_for(dev, f->n * 4096))")
    for (int64_t i = 0; i < f->n; i++) f->status[i] = (uint8_t)load(f, i);
    for (int64_t i = 0; i < f->n; i++) {
        if (f->status[i] == ACF_OK || may_be_skipped(f, i)) continue;
        acf_failure why;
        f->status[i] = (uint8_t)load(f, i);
        if (f->status[i] == ACF_OK) continue;
        acf_failure_save(&why);
        if (why.status == ACF_ESHAPE) why.status = ACF_EDATA;
        return acf_failure_restore(&why);
    }
    for (int64_t i = 0; i < f->n; i++)
        if (f->status[i] != ACF_OK) {
            if (load(f, i) != ACF_OK) acf_failure_save(&f->first);
            break;
        }
    return ACF_OK;
}

/* Moves the readable images together, with their names. */
static acf_status close_gaps(folder *f) {
    acf_images *im = f->im;
    const size_t size = (size_t)(im->H * im->W * im->C);
    int64_t n = 0;
    im->file = acf_arena_alloc(im->text, (size_t)f->n * sizeof *im->file);
    if (!im->file) return ACF_EMEMORY;
    for (int64_t i = 0; i < f->n; i++) {
        if (f->status[i] != ACF_OK) continue;
        const size_t length = strlen(f->name[i]) + 1;
        char *name = acf_arena_alloc(im->text, length);
        if (!name) return ACF_EMEMORY;
        if (n < i) memmove(im->pixel + (size_t)n * size, im->pixel + (size_t)i * size, size);
        im->file[n++] = memcpy(name, f->name[i], length);
        im->endings_differ |= strcmp(strrchr(name, '.'), strrchr(im->file[0], '.')) != 0;
    }
    im->N = n;
    im->broken = f->n - n;
    im->other = f->other;
    return ACF_OK;
}

static void write_note(folder *f, const int64_t votes[2]) {
    acf_text t = acf_text_into(f->im->note, sizeof f->im->note);
    const bool grey = f->im->C == 1;
    if (votes[0] && votes[1])
        acf_text_addf(&t, "%s: %lld of %lld images are %s and were made %s, as most are", f->path,
                      (long long)votes[grey], (long long)(votes[0] + votes[1]), grey ? "in colour" : "grey",
                      grey ? "grey" : "colour");
    if (f->im->broken)
        acf_text_addf(&t, "%s%s: %lld of %lld images cannot be read and are left out; the first: %.400s",
                      t.len ? "; " : "", f->path, (long long)f->im->broken, (long long)f->n, f->first.sentence);
}

static acf_status open_listed(folder *f, const acf_device *dev) {
    int64_t votes[2] = {0};
    acf_failure before;
    ACF_TRY(list_names(f));
    acf_failure_save(&before);
    const int C = f->plan->channels ? f->plan->channels : majority_channels(f, dev, votes);
    ACF_TRY(find_first_readable(f));
    ACF_TRY(acf_images_reserve(f->path, f->plan, f->n, f->H, f->W, C, &f->im));
    f->status = acf_alloc((size_t)f->n, "names of files");
    if (!f->status) return ACF_EMEMORY;
    ACF_TRY(load_all(f, dev));
    if (f->differ) f->im->from_H = f->im->from_W = 0;
    ACF_TRY(close_gaps(f));
    write_note(f, votes);
    acf_failure_restore(&before); /* the note reports what was left out */
    return ACF_OK;
}

acf_status acf_images_read_folder(const acf_device *dev, const char *path, const acf_image_plan *plan,
                                  acf_images **out) {
    folder *f = acf_alloc_zero(sizeof *f, "a folder");
    if (!f) return ACF_EMEMORY;
    f->path = path, f->plan = plan;
    acf_status status = strlen(path) > 4096 ? acf_fail(ACF_EIO, "the name of the folder is longer than 4096 bytes")
                                            : acf_arena_create(&acf_heap, 0, &f->text);
    if (status == ACF_OK) status = open_listed(f, dev);
    if (status == ACF_OK)
        *out = f->im;
    else
        acf_images_free(f->im);
    if (f->text) acf_arena_free(f->text);
    acf_release(f->name), acf_release(f->status), acf_release(f);
    return status;
}
