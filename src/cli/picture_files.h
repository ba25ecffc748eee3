/* Where answers about images go: a folder with a PNG file for each. Functions return the exit code, having said why. */
#ifndef ACF_CLI_PICTURE_FILES_H
#define ACF_CLI_PICTURE_FILES_H

#include "cli/cli.h"

#define CLI_SHEET_SIDE 96 /* pixels that small images of a sheet are enlarged to, about */
#define CLI_SHEET_GAP 2   /* between them */

/* Makes the folder where there is none. Refuses -, a file, and `source` (NULL: none), whose images would be written over. */
int cli_make_folder(const char *command, const char *path, const char *source);

/* Whole times that images of this shape (4) are enlarged, so that the longer side is at most `side` pixels; at least 1. */
int64_t cli_zoom(const int64_t *shape, int64_t side);

/* Takes the padding off n images of levels as im's, where they lie; shape: what they then are. */
int cli_unpad(const char *command, const acf_images *im, int64_t n, uint8_t *level, int64_t shape[4]);

/* Image i of levels of this shape as a PNG file. */
int cli_put_picture(const char *command, const char *path, const uint8_t *level, const int64_t *shape, int bits,
                    int64_t i);

#endif
