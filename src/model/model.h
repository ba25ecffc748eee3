/* A fitted model: its options (config), how it encodes a table (encoder), and its network. One file holds all of it.
 * A model of images has its own network, and a map of levels (image/image_map.h) instead of an encoder.
 *
 * A table model may be an ensemble of K members, each fitted from another seed. Its density is their mixture, p(x_u
 * | x_o) = 1/K sum_k p_k(x_u | x_o) (infer/session.h). Members form a list; the first one stands for the whole and
 * holds what they share. */
#ifndef ACF_MODEL_MODEL_H
#define ACF_MODEL_MODEL_H

#include "image/image_map.h"
#include "image/image_ops.h"
#include "model/fit_record.h"
#include "model/gmm_draws.h"
#include "model/image_net.h"
#include "model/net.h"
#include "table/schema.h"

#define ACF_MODEL_FORMAT 6  /* format_version of files it writes, and the newest it reads */
#define ACF_ENSEMBLE_MAX 16 /* as in base/option_table.h */

typedef struct acf_image_seen {
    acf_image_box frame;   /* the area without padding; the whole image if unknown */
    bool rotated, flipped; /* training added copies rotated by quarter turns; copies flipped left to right */
} acf_image_seen;

typedef struct acf_model {
    acf_device *dev; /* closed with the model if `owns_dev` is set */
    bool owns_dev;
    acf_options *config; /* recorded options; owned, like the rest */
    acf_encoder *encoder;
    acf_schema *schema; /* of the source file; NULL: made from a matrix */
    acf_net *net;
    acf_image_net *image;          /* image models only: then encoder, schema and net are NULL */
    acf_image_map *map;            /* map of levels; NULL for tables */
    acf_image_seen seen;           /* more about the training images */
    acf_precision query_precision; /* precision of matrix products in queries; float at first */
    int64_t orders;                /* orders of the attention likelihood (acf_session_set_orders); 0: one */
    double log_temperature;        /* of draws of images; 0 at first */
    bool at_once;                  /* all hidden pixels in a single pass, whatever was learned */
    acf_fit_record record;         /* how it was trained, if recorded */
    acf_gmm_draws *draws;          /* parameter draws of its Gaussian mixture, owned; NULL: none */
    struct acf_donors *donors;     /* nearest-neighbour donors (donors.h), owned by the first member; NULL: none */
    /* The next ensemble member, owned; NULL: the last. It has its own config, encoder, net and record, and shares the
     * columns and the device of the first. */
    struct acf_model *next;
} acf_model;

/* Puts a model together. Keeps dev. Takes config and encoder over, also on failure. Gives *out; free with
 * acf_model_free. */
acf_status acf_model_make(acf_device *dev, acf_options *config, acf_encoder *encoder, uint64_t seed, bool train,
                          acf_model **out);

/* The same for images of H x W pixels and C channels. Takes config and map over, also on failure. */
acf_status acf_model_make_images(acf_device *dev, acf_options *config, const int64_t shape[3], acf_image_map *map,
                                 uint64_t seed, bool train, acf_model **out);

/* Appends an ensemble member to m, which then owns it. */
void acf_model_append(acf_model *m, acf_model *member);

/* The parameters of the network, table or image, of this member alone. */
acf_params *acf_model_params(const acf_model *m);

/* Writes the file with all ensemble members. An existing file stays until the new one is complete. Fails: ACF_EIO,
 * ACF_EMEMORY. */
acf_status acf_model_write(const acf_model *m, const char *path);

/* Reads a model for queries. Files from outside are hostile: every length, shape, type, name and number is checked.
 * Keeps dev. Fails: ACF_EIO, ACF_EMODEL with file and what is wrong, ACF_EMEMORY. */
acf_status acf_model_read(acf_device *dev, const char *path, acf_model **out);

#endif
