/* Model files made by hand: see golden.h. Sizes are the smallest that distinguish rows from columns: 2 units, 3 in an
 * MLP, 2 components. */
#include "harness/golden.h"

#include "harness/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 2, WIDTH = 3, COMPONENTS = 2, EMBEDDING = 2, MOST = 64 };
#define BOUND 1.5
#define HALF_LOG_2PI 0.91893853320467274178

enum { NAME = 64 };

/* A name, which is never cut. */
static void named(char out[NAME], const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, NAME, fmt, ap);
    va_end(ap);
    assert_in_range(n, 1, NAME - 1);
}

/* ---- the list of tensors, by docs/format.md -------------------------------------------------------------------- */

acf_golden_tensor *acf_golden_add(acf_golden *g, const char *name, int ndim, int64_t rows, int64_t cols) {
    assert_true(g->n < ACF_GOLDEN_TENSORS);
    acf_golden_tensor *t = &g->tensor[g->n++];
    *t = (acf_golden_tensor){.dtype = g->spec.wide ? "F64" : "F32", .ndim = ndim, .dim = {rows, cols}};
    named(t->name, "%s", name);
    t->count = ndim == 0 ? 1 : ndim == 1 ? rows : rows * cols;
    t->value = calloc((size_t)t->count + 1, sizeof *t->value);
    assert_non_null(t->value);
    return t;
}

acf_golden_tensor *acf_golden_find(acf_golden *g, const char *name) {
    for (int i = 0; i < g->n; i++)
        if (strcmp(g->tensor[i].name, name) == 0) return &g->tensor[i];
    fail_msg("%s: no tensor '%s'", g->spec.name, name);
    return NULL;
}

/* Multiples of 1/64 in [-1/2, 1/2) that repeat late: exact in a float. */
static void fill(acf_golden_tensor *t) {
    unsigned state = (unsigned)t->count;
    for (const char *p = t->name; *p; p++) state = state * 31 + (unsigned char)*p;
    for (int64_t i = 0; i < t->count; i++) {
        state = state * 1664525u + 1013904223u;
        t->value[i] = (double)((state >> 20) % 64) / 64 - 0.5;
    }
}

static void add(acf_golden *g, const char *prefix, const char *name, int ndim, int64_t rows, int64_t cols,
                bool filled) {
    char full[NAME];
    named(full, "%s.%s", prefix, name);
    acf_golden_tensor *t = acf_golden_add(g, full, ndim, rows, cols);
    if (filled) fill(t);
}

static int64_t seen(const acf_golden *g) { return 3 * g->reals + g->categories * (2 + EMBEDDING); }
static int64_t context(const acf_golden *g) { return seen(g) + (g->spec.reader > 0 ? g->spec.reader : 0); }

/* The first matrix reads the row, and is zero. Without a hidden layer it is also the last. */
static void add_mlp(acf_golden *g, const char *prefix, int64_t in, int64_t out) {
    int last = g->spec.mlp_layers;
    for (int l = 0; l <= last; l++) {
        char w[NAME], b[NAME];
        named(w, "w%d", l), named(b, "b%d", l);
        add(g, prefix, w, 2, l == last ? out : WIDTH, l ? WIDTH : in, l > 0);
        add(g, prefix, b, 1, l == last ? out : WIDTH, 0, true);
    }
}

/* Recurrent layers stay at zero, so states are zero and the head reads only its bias. */
static void add_rnn(acf_golden *g, const char *prefix, int layers, int64_t in, int64_t out) {
    for (int l = 0; l < layers; l++) {
        char layer[NAME];
        named(layer, "%s.%d", prefix, l);
        add(g, layer, "wx", 2, 3 * UNITS, l ? UNITS : in, false);
        if (l == 0 || g->spec.deep) add(g, layer, "wc", 2, 3 * UNITS, context(g), false);
        add(g, layer, "bx", 1, 3 * UNITS, 0, false);
        add(g, layer, "wh", 2, 3 * UNITS, UNITS, false);
        add(g, layer, "bh", 1, 3 * UNITS, 0, false);
    }
    char head[NAME];
    named(head, "%s.head", prefix);
    add(g, head, "w1", 2, UNITS, UNITS, true); /* of a state that is zero */
    add(g, head, "b1", 1, UNITS, 0, true);
    add(g, head, "w2", 2, out, UNITS, true);
    add(g, head, "b2", 1, out, 0, true);
}

