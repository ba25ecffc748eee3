/* Categories as rows of a table, on the GPU: see class_rows.h. One thread per cell; cells after the last of a subset
 * have row -1 and get -1. */
#include "ops/classes.cuh"

extern "C" {
#include "ops/class_rows.h"
}

static __global__ void class_rows_fwd(int32_t *__restrict__ rows, const int32_t *__restrict__ codes, acf_class_cells c,
                                      const int32_t *__restrict__ classes, int64_t D, int64_t n, acf_fault *fault,
                                      const char *op) {
    ACF_EACH(p, n) {
        const acf_cell cell = acf_cell_of(p, D);
        const int64_t row = c.at.row ? c.at.row[p] : cell.row, j = c.at.column ? c.at.column[p] : cell.column;
        int32_t found = -1;
        if (row >= 0 && j >= 0 && !(c.seen && !c.seen[p])) {
            const int32_t code = codes[c.place ? c.place[p] : p], count = classes[D + j];
            if (code >= 0 && code < count)
                found = classes[j] + code;
            else
                acf_report(fault, op, ACF_FAULT_CODE, row, j, code, count);
        }
        rows[p] = found;
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_class_rows_attrs *a = (const acf_class_rows_attrs *)n->attr;
    const int32_t *classes = acf_cuda_classes(t, &a->classes);
    ACF_TRY(acf_tape_status(t));
    class_rows_fwd<<<acf_each_blocks(a->n), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        a->rows, a->codes, a->cells, classes, a->classes.D, a->n, acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("class_rows");
}

ACF_CUDA_OP(class_rows, forward, NULL);
