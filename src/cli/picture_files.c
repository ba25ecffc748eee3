/* Files of images: see picture_files.h. */
#include "cli/picture_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

int cli_make_folder(const char *command, const char *path, const char *source) {
    struct stat to, from;
    if (strcmp(path, "-") == 0) return cli_usage(command, "images do not go to standard output; give a folder: -o FOLDER");
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        cli_say(CLI_ERROR, "cannot make the folder '%s': %s", path, strerror(errno));
        return acf_status_exit(ACF_EIO);
    }
    if (stat(path, &to) == 0 && !S_ISDIR(to.st_mode)) return cli_usage(command, "'%s' is a file; images go to a folder: -o FOLDER", path);
    if (source && stat(source, &from) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return cli_usage(command, "'%s' is where the images come from, which could be written over; give another folder", path);
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

enum { NAME = 400 };

/* Takes one of these endings off; whether it did. */
static bool cut_ending(char *name, const char *const *ending, int n) {
    char *dot = strrchr(name, '.');
    for (int k = 0; dot && dot != name && k < n; k++)
        if (strcasecmp(dot, ending[k]) == 0) {
            *dot = 0;
            return true;
        }
    return false;
}

/* "a.png" -> "a", "a b.png turned 90" -> "a-b.png-turned-90"; "digits.npy 7" -> "digits-07". */
static void name_of(const cli_names *n, int64_t i, char out[NAME]) {
    static const char *const picture[] = {".png", ".jpg", ".jpeg"}, *const array[] = {".gz", ".npy", ".idx"};
    if (acf_images_name(n->im, i, out, NAME, NULL) != ACF_OK) snprintf(out, NAME, "image %lld", (long long)i);
    char *space = strrchr(out, ' '), number[32] = "";
    if (space && strspn(space + 1, "0123456789") == strlen(space + 1) && !strstr(out, " turned ")) {
        snprintf(number, sizeof number, "-%0*lld", n->digits, atoll(space + 1));
        *space = 0;
        while (cut_ending(out, array, 3)) {}
        snprintf(out + strlen(out), NAME - strlen(out), "%s", number);
    } else if (!n->whole) cut_ending(out, picture, 3);
    for (char *c = out; *c; c++)
        if (*c == ' ' || *c == '/') *c = '-';
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

int cli_names_make(const char *command, const acf_images *im, cli_names *out) {
    int64_t shape[4];
    *out = (cli_names){.im = im, .digits = 1};
    if (acf_images_shape(im, shape) != ACF_OK) return cli_failed(command);
    for (int64_t n = shape[0] - 1; n > 9; n /= 10) out->digits++;
    char (*name)[NAME] = malloc((size_t)shape[0] * sizeof *name);
    if (!name) {
        cli_say(CLI_ERROR, "out of memory for the names of %lld images", (long long)shape[0]);
        return acf_status_exit(ACF_EMEMORY);
    }
    for (int64_t i = 0; i < shape[0]; i++) name_of(out, i, name[i]);
    qsort(name, (size_t)shape[0], sizeof *name, by_name);
    for (int64_t i = 1; i < shape[0] && !out->whole; i++) out->whole = strcmp(name[i - 1], name[i]) == 0;
    free(name);
    return 0;
}

void cli_names_path(const cli_names *n, const char *folder, int64_t i, const char *what, char out[CLI_PICTURE_PATH_MAX]) {
    char name[NAME];
    name_of(n, i, name);
    snprintf(out, CLI_PICTURE_PATH_MAX, "%s/%s.%s.png", folder, name, what);
}

/* ---- pictures -------------------------------------------------------------------------------------------------------------- */

int64_t cli_zoom(const int64_t *shape, int64_t side) {
    const int64_t longer = shape[1] > shape[2] ? shape[1] : shape[2];
    return longer < side ? side / longer : 1;
}

int cli_put_picture(const char *command, const acf_images *im, const char *path, const uint8_t *level) {
    int64_t shape[4], box[4];
    if (acf_images_shape(im, shape) != ACF_OK || acf_images_frame(im, box) != ACF_OK) return cli_failed(command);
    const int64_t one[4] = {1, box[3] - box[1], box[2] - box[0], shape[3]};
    const size_t row = (size_t)(one[2] * one[3]);
    uint8_t *inside = malloc((size_t)one[1] * row);
    int code = 0;
    if (!inside) {
        cli_say(CLI_ERROR, "out of memory for an image");
        return acf_status_exit(ACF_EMEMORY);
    }
    for (int64_t y = 0; y < one[1]; y++) memcpy(inside + (size_t)y * row, level + ((box[1] + y) * shape[2] + box[0]) * shape[3], row);
    if (acf_picture_sheet(path, inside, one, acf_images_bits(im), 1, 1, 0) != ACF_OK) code = cli_failed(command);
    free(inside);
    return code;
}
