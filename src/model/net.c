/* The table model: see net.h. Composes; every derivative is in ops/.
 *
 * Columns are dealt to two parts, reals to the flow and categories to the autoregressive model, each with a subset over its own
 * columns. Their conditioning vectors, side by side:
 *
 *     categories    x·b, b, m of the reals | b, m of the categories    | embeddings of the given ones | what the anchor expects
 *     reals         x·b, b, m of the reals | b, seen of the categories | embeddings of those given or modelled
 *
 * With context-width W, a network reads that vector once per row and puts W numbers of its own beside it. The recurrent networks run
 * once per modelled cell, so what depends on the row alone is cheaper to work out here than in each of them.
 */
#include "model/net.h"

#include "like/categories.h"
#include "ops/arith.h"
#include "ops/cells.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/mog.h"
#include "ops/sqerr.h"

#include <string.h>

#define LOG_SCALE_MIN (-7.0) /* of the mixture, in encoded units: a spike of e^-7 standard deviations */
#define LOG_SCALE_MAX 7.0
#define ANCHOR_WORK 60000 /* multiply-adds of a row's factors, K D³/3: beyond, the anchor would cost more than the networks */
#define READER_SITE 3968u /* of dropout: behind all the sites of flows and likelihoods */

/* The columns of one part of the table. */
typedef struct part {
    int64_t D;
    int32_t *column; /* (D) their places in the table; owned */
    acf_param *identity; /* (D,E), or NULL: the networks are not told the column */
    acf_mlp reader;      /* of the conditioning vector; layers = 0: none */
} part;

struct acf_net {
    acf_device *dev;
    acf_params *ps;
    int64_t D;
    part real, category;
    int32_t *first, *count; /* (category.D) classes; owned */
    acf_classes classes;
    int64_t anchor_size; /* components; 0: none */
    acf_param *anchor[3]; /* of the reals and the indicators: weight (K), mean (K,W), cov (K,W,W) */
    int64_t indicators;
    int32_t *of, *at, *value; /* (indicators) the category, among the categories and in the table, and the class; owned */
    acf_chain chain;      /* behind it */
    acf_like like;
    acf_categories categories;
    acf_param *seen; /* (W,E): what known categories tell the reals' networks */
    acf_arena *there; /* device memory, owned: classes, and the indicators' lists: */
    const int32_t *indicator_of, *indicator_value; /* (indicators) */
};

acf_params *acf_net_params(acf_net *net) { return net->ps; }
int64_t acf_net_columns(const acf_net *net) { return net->D; }
int64_t acf_net_anchor_size(const acf_net *net) { return net->anchor_size; }
acf_param *const *acf_net_anchor(const acf_net *net) { return net->anchor; }

const int32_t *acf_net_reals(const acf_net *net, int64_t *n) {
    *n = net->real.D;
    return net->real.column;
}

int64_t acf_net_indicators(const acf_net *net, const int32_t **column, const int32_t **value) {
    *column = net->at, *value = net->value;
    return net->anchor_size ? net->indicators : 0;
}

/* ---- creation ---------------------------------------------------------------------------------------------------------- */

/* Deals the columns; false when memory ran out. */
static bool deal(acf_net *net, const acf_column *column) {
    size_t bytes = (size_t)net->D * sizeof(int32_t);
    net->real.column = acf_alloc(bytes, "a list of columns");
    net->category.column = acf_alloc(bytes, "a list of columns");
    net->first = acf_alloc(bytes, "a list of classes");
    net->count = acf_alloc(bytes, "a list of classes");
    if (!net->real.column || !net->category.column || !net->first || !net->count) return false;
    int32_t classes = 0;
    for (int64_t j = 0; j < net->D; j++) {
        bool is_real = !column || column[j].classes == 0;
        part *p = is_real ? &net->real : &net->category;
        if (!is_real) {
            net->first[p->D] = classes, net->count[p->D] = column[j].classes;
            classes += column[j].classes;
        }
        p->column[p->D++] = (int32_t)j;
    }
    net->classes = (acf_classes){net->category.D, net->first, net->count};
    return true;
}