/* There are slots if a transformation precedes the likelihood, because modelled values then differ from given ones. */
static void add_set(acf_golden *g, const char *prefix, int64_t out, int64_t slots) {
    add(g, prefix, "wc", 2, UNITS, context(g), false);
    if (g->spec.column_embedding) add(g, prefix, "wi", 2, UNITS, g->spec.column_embedding, false);
    add(g, prefix, "b", 1, UNITS, 0, true);
    for (int l = 0; l < g->spec.likelihood_layers; l++) {
        char block[NAME];
        named(block, "%s.%d", prefix, l);
        add(g, block, "w1", 2, UNITS, UNITS, true);
        add(g, block, "b1", 1, UNITS, 0, true);
        add(g, block, "w2", 2, UNITS, UNITS, true);
        add(g, block, "b2", 1, UNITS, 0, true);
    }
    add(g, prefix, "head.w", 2, out, UNITS, true);
    add(g, prefix, "head.b", 1, out, 0, true);
    if (slots) add(g, prefix, "slots", 2, UNITS, slots, false);
}

/* One hidden layer as wide as the output. Its output multiplies matrices that are zero. */
static void add_reader(acf_golden *g, const char *name) {
    int W = g->spec.reader;
    if (W <= 0) return;
    add(g, name, "w0", 2, W, seen(g), true);
    add(g, name, "b0", 1, W, 0, true);
    add(g, name, "w1", 2, W, W, true);
    add(g, name, "b1", 1, W, 0, true);
}

static void add_anchor(acf_golden *g) {
    int64_t K = g->spec.gmm, D = g->reals;
    if (K <= 0) return;
    acf_golden_tensor *weight = acf_golden_add(g, "anchor.weight", 1, K, 0);
    for (int64_t k = 0; k < K; k++) weight->value[k] = k ? 0.25 : 0.75;
    acf_golden_add(g, "anchor.mean", 2, K, D);
    acf_golden_tensor *cov = acf_golden_add(g, "anchor.cov", 2, K * D, D);
    for (int64_t i = 0; i < K * D; i++) cov->value[i * D + i % D] = 1;
    cov->ndim = 3, cov->dim[0] = K, cov->dim[1] = cov->dim[2] = D;
}

static int rank_of(const acf_golden *g, const char *kind) {
    if (strcmp(kind, "lowrank") != 0) return g->spec.rank;
    return g->spec.rank ? g->spec.rank : g->reals < 8 ? g->reals : 8;
}

/* W_0 is about twice the identity: with |W_c| < 1/2 no matrix is nearly singular. */
static void add_linear(acf_golden *g, const char *prefix, const char *kind) {
    int64_t D = g->reals, r = rank_of(g, kind);
    char second[NAME];
    add_mlp(g, prefix, context(g), r ? D * (r + 1) : D * (D + 1));
    named(second, "%s.b", prefix);
    if (r) add_mlp(g, second, context(g), D * r);
    bool diagonal = strcmp(kind, "lowrank") == 0;
    add(g, prefix, "base", diagonal ? 1 : 2, D, D, false);
    acf_golden_tensor *base = &g->tensor[g->n - 1];
    for (int64_t i = 0; i < D; i++) base->value[diagonal ? i : i * D + i] = 2.5 + 0.25 * (double)i;
}

