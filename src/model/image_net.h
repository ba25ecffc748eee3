/* The image model: one network for every conditional query about images of one size.
 *
 *     log p(x_u | x_o) = log p(z_u | x_o)        likelihood (like/image_like.h)
 *                      + log|det dz_u/dx_u|      flow (flow/image_flow.h)
 *
 * It works on encoded images, real numbers (N,H,W,C). The caller handles dequantisation, scaling and logit with
 * their log-determinants. b marks given pixels, m pixels that exist; u = m·(1-b) is modelled. Pixels outside b and
 * u, such as padding, are never read. */
#ifndef ACF_MODEL_IMAGE_NET_H
#define ACF_MODEL_IMAGE_NET_H

#include "like/image_like.h"
#include "ops/polyline.h"

typedef struct acf_image_sizes {
    int64_t H, W, C;
    int scales, blocks; /* of the flow; scales 0: none */
    int64_t width;
    const acf_image_like_kind *like;
    int64_t like_width; /* of the likelihood's network */
    int like_blocks;    /* of the likelihood's network */
    int embed_blocks;   /* blocks of the network that reads observed pixels */
    int embed_deep;     /* blocks of each of its coarse maps, downwards and upwards */
    int64_t components; /* of the pixelcnn's mixtures */
    bool guess;         /* train best guesses: adds a mean network to the pixelcnn */
} acf_image_sizes;

typedef struct acf_image_net acf_image_net;

/* declare: parameters without memory for their values. build: initial values by seed; with train, also the twin
 * slabs. Keeps dev. Gives *out; free with acf_image_net_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_image_net_declare(acf_device *dev, const acf_image_sizes *sizes, acf_image_net **out);
acf_status acf_image_net_build(acf_image_net *net, uint64_t seed, bool train);
/* For inference, without initial values: all are 0 until they are read from a file. */
acf_status acf_image_net_allocate(acf_image_net *net);
void acf_image_net_free(acf_image_net *net);
acf_params *acf_image_net_params(acf_image_net *net);
const acf_image_sizes *acf_image_net_sizes(const acf_image_net *net);

/* Sets how guesses and the truth are decoded before they are compared. Without it the error is in encoded units.
 * Copies both. */
void acf_image_net_decode(acf_image_net *net, const acf_knots *guess, const acf_knots *truth);

/* Images and roles of their pixels, in host memory. With `there` they are in device memory: nothing is copied, so
 * that a step can be captured (tensor/tape_graph.h), and the arrays must stay until the tape's next begin. */
typedef struct acf_image_query {
    int64_t N;
    const acf_real *x;   /* (N,H,W,C) encoded */
    const uint8_t *role; /* (N,H,W) of each pixel: given, target or absent (base/pixel.h) */
    const uint64_t *id;  /* (N) global numbers, which key draws and dropout; NULL: 0, 1, 2 ... */
    bool there;
} acf_image_query;

/* A batch as the network sees it: made once per step, lives on the tape. pass NULL: inference. NULL after a failure;
 * the calls below accept that. */
typedef struct acf_image_view acf_image_view;
acf_image_view *acf_image_net_view(acf_tape *t, const acf_image_net *net, const acf_image_query *q,
                                   const acf_pass *pass);

/* (N): log p(x_u | x_o) in encoded units; 0 for an image with nothing to model. */
acf_tensor *acf_image_net_logp(acf_tape *t, const acf_image_view *v);

/* z (N,H,W,C) and its log|det| (N; may be NULL); and the inverse. For tests of the flow. */
acf_tensor *acf_image_net_forward(acf_tape *t, const acf_image_view *v, acf_tensor **logdet);
acf_tensor *acf_image_net_inverse(acf_tape *t, const acf_image_view *v, acf_tensor *z);

/* (N): squared error of the best guess (the inverse of the latent mean) over the image's modelled numbers, decoded
 * as acf_image_net_decode says. NULL if the likelihood's mean has no derivative (pixelcnn without sizes.guess). */
acf_tensor *acf_image_net_guess_error(acf_tape *t, const acf_image_view *v);

/* (N,H,W,C) on the device: a draw of the modelled numbers, or with d NULL their best guess; other numbers are as
 * given, or 0. The tape must not record. d->at and d->row_id are not used: the query has the ids. */
acf_tensor *acf_image_net_answer(acf_tape *t, const acf_image_view *v, const acf_draw *d);

/* The same to out (N,H,W,C) on the host, modelled numbers only. The query must be on the host, too. */
acf_status acf_image_net_draw(acf_tape *t, const acf_image_view *v, const acf_draw *d, acf_real *out);
acf_status acf_image_net_guess(acf_tape *t, const acf_image_view *v, acf_real *out);

#endif
