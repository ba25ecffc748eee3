/* The inside of a table model, for the two files that make one: net.c declares and builds it, net_query.c asks it. */
#ifndef ACF_MODEL_NET_PARTS_H
#define ACF_MODEL_NET_PARTS_H

#include "like/attention_like.h"
#include "like/categories.h"
#include "model/net.h"
#include "nn/mlp.h"

/* The columns of one part of the table. */
typedef struct acf_part {
    int64_t D;
    int32_t *column;             /* (D) their places in the table; owned */
    acf_param *column_embedding; /* (D,E), or NULL: the networks are not told the column */
    acf_mlp reader;              /* of the conditioning vector; layers = 0: none */
} acf_part;

struct acf_net {
    acf_device *dev;
    acf_params *ps;
    int64_t D;
    acf_part real, category;
    int32_t *first, *count; /* (category.D) classes; owned */
    acf_classes classes;
    int64_t anchor_size; /* components; 0: none */
    int64_t anchor_rank; /* factors, of a wide table; 0: a mixture */
    acf_param *gmm
        [4]; /* of the reals and the indicators: weight (K), mean (K,W), cov (K,W,W); or weight (R), mean (W), load (W,R), var (W) */
    int64_t indicators;
    int32_t *of, *at,
        *value;      /* (indicators) the category, among the categories and in the table, and the class; owned */
    acf_chain chain; /* behind it */
    acf_like like;
    acf_categories categories;
    acf_param *seen; /* (W,E): what known categories tell the reals' networks */
    bool
        attends; /* the attention likelihood stands in the place of `like` and `categories`; of `like` head, components and bounds are its own */
    acf_attention_like attention;
    int32_t *kind, *stage;                        /* (D), owned: acf_token_columns.kind; 0 of a category, 1 of a real */
    acf_arena *there;                             /* device memory, owned: classes, and these lists: */
    const int32_t *real_column, *category_column; /* (real.D), (category.D) */
    const int32_t *indicator_of, *indicator_value;         /* (indicators) */
    const int32_t *kind_there, *stage_there, *mixed_there; /* (D); mixed: all 0 */
};

#endif
