/* Vectors for codes on the GPU: see embedding.h. A gather whose codes are checked. For the column embedding the
 * subset's `place` already lists each column's elements, so that its gradient needs no sort. */
#include "ops/gather.cuh"

extern "C" {
#include "ops/embedding.h"
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_embedding_attrs *a = (const acf_embedding_attrs *)n->attr;
    const acf_tensor *table = n->in[0], *y = n->out[0];
    return acf_cuda_gather(t->dev, y->data, table->data, a->code, 0, a->n, table->dim[0], table->dim[1], n->op->name);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_embedding_attrs *a = (const acf_embedding_attrs *)n->attr;
    const acf_subset *u = n->out[0]->sub;
    acf_real *dtable = acf_grad(t, n->in[0]);
    const int64_t V = n->in[0]->dim[0], E = n->in[0]->dim[1];
    if (!dtable) return acf_tape_status(t);
    if (u && a->code == u->col_of)
        return acf_cuda_list_sums(t->dev, dtable, n->out[0]->grad, u->place, NULL, u->N * u->D, u->D, E);
    return acf_cuda_gather_back(t, dtable, n->out[0]->grad, a->code, a->n, V, E);
}

ACF_CUDA_OP(embedding, forward, backward);