static acf_status declare_identity(acf_net *net, part *p, const char *name, int64_t width) {
    if (!width) return ACF_OK;
    p->identity = acf_param_add(net->ps, name, ACF_INIT_NORMAL, 1, 2, (int64_t[]){p->D, width});
    if (!p->identity) return acf_error_status();
    p->identity->decay = false; /* an identity, not a weight */
    return ACF_OK;
}

/* Width of what all networks are told: the reals' values and masks, the categories' masks and embeddings. */
static int64_t context_width(const acf_net *net, int64_t embedding) {
    return 3 * net->real.D + net->category.D * (2 + embedding);
}

static acf_flow_sizes sizes_of(const acf_options *o, int64_t D, int64_t context) {
    return (acf_flow_sizes){
        .D = D,
        .context = context,
        .identity = acf_options_int(o, "identity"),
        .width = acf_options_int(o, "mlp-width"),
        .hidden = (int)acf_options_int(o, "mlp-layers"),
        .units = acf_options_int(o, "coupling-units"),
        .gru_layers = (int)acf_options_int(o, "coupling-layers"),
        .deep = acf_options_bool(o, "deep-context"),
        .rank = acf_options_int(o, "rank"),
        .bound = acf_options_real(o, "scale-bound"),
    };
}

/* Indicators of all classes of a category but the first, categories with the fewest classes first, while `width` has room. */
static acf_status choose_indicators(acf_net *net, int64_t width) {
    const int64_t room = width - net->real.D, Dc = net->category.D;
    if (room < 1 || !Dc) return ACF_OK;
    for (int i = 0; i < 3; i++) {
        int32_t **list = (int32_t **[]){&net->of, &net->at, &net->value}[i];
        if (!(*list = acf_alloc((size_t)room * sizeof **list, "a list of classes"))) return ACF_EMEMORY;
    }
    for (int32_t classes = 2; classes <= room + 1; classes++)
        for (int64_t k = 0; k < Dc; k++) {
            if (net->count[k] != classes || net->indicators + classes - 1 > room) continue;
            for (int32_t c = 1; c < classes; c++, net->indicators++)
                net->of[net->indicators] = (int32_t)k, net->at[net->indicators] = net->category.column[k], net->value[net->indicators] = c;
        }
    return ACF_OK;
}

/* As many components as the option says, or as the width allows: a table of 8 columns has room for all, one of 50 for one, and where
 * not even one fits there is no anchor. */
static acf_status declare_anchor(acf_net *net, const acf_options *o) {
    if (!acf_options_int(o, "anchor")) return ACF_OK;
    ACF_TRY(choose_indicators(net, acf_options_int(o, "anchor-width")));
    const int64_t W = net->real.D + net->indicators;
    const int64_t K = acf_min(acf_options_int(o, "anchor"), W > 1000 ? 0 : ANCHOR_WORK / acf_max(W * W * W / 3, 1));
    if (K < 1) return ACF_OK;
    net->anchor_size = K;
    net->anchor[0] = acf_param_add(net->ps, "anchor.weight", ACF_INIT_CONST, 1, 1, &K);
    net->anchor[1] = acf_param_add(net->ps, "anchor.mean", ACF_INIT_CONST, 0, 2, (int64_t[]){K, W});
    net->anchor[2] = acf_param_add(net->ps, "anchor.cov", ACF_INIT_CONST, 0, 3, (int64_t[]){K, W, W});
    for (int i = 0; i < 3; i++) {
        if (!net->anchor[i]) return acf_error_status();
        net->anchor[i]->decay = false;
    }
    return ACF_OK;
}

