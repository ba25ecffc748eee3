/* Files of images: see picture_files.h. */
#include "cli/picture_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int cli_make_folder(const char *command, const char *path, const char *source) {
    struct stat to, from;
    if (strcmp(path, "-") == 0)
        return cli_usage(command, "images cannot go to standard output; give a folder: -o FOLDER");
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        cli_say(CLI_ERROR, "cannot make the folder '%s': %s", path, strerror(errno));
        return acf_status_exit(ACF_EIO);
    }
    if (stat(path, &to) == 0 && !S_ISDIR(to.st_mode))
        return cli_usage(command, "'%s' is a file; images go to a folder: -o FOLDER", path);
    if (source && stat(source, &from) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return cli_usage(
            command, "'%s' is the folder of the input images, which could be overwritten; give another folder", path);
    return 0;
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

int64_t cli_zoom(const int64_t *shape, int64_t side) {
    const int64_t longer = shape[1] > shape[2] ? shape[1] : shape[2];
    return longer < side ? side / longer : 1;
}

int cli_unpad(const char *command, const acf_images *im, int64_t n, uint8_t *level, int64_t shape[4]) {
    int64_t full[4], box[4];
    if (acf_images_shape(im, full) != ACF_OK || acf_images_frame(im, box) != ACF_OK) return cli_failed(command);
    const int64_t one[4] = {n, box[3] - box[1], box[2] - box[0], full[3]}, row = one[2] * one[3];
    for (int64_t k = 0; k < n * one[1]; k++) {
        const int64_t i = k / one[1], y = box[1] + k % one[1];
        memmove(level + k * row, level + ((i * full[1] + y) * full[2] + box[0]) * full[3], (size_t)row);
    }
    memcpy(shape, one, sizeof one);
    return 0;
}

int cli_put_picture(const char *command, const char *path, const uint8_t *level, const int64_t *shape, int bits,
                    int64_t i) {
    const int64_t one[4] = {1, shape[1], shape[2], shape[3]};
    const acf_status status = acf_picture_sheet(path, level + i * shape[1] * shape[2] * shape[3], one, bits, 1, 1, 0);
    return status == ACF_OK ? 0 : cli_failed(command);
}