static void add_flow(acf_golden *g, const char *kind, int at) {
    char prefix[NAME], half[NAME];
    int64_t D = g->reals, known = 1 + 2 * g->spec.column_embedding;
    named(prefix, "flow.%d.%s", at, kind);
    if (!strcmp(kind, "leaky"))
        add(g, prefix, "a", 0, 0, 0, true);
    else if (!strcmp(kind, "rnn"))
        add_rnn(g, prefix, g->spec.coupling_layers, known, 2);
    else if (!strcmp(kind, "rnn-shift"))
        add_rnn(g, prefix, g->spec.coupling_layers, known, 1);
    else if (!strcmp(kind, "affine"))
        add_mlp(g, prefix, context(g), 2 * D);
    else if (!strcmp(kind, "coupling"))
        for (int h = 0; h < 2; h++) {
            named(half, "%s.%s", prefix, h ? "even" : "odd");
            add_mlp(g, half, context(g) + 2 * D, 2 * D);
        }
    else if (strcmp(kind, "reverse") != 0)
        add_linear(g, prefix, kind);
}

/* Calls f for each kind of the flow, in order. */
static void each_flow(acf_golden *g, void (*f)(acf_golden *, const char *, int)) {
    char kinds[256];
    int at = 0;
    snprintf(kinds, sizeof kinds, "%s", g->spec.flow);
    for (char *save, *kind = strtok_r(kinds, " ", &save); kind; kind = strtok_r(NULL, " ", &save)) f(g, kind, at++);
}

static void add_table(acf_golden *g, const char *name, int64_t rows, int64_t cols) {
    fill(acf_golden_add(g, name, 2, rows, cols));
}

static int64_t all_classes(const acf_golden *g) {
    int64_t W = 0;
    for (int j = 0; j < g->spec.columns; j++) W += g->spec.classes[j];
    return W;
}

/* ---- metadata -------------------------------------------------------------------------------------------------- */

static void write_texts(acf_golden *g) {
    const acf_golden_spec *s = &g->spec;
    strcpy(g->version, "1"), strcpy(g->kind, "table");
    snprintf(
        g->config, sizeof g->config,
        "{\"preset\":\"%s\",\"flow\":\"%s\",\"likelihood\":\"%s\",\"mlp-width\":%d,\"mlp-layers\":%d,\"coupling-units\":%d,"
        "\"coupling-layers\":%d,\"likelihood-units\":%d,\"likelihood-layers\":%d,\"components\":%d,\"rank\":%d,\"scale-bound\":1.5,"
        "\"identity\":%d,\"embedding\":%d,\"deep-context\":%s,\"steps\":7,\"seed\":3",
        s->preset, s->flow, s->likelihood, WIDTH, s->mlp_layers, UNITS, s->coupling_layers, UNITS, s->likelihood_layers,
        COMPONENTS, s->rank, s->column_embedding, EMBEDDING, s->deep ? "true" : "false");
    char *end = g->config + strlen(g->config);
    if (s->gmm >= 0) end += sprintf(end, ",\"anchor\":%d", s->gmm);
    if (s->reader >= 0) end += sprintf(end, ",\"context-width\":%d,\"context-layers\":1", s->reader);
    strcpy(end, "}");
    strcpy(g->training,
           "{\"end\":\"steps\",\"rows\":9,\"held\":2,\"steps\":7,\"epochs\":1,\"skipped\":0,\"seconds\":0.5}");
    size_t at = (size_t)snprintf(g->encoder, sizeof g->encoder, "{\"columns\":[");
    for (int j = 0; j < s->columns; j++) {
        char column[160];
        if (s->classes[j]) {
            int n = snprintf(column, sizeof column, "{\"name\":\"k%d\",\"kind\":\"categorical\",\"counts\":[4", j);
            for (int k = 1; k < s->classes[j]; k++) n += snprintf(column + n, sizeof column - (size_t)n, ",%d", k);
            strcpy(column + n, "]}");
        } else {
            snprintf(column, sizeof column,
                     "{\"name\":\"x%d\",\"kind\":\"real\",\"mean\":%d.5,\"scale\":%d,\"observed\":9}", j, j, 1 + j % 2);
        }
        at += (size_t)snprintf(g->encoder + at, sizeof g->encoder - at, "%s%s", j ? "," : "", column);
    }
    snprintf(g->encoder + at, sizeof g->encoder - at, "]}");
}

