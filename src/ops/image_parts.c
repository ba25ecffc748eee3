/* Images in device memory: see image_parts.h. One pass over 1e4 to 1e6 numbers. */
#include "ops/image_parts.h"

/* ---- given and modelled ---------------------------------------------------------------------------------------- */

static acf_status parts_forward(acf_tape *t, acf_node *n) {
    const acf_image_parts_attrs *a = n->attr;
    const acf_tensor *x = n->in[0];
    const int64_t C = x->dim[3], pixels = acf_tensor_lines(x);
    acf_real *const value = n->out[0]->data, *const given = n->out[1]->data, *const b = n->out[2]->data,
                    *const u = n->out[3]->data;
    ACF_PARALLEL(t->dev, 4 * pixels * C)
    for (int64_t p = 0; p < pixels; p++) {
        const bool known = a->role[p] == ACF_PIXEL_GIVEN, modelled = a->role[p] == ACF_PIXEL_ASKED;
        for (int64_t i = p * C; i < (p + 1) * C; i++) {
            value[i] = known || modelled ? x->data[i] : 0;
            given[i] = known ? x->data[i] : 0;
            b[i] = known, u[i] = modelled;
        }
    }
    return ACF_OK;
}

const acf_op acf_op_image_parts = {"image_parts", ACF_OP_image_parts, {parts_forward, NULL}};

acf_image_parts acf_image_split(acf_tape *t, acf_tensor *x, const uint8_t *role) {
    char sx[ACF_SHAPE_TEXT];
    acf_image_parts none = {&t->empty, &t->empty, &t->empty, &t->empty};
    acf_node *n = acf_node_new(t, &acf_op_image_parts, sizeof(acf_image_parts_attrs), 1, &x);
    if (!n) return none;
    if (x->ndim != 4) {
        acf_reject(t, n->op, "x is %s; expected (N, H, W, C)", acf_tensor_shape(x, sx));
        return none;
    }
    *(acf_image_parts_attrs *)n->attr = (acf_image_parts_attrs){role};
    for (int k = 0; k < 4; k++) n->out[k] = acf_tensor_new(t, 4, x->dim);
    if (acf_node_run(t, n) == &t->empty) return none;
    return (acf_image_parts){n->out[0], n->out[1], n->out[2], n->out[3]};
}

/* ---- cells of draws -------------------------------------------------------------------------------------------- */

static acf_status cells_forward(acf_tape *t, acf_node *n) {
    const acf_image_cells_attrs *a = n->attr;
    const int64_t size = a->P * a->C, NC = a->N * a->C;
    (void)t;
    for (int64_t i = 0; i < a->N * size; i++) {
        a->row[i] = (int32_t)(a->whole ? i / size : i / a->C % a->N);
        a->column[i] = (int32_t)(a->whole ? i % size : i / NC * a->C + i % a->C);
    }
    return ACF_OK;
}

const acf_op acf_op_image_cells = {"image_cells", ACF_OP_image_cells, {cells_forward, NULL}};

acf_cells acf_image_cells(acf_tape *t, int64_t N, int64_t P, int64_t C, bool whole) {
    acf_node *n = acf_node_new(t, &acf_op_image_cells, sizeof(acf_image_cells_attrs), 0, NULL);
    int32_t *row = n ? acf_tape_ints(t, N * P * C) : NULL, *column = row ? acf_tape_ints(t, N * P * C) : NULL;
    if (!column) return (acf_cells){0};
    *(acf_image_cells_attrs *)n->attr = (acf_image_cells_attrs){row, column, N, P, C, whole};
    acf_node_run(t, n);
    return t->failure.status ? (acf_cells){0} : (acf_cells){row, column};
}
