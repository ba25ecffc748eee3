/* Files of images: see picture_files.h. */
#include "cli/picture_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