void acf_golden_make(acf_golden *g, const acf_golden_spec *spec) {
    *g = (acf_golden){.spec = *spec, .checked = true};
    for (int j = 0; j < spec->columns; j++)
        if (spec->classes[j])
            g->category[g->categories++] = j;
        else
            g->real[g->reals++] = j;
    int64_t W = all_classes(g), E = spec->column_embedding;
    bool set = !strcmp(spec->likelihood, "set");
    if (g->reals) {
        add_anchor(g);
        add_reader(g, "context");
        if (E) add_table(g, "columns", g->reals, E);
        each_flow(g, add_flow);
        if (!strcmp(spec->likelihood, "ar"))
            add_rnn(g, "likelihood", spec->likelihood_layers, 1 + 2 * E, 3 * COMPONENTS);
        else if (set)
            add_set(g, "likelihood", 3 * COMPONENTS, *spec->flow || spec->gmm > 0 ? 2 * g->reals : 0);
        else
            add_linear(g, "likelihood", "linear");
        if (g->categories) add_table(g, "seen", W, EMBEDDING);
    }
    if (g->categories) {
        add_reader(g, "category-context");
        if (E) add_table(g, "category-columns", g->categories, E);
        add_table(g, "categories.classes", W, EMBEDDING);
        if (set)
            add_set(g, "categories.net", W, 0);
        else
            add_rnn(g, "categories.net", spec->likelihood_layers, EMBEDDING + 2 * E, W);
    }
    write_texts(g);
}

void acf_golden_free(acf_golden *g) {
    for (int i = 0; i < g->n; i++) free(g->tensor[i].value);
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

enum { HEADER = 1 << 16 }; /* bytes, more than any of these takes */

static int size_of(const char *dtype) { return dtype[1] == '6' ? 8 : dtype[1] == '8' ? 1 : 4; }

static size_t bytes_of(const acf_golden_tensor *t) { return (size_t)(t->count * size_of(t->dtype)); }

/* Largest elements first, then by name. */
static int by_place(const void *a, const void *b) {
    const acf_golden_tensor *const *x = a, *const *y = b;
    int p = size_of((*x)->dtype), q = size_of((*y)->dtype);
    return p != q ? q - p : strcmp((*x)->name, (*y)->name);
}

static void put(const acf_golden_tensor *t, unsigned char *to) {
    for (int64_t i = 0; i < t->count; i++) {
        float narrow = (float)t->value[i];
        int32_t whole = (int32_t)t->value[i];
        if (!strcmp(t->dtype, "F64"))
            memcpy(to + 8 * i, &t->value[i], 8);
        else if (!strcmp(t->dtype, "F32"))
            memcpy(to + 4 * i, &narrow, 4);
        else
            memcpy(to + i * size_of(t->dtype), &whole, (size_t)size_of(t->dtype));
    }
}

static uint64_t mix(uint64_t h, uint64_t word) { return (h ^ (h >> 32) ^ word) * 1099511628211u; }

static uint64_t mix_bytes(uint64_t h, const void *data, size_t n) {
    h = mix(h, n);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + i, n - i < 8 ? n - i : 8);
        h = mix(h, word);
    }
    return h;
}

static uint64_t sum_text(const char *key, const char *value) {
    return mix_bytes(mix(mix_bytes(14695981039346656037u, key, strlen(key)), 0), value, strlen(value));
}

static uint64_t sum_tensor(const acf_golden_tensor *t, const unsigned char *data) {
    uint64_t h = mix(mix_bytes(14695981039346656037u, t->name, strlen(t->name)), 1 + (uint64_t)t->ndim);
    h = mix_bytes(h, t->dtype, strlen(t->dtype));
    for (int i = 0; i < t->ndim; i++) h = mix(h, (uint64_t)t->dim[i]);
    return mix_bytes(h, data, bytes_of(t));
}

static size_t quote(char *to, const char *key, const char *value) {
    size_t n = (size_t)sprintf(to, "\"%s\":\"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') to[n++] = '\\';
        to[n++] = *value;
    }
    to[n++] = '"', to[n] = 0;
    return n;
}

