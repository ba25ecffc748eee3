/* The table model: see net.h. It composes operations; all derivatives are in ops/.
 *
 * Columns are split into two parts: reals for the flow, categories for the autoregressive model. Each part has a
 * subset over its own columns. Conditioning vectors, by concatenation:
 *
 *     categories    x·b, b, m of reals | b, m of categories    | embeddings of given ones | expectations of the mixture
 *     reals         x·b, b, m of reals | b, seen of categories | embeddings of given or modelled ones
 *
 * The attention likelihood (like/attention_like.h) is one network for both parts; only transformations then read the
 * vector of the reals.
 *
 * With context-width W, a network reads that vector once per row and appends W numbers to it. Recurrent networks run
 * once per modelled cell, so it is cheaper to compute what depends on the row alone once. */
#include "model/net_parts.h"

#include "ops/factors.h"

#include <math.h>
#include <string.h>

#define LOG_SCALE_MIN (-7.0) /* of the mixture, in encoded units: a spike of e^-7 standard deviations */
#define LOG_SCALE_MAX 7.0
/* Most multiply-adds of a row's factorisations, K D³/3; beyond, the mixture would cost more than the networks. */
#define GMM_WORK 60000
/* The same for factors of a table too wide for a mixture: W R² for a row, twice that for a query. */
#define FACTORS_WORK 1e6
#define READER_SITE 3968u /* of dropout: after the sites of flows and likelihoods */

acf_params *acf_net_params(acf_net *net) { return net->ps; }
bool acf_net_attends(const acf_net *net) { return net->attends; }
int64_t acf_net_columns(const acf_net *net) { return net->D; }
int64_t acf_net_gmm_size(const acf_net *net) { return net->gmm_components; }
int64_t acf_net_factors(const acf_net *net) { return net->gmm_factors; }
acf_param *const *acf_net_gmm(const acf_net *net) { return net->gmm; }

const int32_t *acf_net_reals(const acf_net *net, int64_t *n) {
    *n = net->real.D;
    return net->real.column;
}

