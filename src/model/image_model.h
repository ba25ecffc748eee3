/* What makes a model one of images: the options as sizes of a network, and what its file says of the images. Used by model.c. */
#ifndef ACF_MODEL_IMAGE_MODEL_H
#define ACF_MODEL_IMAGE_MODEL_H

#include "model/model.h"

/* The options image-scales ... image-components as sizes for images of shape H, W, C. */
acf_image_sizes acf_image_sizes_read(const acf_options *o, const int64_t shape[3]);

/* A model whose network is declared but has no values yet. Takes config and map over, also on failure. Gives *out; free with acf_model_free. */
acf_status acf_image_model_assemble(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                    acf_model **out);

/* Options, in o, that a model which starts from `from` must have as they are there, and has: sizes of networks and the map of levels. image-embed-deep may be
 * more than there: such blocks do nothing at first. path: its file. Fails: ACF_EUSAGE with both values. */
acf_status acf_image_model_can_init_from(const acf_options *o, const acf_model *from, const char *path);

/* Gives m the weights of a model that is startable by its options. What only m has, as a best guess that was not learned before, stays. */
acf_status acf_image_model_init_from(acf_model *m, const acf_model *from);

/* Whether its images were padded. */
bool acf_image_model_padded(const acf_model *m);

/* {"height", "width", "channels", "bits"}, of padded images "frame" and of a map of bells "map". Gives *out (json_decref). */
acf_status acf_image_model_to_json(const acf_model *m, json_t **out);

/* Reading trusts nothing; kind: which map the config says it is. Gives *map (acf_release). Fails: from.status, ACF_EMEMORY. */
acf_status acf_image_model_from_json(acf_json_source from, const json_t *object, acf_image_map_kind kind,
                                     int64_t shape[3], acf_image_seen *seen, acf_image_map **map);

/* Refuses images that are not what the model was made of; what: their name. Fails: ACF_EDATA with both sizes. */
acf_status acf_image_model_check(const acf_model *m, const char *what, const int64_t shape[3], int bits);

#endif