static size_t put_entry(char *to, const acf_golden_tensor *t, size_t begin) {
    size_t n = (size_t)sprintf(to, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->dtype);
    for (int k = 0; k < t->ndim; k++) n += (size_t)sprintf(to + n, "%s%lld", k ? "," : "", (long long)t->dim[k]);
    return n + (size_t)sprintf(to + n, "],\"data_offsets\":[%zu,%zu]}", begin, begin + bytes_of(t));
}

/* The header, after its length; returns where the data begins. text: key and value, ended by NULL; an empty value is
 * left out. */
static size_t put_header(char *file, const acf_golden_tensor *const *order, int n, const char *const (*text)[2]) {
    size_t at = 8 + (size_t)sprintf(file + 8, "{\"__metadata__\":{"), begin = 0;
    for (; (*text)[0]; text++) {
        if (!(*text)[1][0]) continue;
        at += quote(file + at, (*text)[0], (*text)[1]);
        file[at++] = ',';
    }
    file[at - 1] = '}';
    for (int i = 0; i < n; i++) {
        at += put_entry(file + at, order[i], begin);
        begin += bytes_of(order[i]);
        assert_true(at + 512 < HEADER);
    }
    file[at++] = '}';
    while (at % 8) file[at++] = ' ';
    uint64_t length = at - 8;
    memcpy(file, &length, 8);
    return at;
}

unsigned char *acf_golden_bytes(const acf_golden *g, size_t *n) {
    const acf_golden_tensor *order[ACF_GOLDEN_TENSORS];
    char shown[17] = "";
    const char *const text[][2] = {{"acflow", "0.1.0"},
                                   {"checksum", shown},
                                   {"config", g->config},
                                   {"encoder", g->encoder},
                                   {"format_version", g->version},
                                   {"kind", g->kind},
                                   {"training", g->training},
                                   {NULL, NULL}};
    size_t data = 0, at = 0;
    uint64_t sum = 0;
    for (int i = 0; i < g->n; i++) order[i] = &g->tensor[i], data += bytes_of(&g->tensor[i]);
    qsort(order, (size_t)g->n, sizeof *order, by_place);
    unsigned char *file = calloc(HEADER + data, 1), *body = file ? file + HEADER : NULL;
    assert_non_null(file);
    for (int i = 0; i < g->n; at += bytes_of(order[i++])) {
        put(order[i], body + at);
        sum += sum_tensor(order[i], body + at);
    }
    for (int k = 0; text[k][0]; k++) sum += text[k][1][0] ? sum_text(text[k][0], text[k][1]) : 0;
    if (g->checked) snprintf(shown, sizeof shown, "%016llx", (unsigned long long)sum);
    at = put_header((char *)file, order, g->n, text);
    memmove(file + at, body, data);
    *n = at + data;
    return file;
}

/* ---- the expected log-density ---------------------------------------------------------------------------------- */

static const double *values(acf_golden *g, const char *prefix, const char *name) {
    char full[NAME];
    named(full, "%s.%s", prefix, name);
    return acf_golden_find(g, full)->value;
}

/* out (rows) = w (rows, cols) relu(h) + b. */
static void layer(double *out, const double *w, const double *b, const double *h, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        out[i] = b[i];
        for (int64_t k = 0; k < cols; k++) out[i] += w[i * cols + k] * (h[k] > 0 ? h[k] : 0);
    }
}

static void mlp(acf_golden *g, const char *prefix, int64_t out_count, double *out) {
    double h[MOST], next[MOST];
    int last = g->spec.mlp_layers;
    memcpy(h, values(g, prefix, "b0"), (size_t)(last ? WIDTH : out_count) * sizeof *h);
    for (int l = 1; l <= last; l++) {
        char w[NAME], b[NAME];
        int64_t rows = l == last ? out_count : WIDTH;
        named(w, "w%d", l), named(b, "b%d", l);
        layer(next, values(g, prefix, w), values(g, prefix, b), h, rows, WIDTH);
        memcpy(h, next, (size_t)rows * sizeof *h);
    }
    memcpy(out, h, (size_t)out_count * sizeof *out);
}

