/* Completed images, found again by the names of the true ones: what `acflow impute` or another program has left in a folder.
 *
 *     true image   photo.jpg, or number 17 of the 200 in digits.idx.gz
 *     completed    photo.png or photo.jpg               one completion
 *                  photo.1.png, photo.2.png, ...        draws            (digits-017.1.png)
 *                  photo.guess.png                      the best guess
 *
 * Where the true images end in .jpg and .png, endings stay: photo.jpg.1.png (acf_images_write_file_name). Other files, such as a contact sheet, are left out. */
#ifndef ACF_INFER_IMAGE_MATCH_H
#define ACF_INFER_IMAGE_MATCH_H

#include "infer/image_evaluate.h"

typedef struct acf_image_matches {
    acf_images *done;  /* as read; owned, like the rest */
    uint8_t *level;    /* (sets,N,H,W,C) in the order of the true images */
    acf_fill_set *set; /* (sets): draws by number, the best guess, then others */
    int64_t sets;
} acf_image_matches;

/* Reads path: a folder, of which each set must have an image for every true one; or any other source of images, which must hold as many as there are
 * true ones, in the same order. The CPU device lends its threads. Gives what is in *out; free with acf_image_matches_free.
 * Fails: ACF_EDATA (none matches, an image is missing in a set, another size), as acf_images_read does, ACF_EMEMORY. */
acf_status acf_image_match(const acf_device *dev, const char *path, const acf_images *truth, bool strict,
                           acf_image_matches *out);
void acf_image_matches_free(acf_image_matches *m);

#endif