/* Unit covariances. */
static acf_status fill_anchor(acf_net *net) {
    const int64_t K = net->anchor_size, D = net->real.D + net->indicators, n = K * D * D;
    if (!K) return ACF_OK;
    acf_real *cov = acf_alloc_zero((size_t)n * sizeof *cov, "covariances");
    if (!cov) return ACF_EMEMORY;
    for (int64_t i = 0; i < K * D; i++) cov[i * D + i % D] = 1;
    acf_status status = acf_device_copy(net->dev, net->anchor[2]->t.data, cov, (size_t)n * sizeof *cov, ACF_TO_DEVICE);
    acf_release(cov);
    return status;
}

static const acf_like_kind *likelihood(const acf_options *o) { return acf_like_kinds[acf_options_choice(o, "likelihood")]; }

/* Categories follow the likelihood: a set, or else a GRU. */
bool acf_net_recurrent(const acf_options *o) { return likelihood(o) != &acf_like_set || strstr(acf_options_text(o, "flow"), acf_flow_rnn.name); }

/* Declares the part's reader; *context is widened by what it adds. */
static acf_status declare_reader(acf_net *net, part *p, const char *name, const acf_options *o, uint32_t site, int64_t *context) {
    int64_t width = acf_options_int(o, "context-width");
    if (!width) return ACF_OK;
    acf_mlp_shape shape = {*context, width, width, (int)acf_options_int(o, "context-layers"), ACF_RELU, 1};
    *context += width;
    return acf_mlp_declare(&p->reader, net->ps, name, &shape, site);
}

static acf_status declare_reals(acf_net *net, const acf_options *o, int64_t context) {
    ACF_TRY(declare_anchor(net, o));
    ACF_TRY(declare_reader(net, &net->real, "context", o, READER_SITE, &context));
    acf_flow_sizes size = sizes_of(o, net->real.D, context);
    ACF_TRY(declare_identity(net, &net->real, "columns", size.identity));
    ACF_TRY(acf_chain_declare(&net->chain, net->ps, "flow", acf_options_text(o, "flow"), &size));
    net->like = (acf_like){.kind = likelihood(o), .size = size, .apart = net->chain.n > 0 || net->anchor_size > 0};
    net->like.size.units = acf_options_int(o, "likelihood-units");
    net->like.size.gru_layers = (int)acf_options_int(o, "likelihood-layers");
    net->like.components = acf_options_int(o, "components");
    net->like.lo = LOG_SCALE_MIN, net->like.hi = LOG_SCALE_MAX;
    ACF_TRY(net->like.kind->declare(&net->like, net->ps, "likelihood"));
    if (!net->category.D) return ACF_OK;
    net->seen = acf_category_table(net->ps, "seen", &net->classes, acf_options_int(o, "embedding"));
    return net->seen ? ACF_OK : acf_error_status();
}

static acf_status declare_categories(acf_net *net, const acf_options *o, int64_t context) {
    int64_t identity = acf_options_int(o, "identity");
    if (net->anchor_size && net->indicators) context += net->real.D + net->indicators;
    ACF_TRY(declare_reader(net, &net->category, "category-context", o, READER_SITE + ACF_MLP_LAYERS, &context));
    ACF_TRY(declare_identity(net, &net->category, "category-columns", identity));
    const acf_categories_shape shape = {
        .classes = net->classes,
        .embedding = acf_options_int(o, "embedding"),
        .identity = identity,
        .context = context,
        .units = acf_options_int(o, "likelihood-units"),
        .layers = (int)acf_options_int(o, "likelihood-layers"),
        .deep = acf_options_bool(o, "deep-context"),
        .set = likelihood(o) == &acf_like_set,
        .mask_at = 3 * net->real.D, /* see context() */
        .class_at = 3 * net->real.D + 2 * net->category.D,
    };
    return acf_categories_declare(&net->categories, net->ps, "categories", &shape);
}

static acf_status declare(acf_net *net, const acf_options *o) {
    int64_t context = context_width(net, acf_options_int(o, "embedding"));
    if (net->real.D) ACF_TRY(declare_reals(net, o, context));
    if (net->category.D) ACF_TRY(declare_categories(net, o, context));
    return ACF_OK;
}