static void rnn(acf_golden *g, const char *prefix, int64_t out_count, double *out) {
    char head[NAME];
    named(head, "%s.head", prefix);
    layer(out, values(g, head, "w2"), values(g, head, "b2"), values(g, head, "b1"), out_count, UNITS);
}

/* The set's network, from h = b on. */
static void set_net(acf_golden *g, const char *prefix, int64_t out_count, double *out) {
    double h[UNITS], x[UNITS], y[UNITS];
    memcpy(h, values(g, prefix, "b"), sizeof h);
    for (int l = 0; l < g->spec.likelihood_layers; l++) {
        char block[NAME];
        named(block, "%s.%d", prefix, l);
        layer(x, values(g, block, "w1"), values(g, block, "b1"), h, UNITS, UNITS);
        layer(y, values(g, block, "w2"), values(g, block, "b2"), x, UNITS, UNITS);
        for (int k = 0; k < UNITS; k++) h[k] += y[k];
    }
    layer(out, values(g, prefix, "head.w"), values(g, prefix, "head.b"), h, out_count, UNITS);
}

/* The likelihood's network, of reals or categories. */
static void describe(acf_golden *g, const char *prefix, int64_t out_count, double *out) {
    if (!strcmp(g->spec.likelihood, "set"))
        set_net(g, prefix, out_count, out);
    else
        rnn(g, prefix, out_count, out);
}

/* The values in the flow: n values at positions 0..n-1, the columns (among the reals) at these positions, and
 * log|det|. */
typedef struct walk {
    int n, column[ACF_GOLDEN_COLUMNS];
    double v[ACF_GOLDEN_COLUMNS], logdet;
} walk;
static walk now;

static double log_det(double a[ACF_GOLDEN_COLUMNS][ACF_GOLDEN_COLUMNS], int n) {
    double sum = 0;
    for (int k = 0; k < n; k++) { /* diagonally dominant: no pivoting */
        sum += log(fabs(a[k][k]));
        for (int r = k + 1; r < n; r++)
            for (int c = n - 1; c >= k; c--) a[r][c] -= a[r][k] / a[k][k] * a[k][c];
    }
    return sum;
}

/* M at two columns: base plus the output of the networks. */
static double entry(acf_golden *g, const char *prefix, const char *kind, int i, int j) {
    int D = g->reals, r = rank_of(g, kind);
    bool diagonal = strcmp(kind, "lowrank") == 0;
    double out[MOST], b[MOST], m;
    const double *base = values(g, prefix, "base");
    mlp(g, prefix, r ? D * (r + 1) : D * (D + 1), out);
    m = diagonal ? (i == j ? base[i] : 0) : base[i * D + j];
    if (!r) return m + out[i * D + j];
    char second[NAME];
    named(second, "%s.b", prefix);
    mlp(g, second, D * r, b);
    for (int k = 0; k < r; k++) m += out[i * r + k] * b[k * D + j];
    return m;
}

static void linear(acf_golden *g, const char *prefix, const char *kind) {
    int n = now.n, D = g->reals, r = rank_of(g, kind), first_shift = r ? D * r : D * D;
    bool packed = strcmp(kind, "packed") == 0;
    double w[ACF_GOLDEN_COLUMNS][ACF_GOLDEN_COLUMNS], m[ACF_GOLDEN_COLUMNS][ACF_GOLDEN_COLUMNS], out[MOST],
        z[ACF_GOLDEN_COLUMNS];
    mlp(g, prefix, first_shift + D, out);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) m[i][j] = entry(g, prefix, kind, now.column[i], now.column[j]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            w[i][j] = packed ? 0 : m[i][j];
            for (int k = 0; packed && k <= i && k <= j; k++) w[i][j] += (k == i ? 1 : m[i][k]) * m[k][j]; /* L U */
        }
    for (int i = 0; i < n; i++) {
        z[i] = out[first_shift + now.column[i]];
        for (int j = 0; j < n; j++) z[i] += w[i][j] * now.v[j];
    }
    memcpy(now.v, z, sizeof z);
    now.logdet += log_det(w, n);
}