int64_t acf_net_indicators(const acf_net *net, const int32_t **column, const int32_t **value) {
    *column = net->at, *value = net->value;
    return net->gmm_components ? net->indicators : 0;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* Assigns the columns to the two parts; false when out of memory. */
static bool deal(acf_net *net, const acf_column *column) {
    size_t bytes = (size_t)net->D * sizeof(int32_t);
    net->real.column = acf_alloc(bytes, "a list of columns");
    net->category.column = acf_alloc(bytes, "a list of columns");
    net->first = acf_alloc(bytes, "a list of classes");
    net->count = acf_alloc(bytes, "a list of classes");
    net->kind = acf_alloc(bytes, "a list of columns");
    net->stage = acf_alloc_zero(2 * bytes, "a list of columns"); /* followed by as many zeros */
    if (!net->real.column || !net->category.column || !net->first || !net->count || !net->kind || !net->stage)
        return false;
    int32_t classes = 0;
    for (int64_t j = 0; j < net->D; j++) {
        bool is_real = !column || column[j].classes == 0;
        acf_part *p = is_real ? &net->real : &net->category;
        if (!is_real) {
            net->first[p->D] = classes, net->count[p->D] = column[j].classes;
            classes += column[j].classes;
        }
        net->kind[j] = is_real ? (int32_t)p->D : -1 - (int32_t)p->D, net->stage[j] = is_real;
        p->column[p->D++] = (int32_t)j;
    }
    net->classes = (acf_classes){net->category.D, net->first, net->count};
    return true;
}

static acf_status declare_column_embedding(acf_net *net, acf_part *p, const char *name, int64_t width) {
    if (!width) return ACF_OK;
    p->column_embedding = acf_param_add(net->ps, name, ACF_INIT_NORMAL, 1, 2, (int64_t[]){p->D, width});
    if (!p->column_embedding) return acf_error_status();
    p->column_embedding->decay = false; /* an embedding, not a weight */
    return ACF_OK;
}

/* Width of the context that all networks read: values and masks of reals, masks and embeddings of categories. */
static int64_t context_width(const acf_net *net, int64_t embedding) {
    return 3 * net->real.D + net->category.D * (2 + embedding);
}

static acf_flow_sizes sizes_of(const acf_options *o, int64_t D, int64_t context) {
    return (acf_flow_sizes){
        .D = D,
        .context = context,
        .column_embedding = acf_options_int(o, "column-embedding"),
        .width = acf_options_int(o, "mlp-width"),
        .hidden = (int)acf_options_int(o, "mlp-layers"),
        .units = acf_options_int(o, "coupling-units"),
        .gru_layers = (int)acf_options_int(o, "coupling-layers"),
        .deep = acf_options_bool(o, "deep-context"),
        .rank = acf_options_int(o, "rank"),
        .bound = acf_options_real(o, "scale-bound"),
    };
}

/* Chooses indicators for all classes of a category but the first. Categories with the fewest classes come first,
 * within the capacity `width`. */
static acf_status choose_indicators(acf_net *net, int64_t width) {
    const int64_t capacity = width - net->real.D, Dc = net->category.D;
    if (capacity < 1 || !Dc) return ACF_OK;
    for (int i = 0; i < 3; i++) {
        int32_t **list = (int32_t * *[]){&net->of, &net->at, &net->value}[i];
        if (!(*list = acf_alloc((size_t)capacity * sizeof **list, "a list of classes"))) return ACF_EMEMORY;
    }
    for (int32_t classes = 2; classes <= capacity + 1; classes++)
        for (int64_t k = 0; k < Dc; k++) {
            if (net->count[k] != classes || net->indicators + classes - 1 > capacity) continue;
            for (int32_t c = 1; c < classes; c++, net->indicators++)
                net->of[net->indicators] = (int32_t)k, net->at[net->indicators] = net->category.column[k],
                net->value[net->indicators] = c;
        }
    return ACF_OK;
}

/* One Gaussian of `most` factors, or fewer as the width requires: 64 up to 244 columns, 10 for 10,000. */
static void declare_factors(acf_net *net, int64_t W, int64_t most) {
    const int64_t R =
        acf_max(1, acf_min(acf_min(most, ACF_FACTORS_MOST), acf_min(W - 1, (int64_t)sqrt(FACTORS_WORK / (double)W))));
    net->gmm_components = 1, net->gmm_factors = R;
    net->gmm[0] = acf_param_add(net->ps, "gmm.weight", ACF_INIT_CONST, 0, 1, &R);
    net->gmm[1] = acf_param_add(net->ps, "gmm.mean", ACF_INIT_CONST, 0, 1, &W);
    net->gmm[2] = acf_param_add(net->ps, "gmm.load", ACF_INIT_CONST, 0, 2, (int64_t[]){W, R});
    net->gmm[3] = acf_param_add(net->ps, "gmm.var", ACF_INIT_CONST, 1, 1, &W);
}

static void declare_mixture(acf_net *net, int64_t W, int64_t K) {
    net->gmm_components = K;
    net->gmm[0] = acf_param_add(net->ps, "gmm.weight", ACF_INIT_CONST, 1, 1, &K);
    net->gmm[1] = acf_param_add(net->ps, "gmm.mean", ACF_INIT_CONST, 0, 2, (int64_t[]){K, W});
    net->gmm[2] = acf_param_add(net->ps, "gmm.cov", ACF_INIT_CONST, 0, 3, (int64_t[]){K, W, W});
}

static int64_t components_for(int64_t W) { return W > 1000 ? 0 : GMM_WORK / acf_max(W * W * W / 3, 1); }

/* Declares as many components as the option allows, or fewer as the width requires: all for a table of 8 columns,
 * one for 50. If not even one fits, declares factors, whose cost is linear in the width, with as many indicators as
 * reals. */
static acf_status declare_gmm(acf_net *net, const acf_options *o) {
    const int64_t most = acf_options_int(o, "gmm"), factors = acf_options_int(o, "factors"), reals = net->real.D;
    if (!most) return ACF_OK;
    const bool wide = factors && components_for(reals) < 1;
    ACF_TRY(choose_indicators(net, acf_max(acf_options_int(o, "gmm-indicators"), wide ? 2 * reals : 0)));
    const int64_t W = reals + net->indicators, K = acf_min(most, components_for(W));
    if (K >= 1)
        declare_mixture(net, W, K);
    else if (factors)
        declare_factors(net, W, factors);
    for (int i = 0; i < (net->gmm_factors ? 4 : net->gmm_components ? 3 : 0); i++) {
        if (!net->gmm[i]) return acf_error_status();
        net->gmm[i]->decay = false;
    }
    return ACF_OK;
}

/* Sets unit covariances. */
static acf_status fill_gmm(acf_net *net) {
    const int64_t K = net->gmm_components, D = net->real.D + net->indicators, n = K * D * D;
    if (!K || net->gmm_factors) return ACF_OK;
    acf_real *cov = acf_alloc_zero((size_t)n * sizeof *cov, "covariances");
    if (!cov) return ACF_EMEMORY;
    for (int64_t i = 0; i < K * D; i++) cov[i * D + i % D] = 1;
    acf_status status = acf_device_copy(net->dev, net->gmm[2]->t.data, cov, (size_t)n * sizeof *cov, ACF_TO_DEVICE);
    acf_release(cov);
    return status;
}

bool acf_net_recurrent(const acf_options *o) {
    return acf_like_chosen(o)->recurrent || acf_chain_recurrent(acf_options_text(o, "flow"));
}

/* Declares the part's reader and adds its width to *context. */
static acf_status declare_reader(acf_net *net, acf_part *p, const char *name, const acf_options *o, uint32_t site,
                                 int64_t *context) {
    int64_t width = acf_options_int(o, "context-width");
    if (!width) return ACF_OK;
    acf_mlp_shape shape = {*context, width, width, (int)acf_options_int(o, "context-layers"), ACF_RELU, 1};
    *context += width;
    return acf_mlp_declare(&p->reader, net->ps, name, &shape, site);
}

static acf_status declare_reals(acf_net *net, const acf_options *o, int64_t context) {
    const char *flow = acf_options_text(o, "flow");
    ACF_TRY(declare_gmm(net, o));
    if (!net->attends || *flow) ACF_TRY(declare_reader(net, &net->real, "context", o, READER_SITE, &context));
    acf_flow_sizes size = sizes_of(o, net->real.D, context);
    if (!net->attends || *flow) ACF_TRY(declare_column_embedding(net, &net->real, "columns", size.column_embedding));
    ACF_TRY(acf_chain_declare(&net->chain, net->ps, "flow", flow, &size));
    net->like =
        (acf_like){.kind = acf_like_chosen(o), .size = size, .apart = net->chain.n > 0 || net->gmm_components > 0};
    net->like.size.units = acf_options_int(o, "likelihood-units");
    net->like.size.gru_layers = (int)acf_options_int(o, "likelihood-layers");
    net->like.components = acf_options_int(o, "components");
    net->like.normal = net->gmm_components > 0 || net->attends;
    net->like.lo = LOG_SCALE_MIN, net->like.hi = LOG_SCALE_MAX;
    if (!net->attends) ACF_TRY(net->like.kind->declare(&net->like, net->ps, "likelihood"));
    if (!net->category.D || (net->attends && !net->chain.n))
        return ACF_OK; /* `seen` is for networks that read a context */
    net->seen = acf_category_table(net->ps, "seen", &net->classes, acf_options_int(o, "embedding"));
    return net->seen ? ACF_OK : acf_error_status();
}

static acf_status declare_categories(acf_net *net, const acf_options *o, int64_t context) {
    int64_t column_embedding = acf_options_int(o, "column-embedding");
    if (net->gmm_components && net->indicators) context += net->real.D + net->indicators;
    ACF_TRY(declare_reader(net, &net->category, "category-context", o, READER_SITE + ACF_MLP_LAYERS, &context));
    ACF_TRY(declare_column_embedding(net, &net->category, "category-columns", column_embedding));
    const acf_categories_shape shape = {
        .classes = net->classes,
        .embedding = acf_options_int(o, "embedding"),
        .column_embedding = column_embedding,
        .context = context,
        .units = acf_options_int(o, "likelihood-units"),
        .layers = (int)acf_options_int(o, "likelihood-layers"),
        .deep = acf_options_bool(o, "deep-context"),
        .set = !acf_like_chosen(o)->recurrent,
        .mask_at = 3 * net->real.D, /* see context() */
        .class_at = 3 * net->real.D + 2 * net->category.D,
    };
    return acf_categories_declare(&net->categories, net->ps, "categories", &shape);
}

/* Follows the transformations and covers all columns. */
static acf_status declare_attention(acf_net *net, const acf_options *o) {
    acf_attention_like *k = &net->attention;
    const acf_attention_like_shape shape = {net->D, net->like.components, acf_options_int(o, "likelihood-units"),
                                            (int)acf_options_int(o, "likelihood-layers")};
    k->columns = (acf_token_columns){.reals = net->real.D, .apart = net->chain.n > 0, .classes = net->classes};
    k->lo = LOG_SCALE_MIN, k->hi = LOG_SCALE_MAX;
    if (acf_options_real(o, "guess-weight") > 0)
        return acf_fail(
            ACF_EUSAGE,
            "the option 'guess-weight' is %g, but the attention likelihood has no derivative of its best guess; "
            "expected 0, or another likelihood",
            acf_options_real(o, "guess-weight"));
    ACF_TRY(acf_attention_like_declare(k, net->ps, "attention", &shape));
    net->like.head = net->real.D ? acf_p(k->mixture.b) : NULL;
    return ACF_OK;
}

static acf_status declare(acf_net *net, const acf_options *o) {
    int64_t context = context_width(net, acf_options_int(o, "embedding"));
    net->attends = acf_like_chosen(o)->whole_row;
    if (net->real.D) ACF_TRY(declare_reals(net, o, context));
    if (net->attends) return declare_attention(net, o);
    return net->category.D ? declare_categories(net, o, context) : ACF_OK;
}

acf_status acf_net_declare(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, acf_net **out) {
    acf_status status = ACF_OK;
    int64_t classes = 0;
    if (D < 1) return acf_fail(ACF_ESHAPE, "a table model of %lld columns; expected at least one", (long long)D);
    for (int64_t j = 0; column && j < D; j++) classes += column[j].classes;
    if (classes > INT32_MAX)
        return acf_fail(ACF_ESHAPE, "%lld classes in all columns; expected fewer than 2^31", (long long)classes);
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

/* Copies n integers to device memory. */
static bool put_ints(acf_net *net, int32_t *to, const int32_t *x, int64_t n) {
    return acf_device_copy(net->dev, to, x, (size_t)n * sizeof *x, ACF_TO_DEVICE) == ACF_OK;
}

/* Copies lists that operations read to the device once, so that a captured step copies nothing. */
static acf_status place_lists(acf_net *net) {
    const int64_t R = net->real.D, D = net->category.D, n = net->gmm_components ? net->indicators : 0;
    if (net->there) return ACF_OK;
    const size_t bytes = (size_t)(R + 3 * D + 2 * n + 3 * net->D) * sizeof(int32_t);
    ACF_TRY(acf_arena_create(&net->dev->memory, bytes, &net->there));
    int32_t *to = acf_arena_alloc(net->there, bytes);
    if (!to) return ACF_EMEMORY;
    const struct {
        const int32_t **there;
        const int32_t *list;
        int64_t n;
    } part[] = {{&net->real_column, net->real.column, R},
                {&net->category_column, net->category.column, D},
                {&net->classes.there, net->first, D},
                {NULL, net->count, D}, /* `there` expects them after the first ones */
                {&net->indicator_of, net->of, n},
                {&net->indicator_value, net->value, n},
                {&net->kind_there, net->kind, net->D},
                {&net->stage_there, net->stage, net->D},
                {&net->mixed_there, net->stage + net->D, net->D}};
    for (size_t k = 0; k < sizeof part / sizeof *part; to += part[k++].n) {
        if (part[k].there) *part[k].there = to;
        if (part[k].n && !put_ints(net, to, part[k].list, part[k].n)) return acf_error_status();
    }
    net->categories.classes = net->attention.columns.classes = net->classes;
    net->attention.columns.kind = net->kind_there;
    net->attention.real_column = net->real_column, net->attention.category_column = net->category_column;
    return acf_device_sync(net->dev);
}

/* Sets non-constant initial values: a network with a Gaussian mixture in front begins as that mixture. */
static acf_status fill(acf_net *net) {
    ACF_TRY(fill_gmm(net));
    return acf_like_fill(&net->like, net->dev);
}

acf_status acf_net_build(acf_net *net, uint64_t seed, bool train) {
    ACF_TRY(acf_params_build(net->ps, seed, train));
    ACF_TRY(place_lists(net));
    return fill(net);
}

acf_status acf_net_allocate(acf_net *net) {
    ACF_TRY(acf_params_allocate(net->ps));
    return place_lists(net);
}

acf_status acf_net_restart(acf_net *net, uint64_t seed) {
    ACF_TRY(acf_params_restart(net->ps, seed));
    return fill(net);
}

acf_status acf_net_create(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, uint64_t seed,
                          bool train, acf_net **out) {
    acf_net *net;
    ACF_TRY(acf_net_declare(dev, column, D, o, &net));
    acf_status status = acf_net_build(net, seed, train);
    if (status)
        acf_net_free(net);
    else
        *out = net;
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
    acf_release(net->kind);
    acf_release(net->stage);
    acf_arena_free(net->there);
    acf_release(net);
}
