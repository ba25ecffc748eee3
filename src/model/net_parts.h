/* Internals of the table model, shared by net.c (declares and builds it), net_query.c (answers queries) and
 * net_calibrate.c. */
#ifndef ACF_MODEL_NET_PARTS_H
#define ACF_MODEL_NET_PARTS_H

#include "like/attention_like.h"
#include "like/categories.h"
#include "model/net.h"
#include "nn/mlp.h"

/* The columns of one part of the table. */
typedef struct acf_part {
    int64_t D;
    int32_t *column;             /* (D) their indices in the table; owned */
    acf_param *column_embedding; /* (D,E); NULL: none */
    acf_mlp reader;              /* network that reads the conditioning vector; layers = 0: none */
} acf_part;

struct acf_net {
    acf_device *dev;
    acf_params *ps;
    int64_t D;
    acf_part real, category;
    int32_t *first, *count; /* (category.D) classes; owned */
    acf_classes classes;
    int64_t gmm_components; /* components; 0: none */
    int64_t gmm_factors;    /* factors, for a wide table; 0: a mixture */
    /* Over the reals and the indicators: weight (K), mean (K,W), cov (K,W,W); or of factors weight (R), mean (W),
     * load (W,R), var (W). */
    acf_param *gmm[4];
    int64_t indicators;
    /* (indicators) the category's index among the categories and in the table, and the class; owned. */
    int32_t *of, *at, *value;
    acf_chain chain; /* follows the mixture */
    acf_like like;
    acf_categories categories;
    acf_param *seen; /* (W,E): embeddings of known categories for the reals' networks */
    /* The attention likelihood replaces `like` and `categories`; it uses only head, components and bounds of `like`. */
    bool attends;
    acf_attention_like attention;
    int32_t *kind, *stage;                        /* (D), owned: acf_token_columns.kind; 0 of a category, 1 of a real */
    acf_arena *there;                             /* device memory, owned: classes, and these lists: */
    const int32_t *real_column, *category_column; /* (real.D), (category.D) */
    const int32_t *indicator_of, *indicator_value;         /* (indicators) */
    const int32_t *kind_there, *stage_there, *mixed_there; /* (D); mixed: all 0 */
};

#endif