acf_status acf_net_declare(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, acf_net **out) {
    acf_status status = ACF_OK;
    int64_t classes = 0;
    if (D < 1) return acf_fail(ACF_ESHAPE, "a table model of %lld columns; expected at least one", (long long)D);
    for (int64_t j = 0; column && j < D; j++) classes += column[j].classes;
    if (classes > INT32_MAX) return acf_fail(ACF_ESHAPE, "%lld classes in all columns; expected fewer than 2^31", (long long)classes);
    acf_net *net = acf_alloc_zero(sizeof *net, "a table model");
    if (!net) return ACF_EMEMORY;
    net->dev = dev, net->D = D;
    if (!deal(net, column)) {
        status = ACF_EMEMORY;
        goto done;
    }
    ACF_TRY_DONE(acf_params_create(dev, &net->ps));
    ACF_TRY_DONE(declare(net, o));
    *out = net;
done:
    if (status) acf_net_free(net);
    return status;
}

/* n integers to device memory. */
static bool put_ints(acf_net *net, int32_t *to, const int32_t *x, int64_t n) {
    return acf_device_copy(net->dev, to, x, (size_t)n * sizeof *x, ACF_TO_DEVICE) == ACF_OK;
}

/* Lists that operations read on the device, there once for all: a step that is captured copies nothing. */
static acf_status place_lists(acf_net *net) {
    const int64_t D = net->category.D, n = net->anchor_size ? net->indicators : 0;
    if (!D || net->there) return ACF_OK;
    ACF_TRY(acf_arena_create(&net->dev->memory, (size_t)(2 * D + 2 * n) * sizeof(int32_t), &net->there));
    int32_t *to = acf_arena_alloc(net->there, (size_t)(2 * D + 2 * n) * sizeof *to);
    if (!to) return ACF_EMEMORY;
    net->indicator_of = to + 2 * D, net->indicator_value = to + 2 * D + n, net->classes.there = to;
    bool fine = put_ints(net, to, net->first, D) && put_ints(net, to + D, net->count, D);
    if (n) fine = fine && put_ints(net, to + 2 * D, net->of, n) && put_ints(net, to + 2 * D + n, net->value, n);
    if (!fine) return acf_error_status();
    net->categories.classes = net->classes;
    return acf_device_sync(net->dev);
}

acf_status acf_net_build(acf_net *net, uint64_t seed, bool train) {
    ACF_TRY(acf_params_build(net->ps, seed, train));
    ACF_TRY(place_lists(net));
    return fill_anchor(net);
}

acf_status acf_net_restart(acf_net *net, uint64_t seed) {
    ACF_TRY(acf_params_restart(net->ps, seed));
    return fill_anchor(net);
}

acf_status acf_net_create(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, uint64_t seed, bool train,
                          acf_net **out) {
    acf_net *net;
    ACF_TRY(acf_net_declare(dev, column, D, o, &net));
    acf_status status = acf_net_build(net, seed, train);
    if (status) acf_net_free(net);
    else *out = net;
    return status;
}

void acf_net_free(acf_net *net) {
    if (!net) return;
    acf_params_free(net->ps);
    acf_release(net->real.column);
    acf_release(net->category.column);
    acf_release(net->first);
    acf_release(net->count);
    acf_release(net->of);
    acf_release(net->at);
    acf_release(net->value);
    acf_arena_free(net->there);
    acf_release(net);
}

/* ---- a batch as the network sees it ---------------------------------------------------------------------------------------- */

struct acf_view {
    const acf_net *net;
    const acf_batch *batch;
    acf_pass pass;    /* with the ids of the rows */
    bool trains;      /* false: there is no pass */
    const acf_subset *u_real, *u_category;
    acf_tensor *x;       /* (N,Dr) encoded; 0 where neither given nor modelled */
    acf_tensor *common;  /* (N,3Dr): x·b, b, m of the reals */
    const uint8_t *given; /* (N,Dr) on the device: b of the reals */
    acf_mog_classes classes; /* what the anchor sees of the categories */
    uint8_t *b, *seen;   /* (N,Dc) on the device: categories that are given; given or modelled */
    int32_t *code;       /* (N,Dc) on the device; a draw writes the modelled ones */
    const uint64_t *id;  /* (N) on the device */
};

