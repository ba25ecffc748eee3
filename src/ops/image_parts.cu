/* Images in device memory, on the GPU: see image_parts.h. Bound by memory; one thread per number. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/image_parts.h"
}

static __global__ void split(acf_real *__restrict__ value, acf_real *__restrict__ given, acf_real *__restrict__ b,
                             acf_real *__restrict__ u, const acf_real *__restrict__ x, acf_image_parts_attrs a,
                             int64_t n, int64_t C) {
    ACF_EACH(i, n) {
        const int64_t p = acf_cell_of(i, C).row;
        const bool known = a.role[p] == ACF_PIXEL_GIVEN, modelled = a.role[p] == ACF_PIXEL_ASKED;
        value[i] = known || modelled ? x[i] : 0;
        given[i] = known ? x[i] : 0;
        b[i] = known, u[i] = modelled;
    }
}

static acf_status parts_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    const int64_t count = acf_tensor_count(x);
    split<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->out[1]->data, n->out[2]->data, n->out[3]->data, x->data,
        *(const acf_image_parts_attrs *)n->attr, count, x->dim[3]);
    return ACF_LAUNCHED("image_parts");
}

ACF_CUDA_OP(image_parts, parts_forward, NULL);

static __global__ void cells(acf_image_cells_attrs a, int64_t n) {
    ACF_EACH(i, n) {
        const acf_cell image = acf_cell_of(i, a.P * a.C), pixel = acf_cell_of(i, a.C);
        const acf_cell place = acf_cell_of(pixel.row, a.N);
        a.row[i] = (int32_t)(a.whole ? image.row : place.column);
        a.column[i] = (int32_t)(a.whole ? image.column : place.row * a.C + pixel.column);
    }
}

static acf_status cells_forward(acf_tape *t, acf_node *n) {
    const acf_image_cells_attrs *a = (const acf_image_cells_attrs *)n->attr;
    const int64_t count = a->N * a->P * a->C;
    cells<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(*a, count);
    return ACF_LAUNCHED("image_cells");
}

ACF_CUDA_OP(image_cells, cells_forward, NULL);
