/* What distinguishes image models: network sizes from the options, and what the file stores about the images. Used
 * by model.c. */
#ifndef ACF_MODEL_IMAGE_MODEL_H
#define ACF_MODEL_IMAGE_MODEL_H

#include "model/model.h"

/* The options image-scales ... image-components as network sizes for images of shape H, W, C. */
acf_image_sizes acf_image_sizes_read(const acf_options *o, const int64_t shape[3]);

/* A model whose network is declared but has no values yet. Takes config and map over, also on failure. Gives *out;
 * free with acf_model_free. */
acf_status acf_image_model_assemble(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                    acf_model **out);

/* Checks that the options o fit a model that is initialised from `from`. Network sizes and the map of levels must
 * agree. image-embed-deep may be larger: new blocks change nothing at first. path: the file of `from`. Fails:
 * ACF_EUSAGE with both values. */
acf_status acf_image_model_can_init_from(const acf_options *o, const acf_model *from, const char *path);

/* Copies the weights of `from` to m, after acf_image_model_can_init_from. Weights that only m has, such as a newly
 * trained best guess, stay. */
acf_status acf_image_model_init_from(acf_model *m, const acf_model *from);

/* Were its images padded? */
bool acf_image_model_padded(const acf_model *m);

/* {"height", "width", "channels", "bits"}; "frame" if images were padded; "map" for Gaussian dequantisation. Gives
 * *out (json_decref). */
acf_status acf_image_model_to_json(const acf_model *m, json_t **out);

/* Validates every value; kind: the kind of map in the config. Gives *map (acf_release). Fails: from.status,
 * ACF_EMEMORY. */
acf_status acf_image_model_from_json(acf_json_source from, const json_t *object, acf_image_map_kind kind,
                                     int64_t shape[3], acf_image_seen *seen, acf_image_map **map);

/* Refuses images whose shape or bits differ from the model's; what: their name. Fails: ACF_EDATA with both sizes. */
acf_status acf_image_model_check(const acf_model *m, const char *what, const int64_t shape[3], int bits);

#endif
