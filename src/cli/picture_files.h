/* Files of image answers: a folder with a PNG file for each. Functions return the exit code, after a message. */
#ifndef ACF_CLI_PICTURE_FILES_H
#define ACF_CLI_PICTURE_FILES_H

#include "cli/cli.h"

#define CLI_SHEET_SIDE 96 /* approximate size in pixels that small images of a sheet are enlarged to */
#define CLI_SHEET_GAP 2   /* between them */

/* Makes the folder if there is none. Refuses -, a file, and `source` (NULL: none), whose images would be
 * overwritten. */
int cli_make_folder(const char *command, const char *path, const char *source);

/* Whole factor by which images of this shape (4) are enlarged, so that the longer side has at most `side` pixels; at
 * least 1. */
int64_t cli_zoom(const int64_t *shape, int64_t side);

/* Removes the padding of im from n images of levels, in place; shape: their new shape. */
int cli_unpad(const char *command, const acf_images *im, int64_t n, uint8_t *level, int64_t shape[4]);

/* Writes image i of levels of this shape as a PNG file. */
int cli_put_picture(const char *command, const char *path, const uint8_t *level, const int64_t *shape, int bits,
                    int64_t i);

#endif