/* n bytes on the device, copied from the host; NULL, and a failed tape, when that did not work. */
static void *to_device(acf_tape *t, const void *host, size_t bytes) {
    void *p = host ? acf_arena_alloc(t->mem, bytes) : NULL;
    if (p && acf_device_copy(t->dev, p, host, bytes, ACF_TO_DEVICE) == ACF_OK) return p;
    acf_tape_fail(t, NULL);
    return NULL;
}

/* The cells of one part's columns, from a (N,D) array of bytes to one of (N,p->D) in the step's host memory. */
static uint8_t *pick_bytes(acf_tape *t, const part *p, const acf_batch *batch, const uint8_t *from) {
    uint8_t *to = acf_arena_alloc(t->host, (size_t)(batch->N * p->D));
    for (int64_t i = 0; to && i < batch->N; i++)
        for (int64_t k = 0; k < p->D; k++) to[i * p->D + k] = from[i * batch->D + p->column[k]];
    if (!to) acf_tape_fail(t, NULL);
    return to;
}

/* x, common and u_real. What is neither given nor modelled does not enter, whatever the batch holds there. */
static void see_reals(acf_tape *t, acf_view *v) {
    const part *p = &v->net->real;
    int64_t N = v->batch->N, D = p->D;
    const uint8_t *b = pick_bytes(t, p, v->batch, v->batch->b), *m = pick_bytes(t, p, v->batch, v->batch->m);
    acf_real *x = acf_arena_alloc(t->host, (size_t)(N * D) * sizeof *x);
    acf_real *c = acf_arena_alloc(t->host, (size_t)(N * 3 * D) * sizeof *c);
    if (!x || !c) acf_tape_fail(t, NULL);
    if (t->failure.status) return;
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < D; k++) {
            int64_t at = i * D + k;
            x[at] = m[at] ? v->batch->x[i * v->batch->D + p->column[k]] : 0;
            acf_real *row = c + i * 3 * D;
            row[k] = b[at] ? x[at] : 0;
            row[D + k] = b[at];
            row[2 * D + k] = m[at];
        }
    v->x = acf_tensor_input(t, x, 2, (int64_t[]){N, D});
    v->common = acf_tensor_input(t, c, 2, (int64_t[]){N, 3 * D});
    v->given = to_device(t, b, (size_t)(N * D));
    v->u_real = acf_tape_subset(t, v->given, to_device(t, m, (size_t)(N * D)), N, D);
}

static void see_categories(acf_tape *t, acf_view *v) {
    const part *p = &v->net->category;
    int64_t N = v->batch->N, D = p->D;
    const uint8_t *b = pick_bytes(t, p, v->batch, v->batch->b), *m = pick_bytes(t, p, v->batch, v->batch->m);
    int32_t *code = acf_arena_alloc(t->host, (size_t)(N * D) * sizeof *code);
    if (!code) acf_tape_fail(t, NULL);
    if (t->failure.status) return;
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < D; k++) code[i * D + k] = v->batch->code[i * v->batch->D + p->column[k]];
    v->b = to_device(t, b, (size_t)(N * D));
    v->seen = to_device(t, m, (size_t)(N * D)); /* m = given or modelled: a question leaves nothing else present */
    v->code = to_device(t, code, (size_t)(N * D) * sizeof *code);
    v->u_category = acf_tape_subset(t, v->b, v->seen, N, D);
    if (v->net->anchor_size && v->net->indicators)
        v->classes = (acf_mog_classes){v->net->indicators, D, v->net->indicator_of, v->net->indicator_value, v->code, v->seen};
}

