/* Chains of transformations: see flow.h. */
#include "base/text.h"
#include "flow/flow.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/embedding.h"
#include "ops/gather.h"

#include <stdio.h>
#include <string.h>

const acf_flow_kind *const acf_flow_kinds[] = {
#define ACF_FLOW(kind, name) &kind,
#include "base/flow_list.h"
#undef ACF_FLOW
    NULL};
#define WORD_MAX 32 /* a kind's name and the final 0 */
enum { KINDS = sizeof acf_flow_kinds / sizeof acf_flow_kinds[0] - 1 };

const acf_flow_kind *acf_flow_find(const char *name) {
    for (const acf_flow_kind *const *k = acf_flow_kinds; *k; k++)
        if (strcmp((*k)->name, name) == 0) return *k;
    return NULL;
}

acf_tensor *acf_cond_known(acf_tape *t, const acf_cond *c) {
    if (!c->columns) return NULL;
    acf_tensor *here = acf_embedding_columns(t, c->columns, c->u);
    if (c->mirrored) here = acf_reverse(t, here, c->u);
    return acf_concat(t, 2, (acf_tensor *[]){here, acf_gather_prev(t, here, c->u, 0)});
}

static acf_status unknown_kind(const char *word) {
    const char *names[KINDS];
    char all[(WORD_MAX + 1) * KINDS];
    acf_text known = acf_text_into(all, sizeof all);
    for (int i = 0; i < KINDS; i++) {
        names[i] = acf_flow_kinds[i]->name;
        acf_text_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    int near = acf_text_nearest(word, names, KINDS);
    if (near >= 0)
        return acf_fail(ACF_EUSAGE, "there is no transformation '%s'; did you mean '%s'?", word, names[near]);
    return acf_fail(ACF_EUSAGE, "there is no transformation '%s'; known are %s", word, all);
}

static acf_status append(acf_chain *chain, acf_params *ps, const char *name, const char *word,
                         const acf_flow_sizes *size) {
    const acf_flow_kind *kind = acf_flow_find(word);
    if (!kind) return unknown_kind(word);
    if (chain->n == ACF_CHAIN_MAX)
        return acf_fail(ACF_EUSAGE, "more than %d transformations in a chain", ACF_CHAIN_MAX);
    acf_flow *f = &chain->flow[chain->n];
    *f = (acf_flow){.kind = kind, .size = *size, .site = ACF_SITE_FLOW + ACF_SITE_FLOW_APART * (uint32_t)chain->n};
    char full[96];
    snprintf(full, sizeof full, "%s.%d.%s", name, chain->n, word);
    ACF_TRY(kind->declare(f, ps, full));
    chain->n++;
    return ACF_OK;
}

/* Moves *at to the next word of a list of kinds and copies as much of it as fits. Returns its length, 0 if there is
 * none. */
static size_t next_word(const char **at, char word[WORD_MAX]) {
    static const char between[] = " ,\t\n";
    *at += strspn(*at, between);
    const size_t len = strcspn(*at, between), kept = len < WORD_MAX ? len : WORD_MAX - 1;
    memcpy(word, *at, kept);
    word[kept] = '\0';
    return len;
}

acf_status acf_chain_declare(acf_chain *chain, acf_params *ps, const char *name, const char *kinds,
                             const acf_flow_sizes *size) {
    char word[WORD_MAX];
    size_t len;
    chain->n = 0;
    for (const char *at = kinds; (len = next_word(&at, word)); at += len) {
        if (len >= sizeof word) return acf_fail(ACF_EUSAGE, "there is no transformation '%.40s'", at);
        ACF_TRY(append(chain, ps, name, word, size));
    }
    return ACF_OK;
}

bool acf_chain_recurrent(const char *kinds) {
    char word[WORD_MAX];
    size_t len;
    for (const char *at = kinds; (len = next_word(&at, word)); at += len) {
        const acf_flow_kind *kind = acf_flow_find(word);
        if (kind && kind->recurrent) return true;
    }
    return false;
}

static void add_logdet(acf_tape *t, acf_tensor **sum, acf_tensor *more) {
    if (more) *sum = *sum ? acf_add(t, *sum, more) : more;
}

acf_cond acf_chain_cond(const acf_chain *chain, const acf_cond *c) {
    acf_cond behind = *c;
    for (int i = 0; i < chain->n; i++) behind.mirrored ^= chain->flow[i].kind->reverses;
    return behind;
}

typedef acf_tensor *(*direction)(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet);

/* Runs one transformation. Without recording only its result is kept: a chain then needs memory for its largest link,
 * not for all. */
static acf_tensor *run(acf_tape *t, const acf_flow *f, direction way, acf_tensor *x, const acf_cond *c,
                       acf_tensor **logdet) {
    if (t->record || t->failure.status) return way(t, f, x, c, logdet);
    acf_tensor *out[2] = {acf_tensor_packed(t, c->u, 0), acf_tensor_new(t, 1, &c->u->N)};
    acf_tape_mark mark = acf_tape_position(t);
    acf_tensor *in[2] = {way(t, f, x, c, logdet), logdet ? *logdet : NULL};
    for (int k = 0; k < 2 && in[k]; k++) { /* checked here: the node that made a wrong number is released below */
        size_t bytes = (size_t)acf_tensor_count(out[k]) * sizeof(acf_real);
        if (acf_tape_check(t, in[k])) return &t->empty;
        if (acf_device_copy(t->dev, out[k]->data, in[k]->data, bytes, ACF_ON_DEVICE)) acf_tape_fail(t, NULL);
    }
    if (t->failure.status) return &t->empty;
    if (in[1]) *logdet = out[1];
    acf_tape_rewind(t, mark);
    return out[0];
}

acf_tensor *acf_chain_forward(acf_tape *t, const acf_chain *chain, acf_tensor *x, const acf_cond *c,
                              acf_tensor **logdet) {
    acf_tensor *sum = NULL;
    acf_cond here = *c;
    for (int i = 0; i < chain->n; i++) {
        const acf_flow *f = &chain->flow[i];
        acf_tensor *one = NULL;
        x = run(t, f, f->kind->forward, x, &here, logdet ? &one : NULL);
        add_logdet(t, &sum, one);
        here.mirrored ^= f->kind->reverses;
    }
    if (logdet) *logdet = sum ? sum : acf_tensor_const(t, NULL, 0, 1, &c->u->N);
    return x;
}

acf_tensor *acf_chain_inverse(acf_tape *t, const acf_chain *chain, acf_tensor *z, const acf_cond *c,
                              acf_tensor **logdet) {
    acf_tensor *sum = NULL;
    acf_cond here = acf_chain_cond(chain, c);
    for (int i = chain->n - 1; i >= 0; i--) {
        const acf_flow *f = &chain->flow[i];
        acf_tensor *one = NULL;
        here.mirrored ^= f->kind->reverses; /* a transformation sees the same order as on the way forward */
        z = run(t, f, f->kind->inverse, z, &here, logdet ? &one : NULL);
        add_logdet(t, &sum, one);
    }
    if (logdet) *logdet = sum ? sum : acf_tensor_const(t, NULL, 0, 1, &c->u->N);
    return z;
}

/* b and a of x = a z + b are the inverses of the values 0 and 1; all others follow. */
void acf_flow_inverse_alone(acf_tape *t, const acf_flow *f, int n, acf_tensor **z, const acf_cond *c) {
    if (!f->kind->affine_alone) {
        for (int i = 0; i < n; i++) z[i] = f->kind->inverse(t, f, z[i], c, NULL);
        return;
    }
    if (t->failure.status) return;
    acf_tensor *b = f->kind->inverse(t, f, acf_tensor_const(t, c->u, 0, 1, &c->u->T), c, NULL);
    acf_tensor *a = acf_sub(t, f->kind->inverse(t, f, acf_tensor_const(t, c->u, 1, 1, &c->u->T), c, NULL), b);
    for (int i = 0; i < n; i++) z[i] = acf_add(t, acf_mul(t, a, z[i]), b);
}

void acf_chain_inverse_alone(acf_tape *t, const acf_chain *chain, int n, acf_tensor **z, const acf_cond *c) {
    acf_cond here = acf_chain_cond(chain, c);
    for (int i = chain->n - 1; i >= 0; i--) {
        here.mirrored ^= chain->flow[i].kind->reverses;
        acf_flow_inverse_alone(t, &chain->flow[i], n, z, &here);
    }
}
