/* Finds completed images by the names of the true ones. Reads what `acflow impute` or another program wrote to a
 * folder.
 *
 *     true image   photo.jpg, or number 17 of the 200 in digits.idx.gz
 *     completed    photo.png or photo.jpg               one completion
 *                  photo.1.png, photo.2.png, ...        draws            (digits-017.1.png)
 *                  photo.guess.png                      the best guess
 *
 * If the true images have both endings .jpg and .png, names keep the ending: photo.jpg.1.png
 * (acf_images_write_file_name). Other files, such as a contact sheet, are ignored. */
#ifndef ACF_INFER_IMAGE_MATCH_H
#define ACF_INFER_IMAGE_MATCH_H

#include "infer/image_evaluate.h"

typedef struct acf_image_matches {
    acf_images *done;  /* as read; owned, like the rest */
    uint8_t *level;    /* (sets,N,H,W,C) in the order of the true images */
    acf_fill_set *set; /* (sets): draws by number, the best guess, then others */
    int64_t sets;
} acf_image_matches;

/* Reads path. In a folder each set needs an image for every true one. Any other source needs as many images as there
 * are true ones, in the same order. Uses the CPU device's threads. Gives *out; free with acf_image_matches_free.
 * Fails: ACF_EDATA (none matches, an image is missing in a set, another size), as acf_images_read does, ACF_EMEMORY. */
acf_status acf_image_match(const acf_device *dev, const char *path, const acf_images *truth, bool strict,
                           acf_image_matches *out);
void acf_image_matches_free(acf_image_matches *m);

#endif