acf_view *acf_net_view(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass) {
    if (t->failure.status) return NULL;
    ACF_ASSERT(batch->D == net->D);
    acf_view *v = acf_arena_alloc(t->host, sizeof *v);
    if (!v) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    *v = (acf_view){.net = net, .batch = batch, .trains = pass};
    v->id = to_device(t, batch->id, (size_t)batch->N * sizeof *batch->id);
    if (pass) v->pass = *pass, v->pass.row_id = v->id;
    see_reals(t, v); /* also without real columns: width 0, so that `common` is always there */
    if (net->category.D) see_categories(t, v);
    return t->failure.status ? NULL : v;
}

/* What a part's networks are told; `known` says which categories they may look at, `table` how. */
static acf_tensor *context(acf_tape *t, const acf_view *v, acf_param *table, const uint8_t *known) {
    if (!v->net->category.D) return v->common;
    const int64_t N = v->batch->N, D = v->net->category.D;
    acf_tensor *b = acf_mask_numbers(t, v->b, N, D), *m = acf_mask_numbers(t, v->seen, N, D);
    acf_tensor *classes = acf_category_context(t, acf_p(table), &v->net->classes, v->code, known, N);
    return acf_concat(t, 4, (acf_tensor *[]){v->common, b, m, classes});
}

/* The conditioning vector and, beside it, what the part's reader makes of it. */
static acf_tensor *reading(acf_tape *t, const acf_view *v, const part *p, acf_tensor *context) {
    if (!p->reader.layers) return context;
    return acf_concat(t, 2, (acf_tensor *[]){context, acf_mlp_run(t, &p->reader, context, v->trains ? &v->pass : NULL)});
}

static acf_cond real_cond(acf_tape *t, const acf_view *v) {
    return (acf_cond){.context = reading(t, v, &v->net->real, context(t, v, v->net->seen, v->seen)), .u = v->u_real,
                      .columns = acf_p(v->net->real.identity), .pass = v->trains ? &v->pass : NULL};
}

/* The anchor as it is asked about this batch; its numbers are constants to the tape. */
static acf_mog anchor_of(acf_tape *t, const acf_view *v) {
    const acf_net *net = v->net;
    acf_tensor *p[3];
    for (int i = 0; i < 3; i++) p[i] = acf_tensor_wrap(t, net->anchor[i]->t.data, net->anchor[i]->t.ndim, net->anchor[i]->t.dim);
    return (acf_mog){p[0], p[1], p[2], v->x, v->given, v->classes};
}

/* The categories' networks are also told what the anchor expects of every column and class given the others: a line through the data,
 * where they would have to learn to fill in what is missing. */
static acf_tensor *category_context(acf_tape *t, const acf_view *v) {
    acf_tensor *c = context(t, v, v->net->categories.table, v->b);
    if (!v->net->anchor_size || !v->net->indicators || t->failure.status) return c;
    acf_mog g = anchor_of(t, v);
    g.classes.known = v->b;
    return acf_concat(t, 2, (acf_tensor *[]){c, acf_mog_expect(t, &g)});
}

static acf_cond category_cond(acf_tape *t, const acf_view *v) {
    return (acf_cond){.context = reading(t, v, &v->net->category, category_context(t, v)), .u = v->u_category,
                      .columns = acf_p(v->net->category.identity), .pass = v->trains ? &v->pass : NULL};
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

/* The modelled values as the chain gets them; *logdet stays NULL where there is no anchor. */
static acf_tensor *behind_anchor(acf_tape *t, const acf_view *v, acf_tensor **logdet) {
    *logdet = NULL;
    if (!v->net->anchor_size) return acf_gather_cells(t, v->x, v->u_real);
    acf_mog g = anchor_of(t, v);
    return acf_mog_normal(t, &g, v->u_real, logdet);
}

/* The way back from what the chain's inverse gives. */
static acf_tensor *before_anchor(acf_tape *t, const acf_view *v, acf_tensor *z) {
    if (!v->net->anchor_size) return z;
    acf_mog g = anchor_of(t, v);
    return acf_mog_value(t, &g, z, v->u_real);
}

/* z (T) and log|det| (N; may be NULL) of anchor and chain. */
static acf_tensor *forward(acf_tape *t, const acf_view *v, const acf_cond *c, acf_tensor **logdet) {
    acf_tensor *anchor, *z = acf_chain_forward(t, &v->net->chain, behind_anchor(t, v, &anchor), c, logdet);
    if (logdet && anchor) *logdet = acf_add(t, *logdet, anchor);
    return z;
}

static acf_tensor *logp_reals(acf_tape *t, const acf_view *v) {
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *logdet, *z = forward(t, v, &c, &logdet);
    return acf_add(t, v->net->like.kind->logp(t, &v->net->like, z, &behind), logdet);
}

const acf_subset *acf_net_modelled(const acf_view *v) { return v->u_real; }

acf_tensor *acf_net_forward(acf_tape *t, acf_view *v, acf_tensor **logdet) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    acf_cond c = real_cond(t, v);
    return forward(t, v, &c, logdet);
}

