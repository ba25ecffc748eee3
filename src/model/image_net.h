/* The image model: one network for every conditional question about images of one size.
 *
 *     log p(x_u | x_o) = log p(z_u | x_o) + log|det dz_u/dx_u|       transformations (flow/image_flow.h), then a likelihood (like/image_like.h)
 *
 * It works on encoded images, real numbers (N,H,W,C): dequantisation, scaling and logit, and their log-determinants, are the data's. b marks the
 * pixels that are given, m those that are there; u = m·(1-b) is modelled. Pixels outside b and u are never read: padding, for instance. */
#ifndef ACF_MODEL_IMAGE_NET_H
#define ACF_MODEL_IMAGE_NET_H

#include "like/image_like.h"
#include "ops/polyline.h"

typedef struct acf_image_sizes {
    int64_t H, W, C;
    int scales, blocks; /* of the transformations; scales 0: none */
    int64_t width;
    const acf_image_like_kind *like;
    int64_t like_width; /* of the likelihood's network, */
    int like_blocks;    /* its blocks, */
    int embed_blocks;   /* and those of the network that reads what is observed */
    int embed_deep;     /* and of each of its coarse maps, down and back */
    int64_t components; /* of the pixelcnn's mixtures */
    bool guess;         /* best guesses are trained: the pixelcnn, too, has a network that says its mean */
} acf_image_sizes;

typedef struct acf_image_net acf_image_net;

/* Declares the parameters, without memory for their values; then the values, by seed; with train, the twin slabs too. Keeps dev. Gives *out;
 * free with acf_image_net_free. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_image_net_declare(acf_device *dev, const acf_image_sizes *sizes, acf_image_net **out);
acf_status acf_image_net_build(acf_image_net *net, uint64_t seed, bool train);
/* For inference and without initial values: all are 0, until a file's take their place. */
acf_status acf_image_net_allocate(acf_image_net *net);
void acf_image_net_free(acf_image_net *net);
acf_params *acf_image_net_params(acf_image_net *net);
const acf_image_sizes *acf_image_net_sizes(const acf_image_net *net);

/* How guesses and the truth are decoded before they are compared; without it the error is in encoded units. Copies both. */
void acf_image_net_decode(acf_image_net *net, const acf_knots *guess, const acf_knots *truth);

/* Images and what is asked of them, in host memory; or with `there`, in that of the device: then nothing is copied, so that a step can be
 * captured (tensor/tape_graph.h), and the arrays stay until the tape's next begin. */
typedef struct acf_image_query {
    int64_t N;
    const acf_real *x;   /* (N,H,W,C) encoded */
    const uint8_t *role; /* (N,H,W) of each pixel: given, asked or absent (base/pixel.h) */
    const uint64_t *id;  /* (N) global numbers, which key draws and dropout; NULL: 0, 1, 2 ... */
    bool there;
} acf_image_query;

/* What a batch looks like to the network: made once per step. Lives on the tape. pass NULL: inference. NULL after a failure, which the
 * calls below accept. */
typedef struct acf_image_view acf_image_view;
acf_image_view *acf_image_net_view(acf_tape *t, const acf_image_net *net, const acf_image_query *q,
                                   const acf_pass *pass);

/* (N): log p(x_u | x_o) in encoded units; 0 for an image with nothing to model. */
acf_tensor *acf_image_net_logp(acf_tape *t, const acf_image_view *v);

/* z (N,H,W,C) and its log|det| (N; may be NULL); and the way back. Where truths about the transformations can be seen. */
acf_tensor *acf_image_net_forward(acf_tape *t, const acf_image_view *v, acf_tensor **logdet);
acf_tensor *acf_image_net_inverse(acf_tape *t, const acf_image_view *v, acf_tensor *z);

/* (N): squared error of the best guess, the inverse of the latent mean, over the image's modelled numbers, decoded (acf_image_net_decode). NULL where the likelihood's mean
 * has no derivative (pixelcnn, unless sizes.guess). */
acf_tensor *acf_image_net_guess_error(acf_tape *t, const acf_image_view *v);

/* (N,H,W,C) on the device: the modelled numbers are drawn, or with d NULL are the best guess; others are as given, or 0. Tape not recording.
 * d->at and d->row_id are not used: the query has the ids. */
acf_tensor *acf_image_net_answer(acf_tape *t, const acf_image_view *v, const acf_draw *d);

/* The same to out (N,H,W,C) on the host, its modelled numbers alone; the query was there, too. */
acf_status acf_image_net_draw(acf_tape *t, const acf_image_view *v, const acf_draw *d, acf_real *out);
acf_status acf_image_net_guess(acf_tape *t, const acf_image_view *v, acf_real *out);

#endif
