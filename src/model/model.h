/* A fitted model: what it is made of (config), how it reads a table (encoder), and the network. One file holds all of it. A model of images has
 * a network of its own, and a map of levels (image/image_map.h) in place of an encoder.
 *
 * A model of a table may have several members, each a model in its own right that was fitted from another seed; what it says is their mixture,
 * p(x_u | x_o) = 1/K sum_k p_k(x_u | x_o) (infer/session.h). They are a list: the first stands for all of them and has what they share. */
#ifndef ACF_MODEL_MODEL_H
#define ACF_MODEL_MODEL_H

#include "image/image_map.h"
#include "image/image_ops.h"
#include "model/fit_record.h"
#include "model/gmm_draws.h"
#include "model/image_net.h"
#include "model/net.h"
#include "table/schema.h"

#define ACF_MODEL_FORMAT 6  /* format_version of the files it writes, the newest it reads */
#define ACF_ENSEMBLE_MAX 16 /* as in base/option_table.h */

typedef struct acf_image_seen {
    acf_image_box frame;   /* what is not padding; all, where that is not known */
    bool rotated, flipped; /* each was learned with its copies: turned by quarters; left and right exchanged */
} acf_image_seen;

typedef struct acf_model {
    acf_device *dev; /* closed with the model when `owns_dev` is set */
    bool owns_dev;
    acf_options *config; /* recorded options; owned, like the rest */
    acf_encoder *encoder;
    acf_schema *schema; /* of the file the model was made from; NULL: made from a matrix */
    acf_net *net;
    acf_image_net *image;          /* of a model of images: then encoder, schema and net are NULL; else it is */
    acf_image_map *map;            /* of the levels of these images; else NULL */
    acf_image_seen seen;           /* what is known of these images besides their shape */
    acf_precision query_precision; /* what questions multiply: float at first */
    int64_t orders;                /* that sessions ask the attention likelihood in (acf_session_set_orders); 0: one */
    double log_temperature;        /* of draws of images: 0 at first */
    bool at_once;                  /* hidden pixels are asked for in one round, whatever was learned */
    acf_fit_record record;         /* how it was trained, where that is known */
    acf_gmm_draws *draws;          /* parameter draws of its Gaussian mixture, owned; NULL: none */
    struct acf_donors *donors;     /* rows that are looked up (donors.h), owned by the first member; NULL: none */
    struct acf_model *
        next; /* the member after this one, owned: config, encoder, net and record of its own, the columns and the device of the first; NULL: the last */
} acf_model;

/* Puts a model together. Keeps dev. Takes config and encoder over, also on failure. Gives *out; free with acf_model_free. */
acf_status acf_model_make(acf_device *dev, acf_options *config, acf_encoder *encoder, uint64_t seed, bool train,
                          acf_model **out);

/* The same for images of H x W pixels and C channels. Takes config and map over, also on failure. */
acf_status acf_model_make_images(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                 uint64_t seed, bool train, acf_model **out);

/* Puts a member behind the last of m, which owns it from then on. */
void acf_model_append(acf_model *m, acf_model *member);

/* The parameters of either network, of this member alone. */
acf_params *acf_model_params(const acf_model *m);

/* Writes the file, with all members; the one that was there stays until the new one is whole. Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_model_write(const acf_model *m, const char *path);

/* Reads one, for queries. A file from outside is hostile: every length, shape, type, name and number is checked.
 * Keeps dev. Fails: ACF_EIO, ACF_EMODEL with file and what is wrong, ACF_EMEMORY. */
acf_status acf_model_read(acf_device *dev, const char *path, acf_model **out);

#endif