acf_tensor *acf_net_inverse(acf_tape *t, acf_view *v, acf_tensor *z) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    acf_cond c = real_cond(t, v);
    return before_anchor(t, v, acf_chain_inverse(t, &v->net->chain, z, &c, NULL));
}

acf_tensor *acf_net_logp(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    if (!v->net->category.D) return logp_reals(t, v);
    acf_cond c = category_cond(t, v);
    acf_tensor *classes = acf_categories_logp(t, &v->net->categories, v->code, &c);
    return v->net->real.D ? acf_add(t, classes, logp_reals(t, v)) : classes;
}

/* The inverse flow of the latent mean, (T). */
static acf_tensor *best_guess(acf_tape *t, const acf_view *v) {
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *mean = v->net->like.kind->mean(t, &v->net->like, &behind);
    return before_anchor(t, v, acf_chain_inverse(t, &v->net->chain, mean, &c, NULL));
}

acf_tensor *acf_net_guess_error(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    return acf_sqerr(t, best_guess(t, v), acf_gather_cells(t, v->x, v->u_real), v->u_real);
}

/* n bytes of device memory on the host, where they live on the tape; NULL, and a failed tape, when that did not work. */
static void *to_host(acf_tape *t, const void *there, size_t bytes) {
    void *p = t->failure.status ? NULL : acf_arena_alloc(t->host, bytes);
    if (p && acf_device_copy(t->dev, p, there, bytes, ACF_TO_HOST) == ACF_OK && acf_device_sync(t->dev) == ACF_OK) return p;
    acf_tape_fail(t, NULL);
    return NULL;
}

/* The batch's masks say on the host what is modelled; the subset, which says it too, is in device memory. */
static bool modelled(const acf_batch *batch, int64_t cell) { return batch->m[cell] && !batch->b[cell]; }

/* x (T) as a table of all the part's cells, (N,Dr) on the host; NULL after a failure. */
static const acf_real *reals_on_host(acf_tape *t, const acf_view *v, acf_tensor *x) {
    if (acf_tape_check(t, x)) return NULL;
    acf_tensor *table = acf_scatter_cells(t, x, v->u_real, NULL);
    return to_host(t, table->data, (size_t)acf_tensor_count(table) * sizeof(acf_real));
}

/* The modelled reals of out (N,D) on the host = x (T). */
static acf_status put_reals(acf_tape *t, const acf_view *v, acf_tensor *x, acf_real *out) {
    const part *p = &v->net->real;
    const acf_real *host = reals_on_host(t, v, x);
    for (int64_t i = 0; host && i < v->batch->N; i++)
        for (int64_t k = 0; k < p->D; k++) {
            const int64_t cell = i * v->net->D + p->column[k];
            if (modelled(v->batch, cell)) out[cell] = host[i * p->D + k];
        }
    return acf_tape_status(t);
}

/* Draws the modelled categories (d NULL: the most probable) and puts them into `code`, where the reals see them. *drawn is all of it, (N,Dc) on
 * the host, and lives on the tape. */
