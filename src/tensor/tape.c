/* The tape: see tape.h. */
#include "tensor/tape.h"

#include "device/plugin.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

acf_status acf_tape_create(acf_device *dev, const acf_kernel *kernels, acf_tape **out) {
    acf_status status = ACF_OK;
    acf_tape *t = acf_alloc_zero(sizeof *t, "a tape");
    if (!t) return ACF_EMEMORY;
    t->dev = dev;
    t->kernels = kernels || !dev->plugin ? kernels : dev->plugin->kernels;
    t->capacity = 1;
    ACF_TRY_DONE(acf_arena_create(&acf_heap, 0, &t->host));
    ACF_TRY_DONE(acf_arena_create(&dev->memory, (size_t)1 << 20, &t->mem));
    acf_tape_begin(t, false);
    *out = t;
done:
    if (status) acf_tape_free(t);
    return status;
}

void acf_tape_free(acf_tape *t) {
    if (!t) return;
    if (t->slab.data) t->dev->memory.free(t->dev->memory.ctx, t->slab.data);
    acf_arena_free(t->host);
    acf_arena_free(t->mem);
    acf_release(t);
}

void acf_tape_begin(acf_tape *t, bool record) {
    acf_arena_reset(t->host);
    acf_arena_reset(t->mem);
    t->last = NULL;
    t->spare = NULL;
    t->op = NULL;
    t->n_nodes = 0;
    t->record = record;
    t->ran_back = false;
    t->failure.status = ACF_OK;
    t->empty = (acf_tensor){.ndim = 1};
    t->slab.used = 0;
    if (t->lasting && record && acf_device_zero(t->dev, t->slab.data, (size_t)t->slab.capacity * sizeof *t->slab.data))
        acf_tape_fail(t, NULL);
}

acf_status acf_tape_last(acf_tape *t, bool lasting) {
    struct acf_slab *s = &t->slab;
    const acf_memory *m = &t->dev->memory;
    t->lasting = lasting;
    if (!lasting || s->capacity >= s->asked) return ACF_OK;
    if (s->data) m->free(m->ctx, s->data);
    const size_t bytes = (size_t)s->asked * sizeof *s->data;
    if ((s->data = m->alloc(m->ctx, bytes))) {
        s->capacity = s->asked;
        return ACF_OK;
    }
    t->lasting = false, s->capacity = 0;
    return m->refuse ? m->refuse(m->ctx, bytes, 0)
                     : acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for gradients", bytes);
}

acf_tape_mark acf_tape_position(const acf_tape *t) {
    return (acf_tape_mark){acf_arena_mark(t->host), acf_arena_mark(t->mem), t->last, t->n_nodes};
}