static void affine(int t, double raw, double shift) {
    double s = BOUND * tanh(raw / BOUND);
    now.v[t] = now.v[t] * exp(s) + shift;
    now.logdet += s;
}

static void go_through(acf_golden *g, const char *kind, int at) {
    char prefix[NAME], half[NAME];
    double out[MOST];
    int D = g->reals;
    named(prefix, "flow.%d.%s", at, kind);
    if (!strcmp(kind, "leaky")) {
        double slope = 1 / (1 + exp(-*values(g, prefix, "a")));
        for (int t = 0; t < now.n; t++)
            if (now.v[t] < 0) now.v[t] *= slope, now.logdet += log(slope);
    } else if (!strcmp(kind, "rnn") || !strcmp(kind, "rnn-shift")) {
        bool scales = !strcmp(kind, "rnn");
        rnn(g, prefix, scales ? 2 : 1, out);
        for (int t = 0; t < now.n; t++) affine(t, scales ? out[0] : 0, out[scales]);
    } else if (!strcmp(kind, "affine")) {
        mlp(g, prefix, 2 * D, out);
        for (int t = 0; t < now.n; t++) affine(t, out[now.column[t]], out[D + now.column[t]]);
    } else if (!strcmp(kind, "coupling")) {
        for (int h = 0; h < 2; h++) {
            named(half, "%s.%s", prefix, h ? "even" : "odd");
            mlp(g, half, 2 * D, out);
            for (int t = 1 - h; t < now.n; t += 2) affine(t, out[now.column[t]], out[D + now.column[t]]);
        }
    } else if (!strcmp(kind, "reverse")) { /* values change positions; a position keeps its column */
        for (int t = 0; t < now.n / 2; t++) {
            double v = now.v[t];
            now.v[t] = now.v[now.n - 1 - t], now.v[now.n - 1 - t] = v;
        }
    } else {
        linear(g, prefix, kind);
    }
}

static double logp_reals(acf_golden *g) {
    double sum = 0, out[MOST];
    each_flow(g, go_through);
    if (!strcmp(g->spec.likelihood, "gaussian")) {
        linear(g, "likelihood", "linear");
        for (int t = 0; t < now.n; t++) sum -= 0.5 * now.v[t] * now.v[t] + HALF_LOG_2PI;
        return sum + now.logdet;
    }
    describe(g, "likelihood", 3 * COMPONENTS, out);
    for (int t = 0; t < now.n; t++) {
        double weights = 0, density = 0;
        for (int k = 0; k < COMPONENTS; k++) {
            double e = (now.v[t] - out[COMPONENTS + k]) / exp(out[2 * COMPONENTS + k]);
            weights += exp(out[k]);
            density += exp(out[k] - 0.5 * e * e - HALF_LOG_2PI - out[2 * COMPONENTS + k]);
        }
        sum += log(density / weights);
    }
    return sum + now.logdet;
}

static double logp_class(acf_golden *g, int64_t first, int classes, int code) {
    double out[MOST], weights = 0;
    describe(g, "categories.net", all_classes(g), out);
    for (int k = 0; k < classes; k++) weights += exp(out[first + k]);
    return out[first + code] - log(weights);
}

double acf_golden_logp(acf_golden *g, const double *x, const bool *modelled) {
    double sum = 0;
    int64_t first = 0;
    now = (walk){0};
    for (int k = 0; k < g->reals; k++) {
        int j = g->real[k];
        double scale = 1 + j % 2;
        if (!modelled[j]) continue;
        now.v[now.n] = (x[j] - (j + 0.5)) / scale, now.column[now.n++] = k;
        sum -= log(scale);
    }
    for (int k = 0; k < g->categories; k++) {
        int j = g->category[k];
        if (modelled[j]) sum += logp_class(g, first, g->spec.classes[j], (int)x[j]);
        first += g->spec.classes[j];
    }
    return sum + (now.n ? logp_reals(g) : 0);
}