static acf_status draw_categories(acf_tape *t, acf_view *v, const acf_draw *d, const int32_t **drawn) {
    acf_cond c = category_cond(t, v);
    const int32_t *made = acf_categories_draw(t, &v->net->categories, &c, d);
    if (!made) return acf_tape_status(t);
    acf_put_codes(t, v->code, made, v->u_category);
    *drawn = to_host(t, v->code, (size_t)(v->batch->N * v->net->category.D) * sizeof **drawn);
    return acf_tape_status(t);
}

static acf_status put_categories(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) {
    const part *p = &v->net->category;
    const int32_t *drawn;
    ACF_TRY(draw_categories(t, v, d, &drawn));
    for (int64_t i = 0; i < v->batch->N; i++)
        for (int64_t k = 0; k < p->D; k++) {
            const int64_t cell = i * v->net->D + p->column[k];
            if (modelled(v->batch, cell)) out[cell] = (acf_real)drawn[i * p->D + k];
        }
    return ACF_OK;
}

static acf_status answer(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) {
    if (!v) return acf_tape_status(t);
    if (v->net->category.D) ACF_TRY(put_categories(t, v, d, out));
    if (!v->net->real.D) return ACF_OK;
    if (!d) return put_reals(t, v, best_guess(t, v), out);
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *z = v->net->like.kind->sample(t, &v->net->like, &behind, d);
    return put_reals(t, v, before_anchor(t, v, acf_chain_inverse(t, &v->net->chain, z, &c, NULL)), out);
}

acf_status acf_net_draw(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) {
    acf_draw here = {.seed = d->seed, .draw = d->draw, .row_id = v ? v->id : NULL};
    return answer(t, v, &here, out);
}

acf_status acf_net_guess(acf_tape *t, acf_view *v, acf_real *out) { return answer(t, v, NULL, out); }

/* ---- one column at a time -------------------------------------------------------------------------------------------------- */

/* The column of a part that row i asks for; -1 where it asks for none of them. */
static int64_t asked(const acf_view *v, const part *p, int64_t i) {
    for (int64_t k = 0; k < p->D; k++)
        if (modelled(v->batch, i * v->net->D + p->column[k])) return k;
    return -1;
}

/* Row i of out (N,n) = the element of row i in every z (T). */
static acf_status put_spread(acf_tape *t, const acf_view *v, int n, acf_tensor *const *z, acf_real *out) {
    const part *p = &v->net->real;
    for (int q = 0; q < n; q++) {
        const acf_real *host = reals_on_host(t, v, z[q]);
        for (int64_t i = 0; host && i < v->batch->N; i++) {
            const int64_t k = asked(v, p, i);
            if (k >= 0) out[i * n + q] = host[i * p->D + k];
        }
    }
    return acf_tape_status(t);
}

static acf_status spread_reals(acf_tape *t, acf_view *v, int n, acf_real *out) {
    acf_tensor **z = acf_arena_alloc(t->host, (size_t)n * sizeof *z);
    if (!z) return acf_tape_fail(t, NULL);
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    v->net->like.kind->spread(t, &v->net->like, &behind, n, z);
    acf_chain_inverse_alone(t, &v->net->chain, n, z, &c);
    acf_mog g = v->net->anchor_size ? anchor_of(t, v) : (acf_mog){0};
    if (v->net->anchor_size) acf_mog_values(t, &g, n, z, v->u_real);
    ACF_TRY(acf_tape_status(t));
    return put_spread(t, v, n, z, out);
}

acf_status acf_net_spread(acf_tape *t, acf_view *v, int n, acf_real *out) {
    if (!v) return acf_tape_status(t);
    if (v->net->category.D) {
        const part *p = &v->net->category;
        const int32_t *best;
        ACF_TRY(draw_categories(t, v, NULL, &best));
        for (int64_t i = 0; i < v->batch->N; i++) {
            const int64_t k = asked(v, p, i);
            if (k >= 0) out[i * n] = (acf_real)best[i * p->D + k];
        }
    }
    return v->net->real.D ? spread_reals(t, v, n, out) : ACF_OK;
}