void acf_tape_rewind(acf_tape *t, acf_tape_mark mark) {
    ACF_ASSERT(!t->record);
    acf_arena_release(t->host, mark.host);
    acf_arena_release(t->mem, mark.mem);
    t->last = mark.last;
    t->n_nodes = mark.n_nodes;
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

acf_status acf_tape_fail(acf_tape *t, const acf_op *op) {
    if (t->failure.status) return t->failure.status;
    if (!op) op = t->op;
    if (op) acf_fail(acf_error_status(), "%s: %s", op->name, acf_error());
    acf_failure_save(&t->failure);
    return t->failure.status;
}

acf_status acf_tape_status(acf_tape *t) { return t->failure.status ? acf_failure_restore(&t->failure) : ACF_OK; }

static acf_tensor *reject(acf_tape *t, const acf_op *op, acf_status status, const char *fmt, va_list ap) {
    char sentence[ACF_SENTENCE_MAX];
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    acf_fail(status, "%s", sentence);
    acf_tape_fail(t, op);
    return &t->empty;
}

acf_tensor *acf_reject(acf_tape *t, const acf_op *op, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    acf_tensor *empty = reject(t, op, ACF_ESHAPE, fmt, ap);
    va_end(ap);
    return empty;
}

acf_tensor *acf_reject_value(acf_tape *t, const acf_op *op, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    acf_tensor *empty = reject(t, op, ACF_EUSAGE, fmt, ap);
    va_end(ap);
    return empty;
}

/* Index of the first element that is not finite, or -1. */
static int64_t first_nonfinite(const acf_real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return i;
    return -1;
}

/* A tensor's values in the step's host arena; on the CPU the values themselves. */
static const acf_real *on_host(acf_tape *t, const acf_tensor *x) {
    if (t->dev->kind == ACF_DEVICE_CPU) return x->data;
    size_t bytes = (size_t)acf_tensor_count(x) * sizeof(acf_real);
    acf_real *copy = acf_arena_alloc(t->host, bytes);
    if (!copy || acf_device_copy(t->dev, copy, x->data, bytes, ACF_TO_HOST) || acf_device_sync(t->dev)) return NULL;
    return copy;
}

/* An integer of a subset's arrays; 0 if it cannot be read. */
static int32_t peek(acf_tape *t, const int32_t *p) {
    int32_t x = 0;
    if (!t->dev->plugin) return *p;
    return acf_device_copy(t->dev, &x, p, sizeof x, ACF_TO_HOST) || acf_device_sync(t->dev) ? 0 : x;
}

/* acf_tensor_place for a subset in device memory, where the stride of matrices is D·D. */
static void place_of(acf_tape *t, const acf_tensor *x, int64_t i, int64_t *row, int64_t *column) {
    const int64_t width = acf_max(acf_tensor_width(x), 1), first = i / width;
    if (!t->dev->plugin) {
        acf_tensor_place(x, i, row, column);
    } else if (x->square) {
        const acf_subset *u = x->square;
        *row = i / (u->D * u->D);
        *column = peek(t, &u->cols[*row * u->D + i % (u->D * u->D) % acf_max(peek(t, &u->size[*row]), 1)]);
    } else {
        *row = x->sub ? peek(t, &x->sub->row_of[first]) : x->row_of ? peek(t, &x->row_of[first]) : first;
        *column = x->sub ? peek(t, &x->sub->col_of[first]) : i % width;
    }
}

/* Reports the origin of the step's first non-finite value. Goes backwards, so the last match is the earliest node. */
static acf_status blame(acf_tape *t, const acf_tensor *x, int64_t at) {
    const acf_op *op = NULL;
    for (acf_node *n = t->last; n; n = n->before)
        for (int k = n->n_out - 1; k >= 0; k--) {
            acf_mark mark = acf_arena_mark(t->host);
            const acf_real *data = on_host(t, n->out[k]);
            int64_t i = data ? first_nonfinite(data, acf_tensor_count(n->out[k])) : -1;
            if (i >= 0) op = n->op, x = n->out[k], at = i;
            acf_arena_release(t->host, mark);
        }
    int64_t row, column;
    place_of(t, x, at, &row, &column);
    const acf_real *data = on_host(t, x);
    const char *what = !data || isnan(data[at]) ? "nan" : data[at] > 0 ? "inf" : "-inf"; /* a NaN's sign says nothing */
    acf_fail(ACF_ENUMERIC,
             "%s: the output is %s at row %lld, column %lld; look at that row's input, or lower the step size",
             op ? op->name : "input", what, (long long)row, (long long)column);
    return acf_tape_fail(t, NULL);
}

acf_status acf_tape_check(acf_tape *t, const acf_tensor *x) {
    ACF_TRY(acf_tape_status(t));
    if (acf_tensor_count(x) == 0 || t->captured) return ACF_OK;
    const acf_real *data = on_host(t, x);
    if (!data) return acf_tape_fail(t, NULL);
    int64_t at = first_nonfinite(data, acf_tensor_count(x));
    return at < 0 ? ACF_OK : blame(t, x, at);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

acf_real *acf_tape_reals(acf_tape *t, int64_t n) {
    size_t bytes;
    acf_real *p = acf_bytes(n, sizeof(acf_real), &bytes) ? acf_arena_alloc(t->mem, bytes) : NULL;
    if (!p) acf_tape_fail(t, NULL);
    return p;
}

int32_t *acf_tape_ints(acf_tape *t, int64_t n) {
    size_t bytes;
    int32_t *p = acf_bytes(n, sizeof(int32_t), &bytes) ? acf_arena_alloc(t->mem, bytes) : NULL;
    if (!p) acf_tape_fail(t, NULL);
    return p;
}

/* Sizes come from data and users. An overflowing product would become a small allocation and a large write. */
static bool countable(int ndim, const int64_t *dim) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        if (dim[i] < 0 || __builtin_mul_overflow(n, acf_max(dim[i], 1), &n)) return false;
    return true;
}

/* A tensor without data. */
static acf_tensor *header(acf_tape *t, int ndim, const int64_t *dim) {
    if (t->failure.status) return &t->empty;
    ACF_ASSERT(ndim >= 0 && ndim <= ACF_MAX_DIM);
    if (!countable(ndim, dim)) {
        char shape[ACF_SHAPE_TEXT];
        acf_tensor x = {.ndim = ndim};
        for (int i = 0; i < ndim; i++) x.dim[i] = dim[i];
        acf_fail(ACF_ESHAPE, "a tensor cannot have the shape %s", acf_tensor_shape(&x, shape));
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    acf_tensor *x = acf_arena_alloc(t->host, sizeof *x);
    if (!x) {
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    *x = (acf_tensor){.ndim = ndim};
    for (int i = 0; i < ndim; i++) x->dim[i] = dim[i];
    return x;
}

acf_tensor *acf_tensor_wrap(acf_tape *t, acf_real *data, int ndim, const int64_t *dim) {
    acf_tensor *x = header(t, ndim, dim);
    if (x != &t->empty) x->data = data;
    return x;
}

acf_tensor *acf_tensor_new(acf_tape *t, int ndim, const int64_t *dim) {
    acf_tensor *x = header(t, ndim, dim);
    if (x == &t->empty) return x;
    x->data = acf_tape_reals(t, acf_tensor_count(x));
    return x->data ? x : &t->empty;
}

acf_tensor *acf_tensor_packed(acf_tape *t, const acf_subset *u, int64_t C) {
    if (t->failure.status) return &t->empty;
    acf_tensor *x = acf_tensor_new(t, C ? 2 : 1, (int64_t[]){u->T, C});
    if (x != &t->empty) x->sub = u;
    return x;
}

acf_tensor *acf_tensor_input(acf_tape *t, const acf_real *data, int ndim, const int64_t *dim) {
    acf_tensor *x = acf_tensor_new(t, ndim, dim);
    if (x == &t->empty) return x;
    size_t bytes = (size_t)acf_tensor_count(x) * sizeof(acf_real);
    if (acf_device_copy(t->dev, x->data, data, bytes, ACF_TO_DEVICE)) {
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    return x;
}

acf_tensor *acf_tensor_const(acf_tape *t, const acf_subset *u, double value, int ndim, const int64_t *dim) {
    acf_tensor *x = acf_tensor_new(t, ndim, dim);
    if (x == &t->empty) return x;
    ACF_ASSERT(!u || acf_tensor_rows(x) == u->T);
    x->sub = u;
    if (acf_device_fill(t->dev, x->data, (acf_real)value, acf_tensor_count(x)) == ACF_OK) return x;
    acf_tape_fail(t, NULL);
    return &t->empty;
}

/* ---- subsets --------------------------------------------------------------------------------------------------- */

/* Memory for acf_tape_steps. It is allocated with the subset, because a loop releases what it allocates in between. */
struct acf_counts {
    bool known;
    int32_t *active, *first; /* (D+1) */
};

/* A GPU's subset before its arrays are made: T is the capacity. NULL when memory ran out. */
static acf_subset *new_subset(acf_tape *t, int64_t N, int64_t D, int64_t T) {
    acf_subset *u = acf_arena_alloc(t->host, sizeof *u);
    struct acf_counts *c = u ? acf_arena_alloc(t->host, sizeof *c) : NULL;
    int32_t *counts = c ? acf_arena_alloc(t->host, (size_t)(2 * (D + 1)) * sizeof *counts) : NULL;
    if (!counts) return NULL;
    *c = (struct acf_counts){false, counts, counts + D + 1};
    *u = (acf_subset){.N = N, .D = D, .T = T, .counts = c};
    return u;
}

static acf_status fetch_counts(acf_tape *t, const acf_subset *u) {
    const size_t bytes = (size_t)(u->D + 1) * sizeof(int32_t);
    if (t->captured)
        return acf_fail(ACF_EDEVICE,
                        "a loop over steps copies their number from the device; a captured step cannot do that");
    ACF_TRY(acf_device_copy(t->dev, u->counts->active, u->active, bytes, ACF_TO_HOST));
    ACF_TRY(acf_device_copy(t->dev, u->counts->first, u->first, bytes, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    u->counts->known = true;
    return ACF_OK;
}

acf_steps acf_tape_steps(acf_tape *t, const acf_subset *u) {
    if (t->failure.status) return (acf_steps){0};
    if (!u->counts) return (acf_steps){u->steps, u->active, u->first};
    if (!u->counts->known && fetch_counts(t, u)) {
        acf_tape_fail(t, NULL);
        return (acf_steps){0};
    }
    acf_steps s = {0, u->counts->active, u->counts->first};
    while (s.n < u->D && s.active[s.n] > 0) s.n++;
    return s;
}

#define CAPACITY_STEP 64 /* capacities are multiples, if the cells allow: products want round sizes */
static int64_t capacity(int64_t T, int64_t N, int64_t D) {
    return acf_min(acf_ceil_div(T, CAPACITY_STEP) * CAPACITY_STEP, N * D);
}

const acf_subset *acf_tape_subset(acf_tape *t, const uint8_t *b, const uint8_t *m, int64_t N, int64_t D) {
    const acf_subset *u = NULL;
    if (t->failure.status) return NULL;
    acf_status status = acf_subset_fits(N, D);
    if (!status && !t->dev->plugin) status = acf_subset_build(t->mem, b, m, N, D, &u);
    if (!status && t->dev->plugin) {
        acf_subset *made = new_subset(t, N, D, capacity((int64_t)ceil(t->capacity * (double)(N * D)), N, D));
        status = made ? t->dev->plugin->subset_build(t, b, m, made) : ACF_EMEMORY;
        u = made;
    }
    if (!status) return u;
    acf_tape_fail(t, NULL);
    return NULL;
}

const acf_subset *acf_tape_sequence(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, int64_t N,
                                    int64_t D) {
    const acf_subset *u = NULL;
    if (t->failure.status) return NULL;
    acf_status status = acf_subset_fits(N, D);
    if (!status && !t->dev->plugin) status = acf_subset_order(t->mem, b, m, o, N, D, &u);
    if (!status && t->dev->plugin) {
        const double share = o->modelled ? t->capacity : 1;
        acf_subset *made = new_subset(t, N, D, capacity((int64_t)ceil(share * (double)(N * D)), N, D));
        status = made ? t->dev->plugin->subset_order(t, b, m, o, made) : ACF_EMEMORY;
        u = made;
    }
    if (!status) return u;
    acf_tape_fail(t, NULL);
    return NULL;
}

const acf_subset *acf_tape_half(acf_tape *t, const acf_subset *u, int parity) {
    const acf_subset *half = NULL;
    acf_status status;
    if (t->failure.status) return NULL;
    if (t->dev->plugin) {
        /* A row of n gives (n+1)/2 even places and n/2 odd ones. */
        int64_t T = parity ? acf_min(u->T / 2, u->N * (u->D / 2)) : acf_min((u->T + u->N) / 2, u->N * ((u->D + 1) / 2));
        acf_subset *made = new_subset(t, u->N, u->D, capacity(acf_min(T, u->T), u->N, u->D));
        if (made) made->whole = u, made->parity = parity;
        status = made ? t->dev->plugin->subset_split(t, made) : ACF_EMEMORY;
        half = made;
    } else
        status = acf_subset_split(t->mem, u, parity, &half);
    if (!status) return half;
    acf_tape_fail(t, NULL);
    return NULL;
}

/* ---- gradients: only those between the nodes whose backward has run and the others are alive, some per cent of
 * all. Shapes repeat from layer to layer, so a list of released pieces nearly always has one that fits. */

#define ALIGNED 64 /* pieces of the slab are multiples of this many numbers */

typedef struct acf_spare {
    struct acf_spare *next;
    acf_real *data;
    int64_t n;
} acf_spare;

/* The smallest spare piece of n numbers, or up to a quarter more (the excess is lost on release); else new ones. */
static acf_real *take_spare(acf_tape *t, int64_t n) {
    acf_spare **best = NULL;
    for (acf_spare **s = &t->spare; *s; s = &(*s)->next)
        if ((*s)->n >= n && (*s)->n - n <= n / 4 && (!best || (*s)->n < (*best)->n)) best = s;
    if (!best) return acf_tape_reals(t, n);
    acf_real *data = (*best)->data;
    *best = (*best)->next;
    return data;
}

/* Releases the gradient of a node's output, once its backward has read it. */
static void hand_back(acf_tape *t, acf_tensor *x) {
    if (t->lasting) return; /* work on the second stream may still read it */
    acf_spare *s = x->grad ? acf_arena_alloc(t->host, sizeof *s) : NULL;
    if (!s) return; /* no memory to list it: it is released at the next begin */
    *s = (acf_spare){t->spare, x->grad, acf_tensor_count(x)};
    t->spare = s;
    x->grad = NULL;
#ifdef ACF_DEBUG /* NaN, to detect later reads */
    const acf_memory *m = &t->dev->memory;
    if (m->host)
        memset(s->data, 0xFF, (size_t)s->n * sizeof *s->data);
    else if (m->poison)
        m->poison(m->ctx, s->data, (size_t)s->n * sizeof *s->data);
#endif
}

void acf_tape_done(acf_tape *t, acf_mark mark) {
    if (!t->lasting) acf_arena_release(t->mem, mark);
}

/* n zeros of the slab; NULL if the slab is full. */
static acf_real *take_slab(acf_tape *t, int64_t n) {
    struct acf_slab *s = &t->slab;
    acf_real *g = t->lasting && s->capacity - s->used >= n ? s->data + s->used : NULL;
    s->used += acf_ceil_div(n, ALIGNED) * ALIGNED;
    s->asked = acf_max(s->asked, s->used);
    return g;
}

acf_real *acf_grad(acf_tape *t, acf_tensor *x) {
    if (!x || !x->needs_grad) return NULL;
    if (!x->grad && !(x->grad = take_slab(t, acf_tensor_count(x)))) {
        acf_real *g = take_spare(t, acf_tensor_count(x));
        if (!g) return NULL;
        if (acf_device_zero(t->dev, g, (size_t)acf_tensor_count(x) * sizeof(acf_real))) {
            acf_tape_fail(t, NULL);
            return NULL;
        }
        x->grad = g;
    }
    return x->grad;
}

/* A view shares numbers, so its gradient must exist before anyone writes to either: allocated now if needed. */
static acf_tensor *shared(acf_tape *t, acf_tensor *x, acf_tensor *view) {
    if (view == &t->empty || x == &t->empty) return &t->empty;
    view->data = x->data;
    view->needs_grad = x->needs_grad;
    view->grad = acf_grad(t, x);
    return t->failure.status ? &t->empty : view;
}

acf_tensor *acf_tensor_view(acf_tape *t, acf_tensor *x, int ndim, const int64_t *dim) {
    acf_tensor *view = header(t, ndim, dim);
    if (view == &t->empty) return view;
    if (acf_tensor_count(view) != acf_tensor_count(x)) {
        char a[ACF_SHAPE_TEXT], b[ACF_SHAPE_TEXT];
        acf_fail(ACF_ESHAPE, "view: x is %s; it cannot be viewed as %s", acf_tensor_shape(x, a),
                 acf_tensor_shape(view, b));
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    if (ndim && dim[0] == acf_tensor_rows(x)) view->sub = x->sub;
    return shared(t, x, view);
}

acf_tensor *acf_tensor_as_packed(acf_tape *t, acf_tensor *x, const acf_subset *u) {
    acf_tensor *view = header(t, x->ndim, x->dim);
    if (view == &t->empty) return view;
    if (u && acf_tensor_rows(x) != u->T) {
        char a[ACF_SHAPE_TEXT];
        acf_fail(ACF_ESHAPE, "as_packed: x is %s; expected the %lld rows of the subset", acf_tensor_shape(x, a),
                 (long long)u->T);
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    view->sub = u;
    return shared(t, x, view);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

acf_node *acf_node_new(acf_tape *t, const acf_op *op, size_t attr_bytes, int n_in, acf_tensor *const *in) {
    if (t->failure.status) return NULL; /* after a failure nothing runs */
    t->op = op;
    acf_node *n = acf_arena_alloc(t->host, sizeof *n);
    acf_tensor **inputs = n ? acf_arena_alloc(t->host, (size_t)n_in * sizeof *inputs) : NULL;
    void *attr = inputs ? acf_arena_alloc(t->host, attr_bytes) : NULL;
    if (!attr) {
        acf_tape_fail(t, op);
        return NULL;
    }
    memset(n, 0, sizeof *n);
    memset(attr, 0, attr_bytes);
    n->op = op;
    n->attr = attr;
    n->in = inputs;
    n->n_in = n_in;
    for (int i = 0; i < n_in; i++) {
        n->in[i] = in[i];
        if (in[i] && in[i]->needs_grad) n->save = t->record;
    }
    return n;
}

/* An operation outside the list has its own kernels. */
static const acf_kernel *kernel_of(const acf_tape *t, const acf_op *op) {
    return t->kernels && op->id >= 0 ? &t->kernels[op->id] : &op->cpu;
}

/* Another device may lack a kernel that the CPU has. A missing derivative must not be treated as a nonexistent one. */
static acf_status has_kernel(const acf_tape *t, const acf_node *n, const acf_kernel *k) {
    if (!k->forward)
        return acf_fail(ACF_EDEVICE, "the operation has no kernel for %s; use the device cpu", t->dev->table->name);
    if (n->save && !k->backward && n->op->cpu.backward)
        return acf_fail(ACF_EDEVICE, "the operation has no derivative on %s; use the device cpu", t->dev->table->name);
    return ACF_OK;
}

acf_tensor *acf_node_run(acf_tape *t, acf_node *n) {
    if (t->failure.status) return &t->empty;
    while (n->n_out < ACF_MAX_OUT && n->out[n->n_out]) n->n_out++;
    const acf_kernel *k = kernel_of(t, n->op);
    if (has_kernel(t, n, k)) {
        acf_tape_fail(t, n->op);
        return &t->empty;
    }
    if (!k->backward) n->save = false;
    for (int i = 0; i < n->n_out; i++) n->out[i]->needs_grad = n->save;
    if (k->forward(t, n)) acf_tape_fail(t, n->op);
    if (t->failure.status) return &t->empty;
    t->op = NULL;
    n->before = t->last;
    t->last = n;
    t->n_nodes++;
    return n->out[0];
}

static bool has_gradient(const acf_node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->grad) return true;
    return false;
}

acf_status acf_tape_backward(acf_tape *t, acf_tensor *loss) {
    ACF_TRY(acf_tape_status(t));
    if (acf_tensor_count(loss) != 1) {
        char shape[ACF_SHAPE_TEXT];
        acf_fail(ACF_ESHAPE, "backward: the loss has shape %s; expected one element", acf_tensor_shape(loss, shape));
        return acf_tape_fail(t, NULL);
    }
    if (t->ran_back) {
        acf_fail(ACF_EUSAGE, "backward: it was already called since begin; add the losses and call it once");
        return acf_tape_fail(t, NULL);
    }
    ACF_TRY(acf_tape_check(t, loss));
    t->ran_back = true;
    acf_real *seed = acf_grad(t, loss);
    if (!seed) return acf_tape_status(t); /* depends on no parameter: nothing to do */
    if (acf_device_fill(t->dev, seed, 1, 1)) return acf_tape_fail(t, NULL);
    for (acf_node *n = t->last; n; n = n->before) {
        if (!n->save || !has_gradient(n)) continue;
        t->op = n->op;
        acf_status status = kernel_of(t, n->op)->backward(t, n);
        if (status) acf_tape_fail(t, n->op);
        ACF_TRY(acf_tape_status(t));
        for (int i = 0; i < n->n_out; i++) hand_back(t, n->out[i]);
    }
    t->op = NULL;
    return t->lasting && t->dev->plugin ? t->dev->plugin->join(t->dev) : ACF_OK;
}
